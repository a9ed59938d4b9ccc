"""Clauses before a statement that its queries take part of: `WITH …`, and `FROM …` before INSERT.

Owns where they end, and how a query is put together of them. Knows no statement.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog.query.lexer import SyntaxProblem
from deltalog.query.names import unquoted
from deltalog.statements.slices import CLOSING, OPENING, stops_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from deltalog.query.lexer import Word
    from deltalog.query.names import QualifiedName

INSERTS: Final = ("INSERT INTO", "INSERT OVERWRITE", "INSERT WITH SCHEMA EVOLUTION")
# Keywords that end the columns of a SELECT.
_ENDS: Final = (
    "FROM", "WHERE", "GROUP BY", "HAVING", "WINDOW", "QUALIFY", "ORDER BY", "SORT BY",
    "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET", "LATERAL VIEW", "UNION", "INTERSECT",
    "EXCEPT", "MINUS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """Words from one place to the one before another."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NamedQueries:
    """`WITH name AS (query), …`.

    Args:
        span: of the whole clause.
        names: of the queries, in lower case.
    """

    span: Span
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class LeadingClauses:
    """What stands before a statement.

    Args:
        named: `WITH …`.
        relation: what `FROM … INSERT` reads.
        end: the place of the statement.
    """

    named: NamedQueries | None
    relation: Span | None
    end: int

    @property
    def ends(self) -> tuple[str, ...]:
        """What ends a query, besides the end of the statement."""
        return () if self.relation is None else INSERTS

    @property
    def inside(self) -> LeadingClauses:
        """What a query in an expression has of them."""
        return replace(self, relation=None)

    def has_named(self, name: QualifiedName) -> bool:
        """Whether `WITH` gives this name to a query."""
        return (
            self.named is not None
            and name.key[-1:] == name.key
            and name.key[0] in (self.named.names)
        )

    def of_named(self, name: str) -> list[Span | str]:
        """The pieces of a query of the rows that `WITH` gives a name."""
        return [*self._before(), f"SELECT * FROM {name}"]  # noqa: S608  # a name of the statement

    def of_query(self, words: Sequence[Word], own: Span) -> list[Span | str]:
        """The pieces of a query of the statement, in their order.

        Raises:
            SyntaxProblem: it is no SELECT that can follow a relation; the place is the statement's.
        """
        found: list[Span | str] = [own]
        if self.relation is not None:
            at = end_of_columns(words, own)
            if not words[own.start].says("SELECT") or (at < own.end and words[at].says("FROM")):
                raise SyntaxProblem(
                    words[own.start].start, "expected SELECT without FROM, which is before INSERT"
                )
            rest: list[Span | str] = [" ", Span(at, own.end)] if at < own.end else []
            found = [Span(own.start, at), " FROM ", self.relation, *rest]
        elif self.named is not None and words[own.start].says("WITH"):
            # It may give a name again that the outer clause gives.
            found = ["SELECT * FROM (", own, ")"]
        return [*self._before(), *found]

    def _before(self) -> list[Span | str]:
        return [] if self.named is None else [self.named.span, " "]


def leading_clauses(
    words: Sequence[Word], start: int, keywords: Collection[str]
) -> LeadingClauses | None:
    """Return the clauses before a statement that is no query; None if it has none.

    Args:
        words: of the statement.
        start: the place where it begins.
        keywords: with which statements begin.
    """
    named = named_queries(words, start)
    after = start if named is None else named.span.end
    relation = relation_before_insert(words, after)
    if relation is not None:
        return LeadingClauses(named, relation, relation.end)
    if named is None or not any(map(words[after].says, keywords)):
        return None
    return LeadingClauses(named, None, after)


def named_queries(words: Sequence[Word], start: int) -> NamedQueries | None:
    """Return the `WITH` clause that begins at a place; None if there is none of its form."""
    if not words[start].says("WITH"):
        return None
    place = start + 1
    if words[place].says("RECURSIVE") and not words[place + 1].says("AS"):
        place += 1
    names: list[str] = []
    while True:
        if words[place].kind not in {"word", "quoted"}:
            return None
        text = words[place].text
        names.append((unquoted(text) if words[place].kind == "quoted" else text).lower())
        place += 1
        if words[place].says("("):
            place = after_brackets(words, place)
        if stops_at(words, place, ("MAX RECURSION LEVEL",)):
            place += 4
        if not words[place].says("AS") or not words[place + 1].says("("):
            return None
        place = after_brackets(words, place + 1)
        if not words[place].says(","):
            return NamedQueries(Span(start, place), frozenset(names))
        place += 1


def relation_before_insert(words: Sequence[Word], start: int) -> Span | None:
    """Return what stands between FROM and INSERT; None if no `FROM … INSERT` begins at a place."""
    if not words[start].says("FROM"):
        return None
    for place in _outer(words, start + 1):
        if stops_at(words, place, INSERTS) and not words[place - 1].says("AS"):
            return Span(start + 1, place)
        if words[place].says("SELECT"):
            return None
    return None


def end_of_columns(words: Sequence[Word], span: Span) -> int:
    """The place where the columns of a SELECT end, and its other clauses begin."""
    for place in _outer(words, span.start + 1):
        if place >= span.end:
            break
        if stops_at(words, place, _ENDS) and not words[place - 1].says("AS"):
            return place
    return span.end


def after_brackets(words: Sequence[Word], place: int) -> int:
    """The place after the bracket that closes the one at a place, or that of the end."""
    depth = 0
    while words[place].kind != "end":
        if words[place].kind == "sign":
            depth += (words[place].text in OPENING) - (words[place].text in CLOSING)
        place += 1
        if not depth:
            break
    return place


def _outer(words: Sequence[Word], start: int) -> Iterator[int]:
    """Yield the places of words from one on that are in no brackets, and no part of a name."""
    depth = 0
    for place in range(start, len(words) - 1):
        word = words[place]
        if word.kind == "sign":
            depth += (word.text in OPENING) - (word.text in CLOSING)
        elif not depth and not words[place - 1].says("."):
            yield place
