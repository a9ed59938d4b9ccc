"""What may stand behind the name of a table in a query: a version, options, a sample.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from deltalog.expressions import Literal, parse_sql
from deltalog.query.lexer import SyntaxProblem
from deltalog.query.names import unquoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.query.lexer import Word

_KINDS: Final = ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME")
_CONSTANTS: Final = ("TRUE", "FALSE")


@dataclass(frozen=True, slots=True)
class RelationOptions:
    """The `WITH (name = value, …)` of a table.

    Args:
        start: its first character.
        end: the character after it.
        values: name in lower case → value as a text.
    """

    start: int
    end: int
    values: Mapping[str, str]


def place_from(words: Sequence[Word], character: int) -> int:
    """Return the place of the first word that begins at a character or behind it."""
    return bisect_left(words, character, key=attrgetter("start"))


def options_in(words: Sequence[Word]) -> list[RelationOptions]:
    """Return the options of all tables of a query: nothing else begins with `WITH (`.

    Raises:
        SyntaxProblem: some are not well formed.
    """
    return [
        _options(words, place)
        for place, word in enumerate(words[:-1])
        if place and word.says("WITH") and words[place + 1].says("(")
    ]


def _options(words: Sequence[Word], start: int) -> RelationOptions:
    values: dict[str, str] = {}
    place = start + 1
    while not values or words[place].says(","):
        name, place = _option_name(words, place + 1)
        place += words[place].says("=")
        sign = "-" if words[place].says("-") else ""
        word = words[place + bool(sign)]
        if word.kind == "text" and not sign:
            found = parse_sql(word.text)
            value = str(found.value) if isinstance(found, Literal) else ""
        elif word.kind == "number" or any(map(word.says, _CONSTANTS)):
            value = f"{sign}{word.text.lower()}"
        else:
            raise SyntaxProblem(word.start, "expected the value of an option: a constant")
        if name in values:
            raise SyntaxProblem(words[start].start, f"expected the option {name!r} once")
        values[name] = value
        place += 1 + bool(sign)
    if not words[place].says(")"):
        raise SyntaxProblem(words[place].start, "expected , or ) after an option")
    return RelationOptions(words[start].start, words[place].end, values)


def _option_name(words: Sequence[Word], place: int) -> tuple[str, int]:
    parts: list[str] = []
    while not parts or words[place].says("."):
        place += bool(parts)
        word = words[place]
        if word.kind == "text" and not parts:
            return word.text[1:-1].lower(), place + 1
        if word.kind not in {"word", "quoted"}:
            raise SyntaxProblem(word.start, "expected the name of an option")
        parts.append(unquoted(word.text))
        place += 1
    return ".".join(parts).lower(), place


def end_of_version(words: Sequence[Word], place: int) -> int:
    """Return the place of the word after a table's version, if it has one."""
    start = place + words[place].says("FOR")
    is_version = any(map(words[start].says, _KINDS)) and words[start + 1].says("AS")
    return end_of_value(words, start + 3) if is_version else place


def end_of_sample(words: Sequence[Word], place: int) -> int:
    """Return the place of the word after `TABLESAMPLE (…) [REPEATABLE (…)]`, if it comes next."""
    for keyword in ("TABLESAMPLE", "REPEATABLE"):
        if not words[place].says(keyword) or not words[place + 1].says("("):
            break
        place = _end_of_brackets(words, place + 1)
    return place


def end_of_value(words: Sequence[Word], place: int) -> int:
    """Return the place of the word after a constant, a parameter or a call."""
    place += any(map(words[place].says, ("-", "+", ":")))
    if words[place].kind == "word" and words[place + 1].kind == "text":
        return place + 2
    if not words[place].says("("):
        place += 1
    return _end_of_brackets(words, place) if words[place].says("(") else place


def _end_of_brackets(words: Sequence[Word], place: int) -> int:
    depth = 0
    while words[place].kind != "end":
        depth += words[place].says("(") - words[place].says(")")
        place += 1
        if not depth:
            break
    return place
