"""What a user may set in a table's configuration.

Owns the spelling of keys and the refusals; the properties themselves are `properties`.

Protocol: Table Properties
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from deltalog.actions.properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    IGNORE_PROTOCOL_DEFAULTS,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    PROPERTIES,
    TableProperties,
)
from deltalog.errors import InvalidInputError, InvalidMetadataError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Families of keys that other engines and tools keep; deltalog stores them and looks no further.
_OPEN_PREFIXES: Final = (
    "delta.universalFormat.",
    "delta.compatibility.",
    "delta.coordinatedCommits.",
    "delta.sharing.",
    "delta.workloadBasedColumns.",
)

_BY_FOLDED: Final = {
    **{alias.lower(): found.key for found in PROPERTIES.values() for alias in found.aliases},
    **{key.lower(): key for key in PROPERTIES},
    **{
        key.lower(): key
        for key in (MIN_READER_VERSION, MIN_WRITER_VERSION, IGNORE_PROTOCOL_DEFAULTS)
    },
}


def canonical_key(key: str) -> str:
    """The key in its own spelling: case does not matter for keys that Delta knows.

    A constraint's name is stored in lower case, as Spark does; a key that is not Delta's stays.

    Raises:
        InvalidInputError: the key starts with `delta.` or `deltalog.`, and nobody knows it.
    """
    folded = key.lower()
    if (known := _BY_FOLDED.get(folded)) is not None:
        return known
    if folded.startswith(CONSTRAINT_PREFIX):
        return folded
    if folded.startswith(FEATURE_PREFIX):
        return FEATURE_PREFIX + key[len(FEATURE_PREFIX) :]
    if not folded.startswith(("delta.", "deltalog.")) or key.startswith(_OPEN_PREFIXES):
        return key
    close = difflib.get_close_matches(folded, _BY_FOLDED, n=1)
    hint = f"; did you mean {_BY_FOLDED[close[0]]!r}?" if close else ""
    raise InvalidInputError(f"there is no table property {key!r}{hint}")


def check_settable(properties: Mapping[str, str]) -> dict[str, str]:
    """What a user asks to set, with the keys in their own spelling and every value checked.

    Raises:
        InvalidInputError: a key is unknown or not for users, or a value is none of its own.
    """
    checked: dict[str, str] = {}
    for key, text in properties.items():
        canonical = canonical_key(key)
        if canonical in checked:
            raise InvalidInputError(f"table property {canonical!r} is given twice")
        _check_value(canonical, text)
        checked[canonical] = text
    return checked


def _check_value(key: str, text: str) -> None:
    found = PROPERTIES.get(key)
    if found is None:
        if key in {MIN_READER_VERSION, MIN_WRITER_VERSION} and not text.strip().isdecimal():
            raise InvalidInputError(
                f"table property {key}: expected a whole number, found {text!r}"
            )
        return
    if not found.settable:
        raise InvalidInputError(f"table property {key} is set by writers themselves")
    try:
        value = found.value_of(text)
    except InvalidMetadataError as error:
        raise InvalidInputError(str(error)) from None
    if found is TableProperties.isolation_level and value != "Serializable":
        raise InvalidInputError(
            f"table property {key}: expected Serializable, found {text!r}; "
            "other levels are an argument of a transaction"
        )
