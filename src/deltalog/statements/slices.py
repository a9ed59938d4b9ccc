"""Slices of statements: queries and expressions, with the values of their parameters.

Protocol: none
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from deltalog.query.lexer import Word

if TYPE_CHECKING:
    from deltalog.query.lexer import TextOfParts
    from deltalog.schema import DataType

OPENING: Final = frozenset("([")
CLOSING: Final = frozenset(")]")
# For each row of VALUES its items: the name of the parameter that stands for DEFAULT, or None.
Defaults = tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a statement, in Spark's dialect.

    Args:
        text: with a name for each `?`.
        parameters: name → value, of those that the text has.
        source: where the text comes from in its statement; None if it is none of one.
        is_of_values: whether it is the VALUES of an INSERT.
    """

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    source: TextOfParts | None = field(default=None, compare=False, repr=False)
    is_of_values: bool = False

    def origin(self, place: int) -> int:
        """Return where a character of the text is in the statement."""
        return place if self.source is None else self.source.origin(place)


class SubqueryKind(StrEnum):
    """What a query in brackets stands for in an expression."""

    VALUE = "value"
    """Its only value; NULL if it has no row."""
    LIST = "list"
    """The values of its only column, after IN."""
    EXISTS = "exists"
    """Whether it has a row."""


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query in an expression.

    Args:
        kind: what it stands for.
        query: without its brackets.
    """

    kind: SubqueryKind
    query: Query


@dataclass(frozen=True, slots=True)
class SqlCondition:
    """An expression of a statement, which may hold queries.

    Args:
        text: in Spark's dialect, with a name for each `?` and for each query in it.
        parameters: name → value, of those that the text has.
        subqueries: name of a parameter → the query that it stands for.
        is_foreign: whether only the engine of the session knows what it says.
    """

    text: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    subqueries: Mapping[str, Subquery] = field(default_factory=dict)
    is_foreign: bool = False


def stops_at(words: Sequence[Word], place: int, stops: Sequence[str]) -> bool:
    """Whether one of these keywords or signs, such as `GROUP BY`, begins at a word."""
    for stop in stops:
        wanted = stop.split()
        coming = words[place : place + len(wanted)]
        if len(coming) == len(wanted) and all(map(Word.says, coming, wanted)):
            return True
    return False


def items_of_values(words: Sequence[Word], start: int, end: int) -> Iterator[tuple[int, bool]]:
    """The places where items of VALUES begin, and whether each is the first of its row.

    Args:
        words: of the statement.
        start: the place after VALUES.
        end: the place after the last row.
    """
    depth, is_tuple = 0, False
    for place in range(start, end):
        word, before = words[place], words[place - 1]
        if depth == 0 and (place == start or before.says(",")):
            is_tuple = word.says("(")
            if not is_tuple:
                yield place, True
        elif is_tuple and depth == 1 and (before.says("(") or before.says(",")):
            yield place, before.says("(")
        if word.kind == "sign":
            depth += (word.text in OPENING) - (word.text in CLOSING)


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A type as a statement says it.

    Args:
        type: with `string` for each `char(n)` and `varchar(n)`.
        limited: the type as it was written, if it has such limits.
        collations: of its texts, from paths inside it to identifiers; not of fields of structs,
            which have their own.
        by_bytes: paths of the texts of which it says the default collation, in structs too.
    """

    type: DataType
    limited: str | None
    collations: Mapping[tuple[str, ...], str]
    by_bytes: Collection[tuple[str, ...]]


def end_of_type(words: Sequence[Word], start: int, stops: Sequence[str]) -> int:
    """The place after a type, which one of these keywords, a comma or a bracket ends."""
    ending = (*stops, ",", ")", ";")
    place, depth = start, 0
    while (word := words[place]).kind != "end":
        if not depth and place > start and stops_at(words, place, ending):
            break
        if word.kind == "sign":
            depth += (word.text in "(<") - (word.text in ")>")
        place += 1
    return place
