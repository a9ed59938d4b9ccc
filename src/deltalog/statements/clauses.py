"""The clauses before a statement: `WITH …` for its queries, and `FROM …` before INSERT.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog.query.lexer import SyntaxProblem
from deltalog.query.names import unquoted
from deltalog.statements.statement import CLOSING, OPENING, stops_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from deltalog.query.lexer import Word
    from deltalog.query.names import QualifiedName

_INSERTS: Final = ("INSERT INTO", "INSERT OVERWRITE", "INSERT WITH SCHEMA EVOLUTION")
# Keywords that end the column list of a SELECT.
_ENDS: Final = (
    "FROM", "WHERE", "GROUP BY", "HAVING", "WINDOW", "QUALIFY", "ORDER BY", "SORT BY",
    "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET", "LATERAL VIEW", "UNION", "INTERSECT",
    "EXCEPT", "MINUS",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """The words from a start position to an end position, without the word at the end position."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NamedQueries:
    """The clause `WITH name AS (query), …`.

    Args:
        span: the words of the whole clause.
        names: the names of the queries, in lower case.
    """

    span: Span
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class LeadingClauses:
    """The clauses before a statement.

    Args:
        named: the clause `WITH …`; None if it is absent.
        relation: the words between FROM and INSERT in `FROM … INSERT`; None if they are absent.
        end: the position of the first word of the statement itself.
    """

    named: NamedQueries | None
    relation: Span | None
    end: int

    @property
    def ends(self) -> tuple[str, ...]:
        """The keywords that end a query, in addition to the end of the statement."""
        return () if self.relation is None else _INSERTS

    @property
    def inside(self) -> LeadingClauses:
        """The clauses that also apply to a query inside an expression."""
        return replace(self, relation=None)

    def has_named(self, name: QualifiedName) -> bool:
        """Return whether the clause `WITH` defines a query with this name."""
        return (
            self.named is not None
            and name.key[-1:] == name.key
            and name.key[0] in (self.named.names)
        )

    def of_named(self, name: str) -> list[Span | str]:
        """Return the pieces of a query that selects all rows of a query of `WITH`."""
        return [*self._before(), f"SELECT * FROM {name}"]  # noqa: S608  # a name of the statement

    def of_query(self, words: Sequence[Word], own: Span) -> list[Span | str]:
        """Return the pieces that form a query of the statement, in order.

        Raises:
            SyntaxProblem: the query is not a SELECT that can follow a relation. Its position is a
                position in the statement.
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
            # Put the query into a subquery, because it may redefine a name of the outer `WITH`.
            found = ["SELECT * FROM (", own, ")"]
        return [*self._before(), *found]

    def _before(self) -> list[Span | str]:
        return [] if self.named is None else [self.named.span, " "]


def leading_clauses(
    words: Sequence[Word], start: int, keywords: Collection[str]
) -> LeadingClauses | None:
    """Return the clauses before a statement that is not a query; None if there are no such clauses.

    Args:
        words: the words of the statement.
        start: the position of the first word.
        keywords: the keywords with which a statement can begin.
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
    """Return the `WITH` clause at a position; None if there is no valid clause."""
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
    """Return the words between FROM and INSERT; None if `FROM … INSERT` does not begin here."""
    if not words[start].says("FROM"):
        return None
    for place in _outer(words, start + 1):
        if stops_at(words, place, _INSERTS) and not words[place - 1].says("AS"):
            return Span(start + 1, place)
        if words[place].says("SELECT"):
            return None
    return None


def end_of_columns(words: Sequence[Word], span: Span) -> int:
    """Return the position at which the column list of a SELECT ends."""
    for place in _outer(words, span.start + 1):
        if place >= span.end:
            break
        if stops_at(words, place, _ENDS) and not words[place - 1].says("AS"):
            return place
    return span.end


def after_brackets(words: Sequence[Word], place: int) -> int:
    """Return the position after the bracket that closes the one at `place`, or of the end."""
    depth = 0
    while words[place].kind != "end":
        if words[place].kind == "sign":
            depth += (words[place].text in OPENING) - (words[place].text in CLOSING)
        place += 1
        if not depth:
            break
    return place


def _outer(words: Sequence[Word], start: int) -> Iterator[int]:
    """Yield the positions of words that are not inside brackets and not inside dotted names."""
    depth = 0
    for place in range(start, len(words) - 1):
        word = words[place]
        if word.kind == "sign":
            depth += (word.text in OPENING) - (word.text in CLOSING)
        elif not depth and not words[place - 1].says("."):
            yield place
