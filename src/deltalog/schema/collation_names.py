"""Names of collations: as SQL has them, and as the identifiers that schemas hold.

Owns which names there are, each in one spelling, and which of them deltalog has the rules of.

An identifier has a provider and a name, `spark.UTF8_LCASE` or `icu.de_CI`; a name in SQL is the
name alone. Of ICU's collations the names are known, so that columns can have them, and no rules.

Protocol: Collation identifiers
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class CollationRules:
    """By what texts are compared: by the bytes of a key, which is made of each.

    Args:
        lowers: every character of the key is the lower one.
        trims: spaces at the end are left out.
    """

    lowers: bool
    trims: bool


BY_BYTES: Final = "spark.UTF8_BINARY"
"""The default, which schemas do not name."""
RULES: Final[Mapping[str, CollationRules]] = {
    "spark.UTF8_BINARY_RTRIM": CollationRules(lowers=False, trims=True),
    "spark.UTF8_LCASE": CollationRules(lowers=True, trims=False),
    "spark.UTF8_LCASE_RTRIM": CollationRules(lowers=True, trims=True),
}
RULES_VERSION: Final = "78.3"
"""Of ICU, as Spark 4.2 has it: lower characters are those of Unicode 17."""

_PROVIDER_OF_SPARK: Final = "spark"
_PROVIDER_OF_ICU: Final = "icu"
_QUALIFIER: Final = ("SYSTEM", "BUILTIN")
_BY_FOLDED: Final = {identifier.lower(): identifier for identifier in (BY_BYTES, *RULES)}
# What Spark's names end with, in this order; CS and AS are what it is without them.
_MODIFIERS: Final = {"CI": "_CI", "CS": "", "AI": "_AI", "AS": "", "RTRIM": "_RTRIM"}
_SAME_MODIFIERS: Final = ({"CI", "CS"}, {"AI", "AS"}, {"RTRIM"})
# Languages, scripts and countries that ICU 78 has an order of, as Spark 4.2 names them.
_NAMES_OF_ICU: Final = """
    UNICODE af am ar ar_SAU as az be bg blo bn bo br bs bs_Cyrl ca ceb chr cs cy da de de_AUT
    dsb dz ee el en en_USA eo es et fa fa_AFG ff ff_Adlm fi fil fo fr fr_CAN fy ga gl gu ha
    haw he he_ISR hi hr hsb hu hy id id_IDN ig is it ja ka kk kk_Arab kl km kn ko kok ku ky lb
    lij lkt ln lo lt lv mk ml mn mr ms mt my nb nb_NOR ne nl nn no nso om or pa pa_Guru
    pa_Guru_IND pl ps pt ro ru sa se si sk sl smn sq sr sr_Cyrl sr_Cyrl_BIH sr_Cyrl_MNE
    sr_Cyrl_SRB sr_Latn sr_Latn_BIH sr_Latn_SRB st sv sw ta te th tk tn to tr ug uk ur uz vi
    wae wo xh yi yo zh zh_Hans zh_Hans_CHN zh_Hans_SGP zh_Hant zh_Hant_HKG zh_Hant_MAC
    zh_Hant_TWN zu
"""
_LOCALES: Final = tuple(_NAMES_OF_ICU.split())
_LOCALE_OF: Final = {locale.upper(): locale for locale in _LOCALES}


def canonical(identifier: str) -> str:
    """Return an identifier of a schema in the spelling that Spark writes; others as they are.

    Writers spell providers in other cases: `SPARK.UTF8_LCASE`.
    """
    return _BY_FOLDED.get(identifier.lower(), identifier)


def collation_named(name: str) -> str:
    """Return the identifier of a collation by its name in SQL, or by itself.

    Args:
        name: such as `UTF8_LCASE`, `de_CI` or `SYSTEM.BUILTIN.UTF8_LCASE`; case does not matter.

    Raises:
        InvalidInputError: there is no such collation.
    """
    *qualifier, last = name.split(".")
    is_known = tuple(part.upper() for part in qualifier) in {
        (), _QUALIFIER, (_PROVIDER_OF_SPARK.upper(),), (_PROVIDER_OF_ICU.upper(),),
    }  # fmt: skip
    found = _identified(last.upper()) if is_known else None
    if found is None:
        raise _unknown(name)
    return found


def name_in_sql(identifier: str) -> str:
    """Return the name of a collation in SQL."""
    return identifier.partition(".")[2] or identifier


def versioned(identifier: str) -> str:
    """Return the identifier by which statistics of today's rules go."""
    return f"{identifier}.{RULES_VERSION}"


def _identified(name: str) -> str | None:
    of_spark = _BY_FOLDED.get(f"{_PROVIDER_OF_SPARK}.{name.lower()}")
    if of_spark is not None:
        return of_spark
    # `sr_Latn` is a locale and `sr` is one, too: the longest is meant.
    parts = name.split("_")
    for count in range(len(parts), 0, -1):
        locale = _LOCALE_OF.get("_".join(parts[:count]))
        if locale is not None:
            modifiers = _modifiers(parts[count:])
            return None if modifiers is None else f"{_PROVIDER_OF_ICU}.{locale}{modifiers}"
    return None


def _modifiers(parts: list[str]) -> str | None:
    if not set(parts) <= _MODIFIERS.keys():
        return None
    if any(sum(part in same for part in parts) > 1 for same in _SAME_MODIFIERS):
        return None
    return "".join(text for part, text in _MODIFIERS.items() if part in parts)


def _unknown(name: str) -> InvalidInputError:
    names = {name_in_sql(identifier).upper(): name_in_sql(identifier) for identifier in _ALL}
    close = get_close_matches(name.rpartition(".")[2].upper(), names, n=1)
    hint = f"; did you mean {names[close[0]]!r}?" if close else ""
    return InvalidInputError(
        f"there is no collation {name!r}: expected {', '.join(map(name_in_sql, _SPARKS))}, or one "
        f"of ICU such as UNICODE_CI, de or en_USA_AI{hint}"
    )


_SPARKS: Final = (BY_BYTES, *RULES)
_ALL: Final = (
    *_SPARKS,
    *(
        f"{_PROVIDER_OF_ICU}.{locale}{case}{accent}"
        for locale in _LOCALES
        for case in ("", "_CI")
        for accent in ("", "_AI")
    ),
)
