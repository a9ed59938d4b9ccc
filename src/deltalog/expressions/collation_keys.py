"""Texts as collations compare them, over Arrow arrays and constants.

Owns the keys: two texts compare by a collation as the bytes of their keys do.

Protocol: none; Spark's `CollationFactory` and `CollationAwareUTF8String`
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from deltalog.expressions.rows import by_row, is_constant
from deltalog.kernels import Datum, compute, pc
from deltalog.schema.collation_names import RULES, CollationRules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PLAIN: Final = CollationRules(lowers=False, trims=False)
# Of all characters this one alone has two lower ones, which Arrow has not.
DOTTED_I: Final = "\u0130"
_LOWER_DOTTED_I: Final = "i\u0307"
# A sigma is lower whether a word ends with it or not.
_FINAL_SIGMA: Final = "\u03c2"
_SIGMA: Final = "\u03c3"


def keys(texts: Datum, collation: str) -> Datum:
    """The key of each text; NULL of NULL.

    Args:
        texts: strings.
        collation: one of `RULES`, or the default, by which a text is its own key.

    Cost: some kernels; by row if a text has a character of a rare script.
    """
    rules = RULES.get(collation, _PLAIN)
    if rules.trims:
        texts = _trimmed(texts)
    return _lower(texts) if rules.lowers else texts


def keys_of(texts: Sequence[str | None], collation: str) -> list[str | None]:
    """The keys of some constants."""
    found: list[str | None] = keys(pa.array(texts, pa.string()), collation).to_pylist()
    return found


def test(function: str, text: Datum, part: Datum, collation: str) -> Datum:
    """Whether texts start with, end with or contain a part.

    Args:
        function: of `TESTS`.
        text: strings, or their keys.
        part: likewise.
        collation: one of `RULES`, or the default.

    Cost: by row if the part is not constant, or a text has the capital I with a dot: the two lower
    characters of it are found together only.
    """
    kernel, rowwise = TESTS[function]
    if is_constant(part) and not _has(text, DOTTED_I):
        return kernel(keys(text, collation), keys(part, collation).as_py())
    rules = RULES.get(collation, _PLAIN)
    if rules.trims:
        text = _trimmed(text)
    split = _lower_pieces if rules.lowers else list
    return by_row(
        lambda value, wanted: rowwise(split(value), wanted), pa.bool_(), text, keys(part, collation)
    )


def _trimmed(texts: Datum) -> Datum:
    return pc.utf8_rtrim(texts, characters=" ")


def _lower(texts: Datum) -> Datum:
    if compute.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return pc.ascii_lower(texts)
    table = _table()
    is_settled = compute.match_substring_regex(texts, table.settled_text)
    if not compute.all(is_settled, min_count=0).as_py():
        return by_row(lambda text: text.translate(table.keys), pa.string(), texts)
    texts = pc.replace_substring(texts, DOTTED_I, _LOWER_DOTTED_I)
    return pc.replace_substring(pc.utf8_lower(texts), _FINAL_SIGMA, _SIGMA)


class _Table(NamedTuple):
    """Keys of characters, and what matches a text of which kernels make the same keys."""

    keys: dict[int, int | str]
    settled_text: str


@cache
def _table() -> _Table:
    from deltalog.expressions.lower_characters import LOWER, SETTLED_TEXT  # noqa: PLC0415  # seldom

    special = {ord(DOTTED_I): _LOWER_DOTTED_I, ord(_FINAL_SIGMA): _SIGMA}
    return _Table({**LOWER, **special}, SETTLED_TEXT)


def _has(text: Datum, character: str) -> bool:
    return bool(compute.any(pc.match_substring(text, character), min_count=0).as_py())


def _lower_pieces(text: str) -> list[str]:
    """The lower characters of each character of a text."""
    table = _table().keys
    return [character.translate(table) for character in text]


def _starts(pieces: list[str], part: str) -> bool:
    return part in accumulate(pieces, initial="")


def _ends(pieces: list[str], part: str) -> bool:
    return part in accumulate(reversed(pieces), lambda found, piece: piece + found, initial="")


def _contains(pieces: list[str], part: str) -> bool:
    return any(_starts(pieces[start:], part) for start in range(len(pieces) + 1))


TESTS: Final[dict[str, tuple[Callable[..., Datum], Callable[[list[str], str], bool]]]] = {
    "startswith": (compute.starts_with, _starts),
    "endswith": (pc.ends_with, _ends),
    "contains": (pc.match_substring, _contains),
}
