"""Find the positions of tables and of qualified columns in a query in Spark's dialect.

Callers replace the text at these positions. Therefore each position is checked: the text there must
be the name that sqlglot parsed.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from deltalog._util.escaping import name_key
from deltalog.query.lexer import SyntaxProblem, error_at, split
from deltalog.query.names import end_of_sample, end_of_value, end_of_version, place_from, unquoted
from deltalog.query.parse import TOO_DEEP, ReadQuery, read_query, start_of
from deltalog.query.translate import (
    CHANGES,
    is_cte,
    name_of_call,
    options_of,
    reference_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlglot.expressions import Expr

    from deltalog.query.translate import TableReference

_WHOLE: Final = 0
"""The scope of names that are outside of any SELECT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedTable:
    """A reference to a table, and its position in the text of a query.

    Args:
        table: the reference.
        start: the position of the first character of the name.
        end: the position after the name, the version and the options.
        sampled_end: the position after the TABLESAMPLE clause, where an alias may follow.
        is_aliased: whether an alias follows.
        options: the options, except the version.
        scope: the number of the SELECT that reads the table.
    """

    table: TableReference
    start: int
    end: int
    sampled_end: int
    is_aliased: bool
    options: Mapping[str, str]
    scope: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedColumn:
    """A column or a star that is qualified by the name of a table, and its position.

    Args:
        parts: the parts of the table's name, the column, and possibly its fields; without the star.
        spans: the start and end position of each part.
        has_star: whether a star follows the parts.
        scopes: the numbers of the SELECTs that contain the column, innermost first.
    """

    parts: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    has_star: bool
    scopes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedQuery:
    """A query, and its tables and columns in the order of the text.

    Args:
        text: the query in Spark's dialect.
        tables: the tables, except common table expressions.
        columns: the qualified columns.
        relations: for each SELECT, the names that may qualify its columns, in lower case.
    """

    text: str
    tables: tuple[LocatedTable, ...]
    columns: tuple[LocatedColumn, ...]
    relations: Mapping[int, tuple[str, ...]]


@lru_cache(maxsize=256)
def located(text: str) -> LocatedQuery:
    """Return the positions of tables and qualified columns in a query in Spark's dialect.

    Raises:
        InvalidInputError: the text is not a query. The message contains the position.
    """
    try:
        return places_of(read_query(text))
    except RecursionError:
        raise error_at(text, 0, TOO_DEEP) from None
    except SyntaxProblem as problem:
        raise error_at(text, problem.place, problem.problem) from problem


def places_of(found: ReadQuery) -> LocatedQuery:
    """Return the positions of tables and qualified columns in a parsed query.

    Raises:
        SyntaxProblem: the position of a table is unknown, or the text there is another name.
    """
    return _Places(found).query()


class _Places:
    def __init__(self, found: ReadQuery) -> None:
        self._found = found
        self._words = split(found.plain)
        self._starts = {word.start for word in self._words}
        self._ends = {word.end for word in self._words}
        self._scopes: dict[int, int] = {}

    def query(self) -> LocatedQuery:
        tree = self._found.tree
        tables = sorted(self._tables(tree), key=lambda one: one.start)
        relations: dict[int, list[str]] = {}
        for node in tree.find_all(exp.Table, exp.Subquery, exp.Lateral, exp.Values, exp.Unnest):
            relations.setdefault(self._scope(node), []).append(name_key(node.alias_or_name))
        columns = [
            self._column(node)
            for node in tree.find_all(exp.Column)
            if node.args.get("table") is not None and "start" in node.parts[0].meta
        ]
        for one, after in pairwise(tables):
            if after.start < one.sampled_end:
                raise self._misplaced(after.start)
        return LocatedQuery(
            text=self._found.source.text,
            tables=tuple(tables),
            columns=tuple(sorted(columns, key=lambda one: one.spans[0])),
            relations={scope: tuple(names) for scope, names in relations.items()},
        )

    def _tables(self, tree: Expr) -> Iterator[LocatedTable]:
        words = self._words
        for node in tree.find_all(exp.Table):
            is_call = isinstance(node.this, exp.Func)
            if is_cte(node) or (is_call and name_of_call(node.this) not in CHANGES):
                continue
            reference = reference_of(node)  # for `FROM @x`, this raises an error without a position
            if is_call:
                at = place_from(words, start_of(node))
                while words[at].text.lower() not in CHANGES:
                    at -= 1
                first, behind = words[at].start, end_of_value(words, at)
            else:
                spans = self._spans(node.parts)
                first = spans[0][0]
                behind = end_of_version(words, place_from(words, spans[-1][1]))
            end = words[behind - 1].end
            options = self._found.options.get(end)
            yield LocatedTable(
                table=reference,
                start=first,
                end=end if options is None else options.end,
                sampled_end=self._end_of_sample(behind, None if options is None else options.end),
                is_aliased=bool(node.args.get("alias")),
                options=options_of(node),
                scope=self._scope(node),
            )

    def _end_of_sample(self, behind: int, end: int | None) -> int:
        sampled = end_of_sample(self._words, behind)
        return self._words[sampled - 1].end if sampled > behind or end is None else end

    def _column(self, node: exp.Column) -> LocatedColumn:
        parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
        scopes: list[int] = []
        at: Expr | None = node
        while at is not None:
            at = at.find_ancestor(exp.Select)
            scopes.append(self._number(at))
        return LocatedColumn(
            parts=tuple(part.name for part in parts),
            spans=self._spans(parts),
            has_star=len(parts) < len(node.parts),
            scopes=tuple(scopes),
        )

    def _spans(self, parts: Sequence[Any]) -> tuple[tuple[int, int], ...]:
        """Return the positions of the parts of a name; the text at each position is checked."""
        text = self._found.plain
        spans: list[tuple[int, int]] = []
        for part in parts:
            start, end = part.meta.get("start", 0), part.meta.get("end", 0) + 1
            if unquoted(text[start:end]) != part.name:
                raise self._misplaced(start)
            if spans and text[spans[-1][1] : start].strip() != ".":
                raise self._misplaced(start)
            spans.append((start, end))
        if spans[0][0] not in self._starts or spans[-1][1] not in self._ends:
            raise self._misplaced(spans[0][0])
        return tuple(spans)

    def _scope(self, node: Expr) -> int:
        return self._number(node.find_ancestor(exp.Select))

    def _number(self, select: Expr | None) -> int:
        if select is None:
            return _WHOLE
        return self._scopes.setdefault(id(select), len(self._scopes) + 1)

    def _misplaced(self, place: int) -> SyntaxProblem:
        return SyntaxProblem(
            self._found.source.origin(place), "expected a name that is distinct from the words here"
        )
