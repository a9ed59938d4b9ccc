"""Replace tables in a query by dataframes.

PySpark's formatter replaces names in braces by dataframes, also on Spark Connect. The query can
refer to such a frame only by an alias. So if a column is qualified by a longer table name, the
alias replaces this name.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.escaping import name_key, path_key
from deltalog.errors import InvalidInputError
from deltalog.expressions import lit, to_sql
from deltalog.expressions.render import quote_name
from deltalog.query.lexer import TextParts, Word, split
from deltalog.query.names import QualifiedName, unquoted
from deltalog.query.translate import TableChangesCall
from deltalog.statements.changes import (
    DeleteStatement,
    InsertStatement,
    MergeStatement,
    SeveralInserts,
    UpdateStatement,
)
from deltalog.statements.reader import answer_of
from deltalog.statements.statement import SubqueryKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import pyarrow as pa

    from deltalog.query.located import LocatedColumn, LocatedQuery, LocatedTable
    from deltalog.statements.statement import Qualifiers, Query, SqlCondition, SqlStatement


@dataclass(frozen=True, slots=True)
class TableFrame:
    """A table of a query that a dataframe replaces.

    Args:
        table: the table, with its position in the query.
        name: the name that is written in braces.
        full: the full name of the table in its catalog, in lower case.
    """

    table: LocatedTable
    name: str
    full: tuple[str, ...]

    @property
    def last(self) -> str:
        """The last part of the table's name, which may qualify columns."""
        table = self.table.table
        own = table.table if isinstance(table, TableChangesCall) else table
        return own.parts[-1]


def spliced(query: LocatedQuery, frames: Sequence[TableFrame]) -> str:
    """Return the query in which names in braces replace tables, for PySpark's formatter.

    Args:
        query: the query with the positions of its tables and columns.
        frames: the dataframes that replace tables of the query.

    Raises:
        InvalidInputError: a column may belong to several tables.
    """
    if not frames:
        return query.text
    found = [(column, *_target(query, column, frames)) for column in query.columns]
    targets = [(column, frame, size) for column, frame, size in found if frame is not None]
    shared = {id(frame) for frame in frames if _shares_name(query, frame, frames, targets)}
    changes: list[tuple[int, int, str]] = []
    for one in frames:
        table = one.table
        alias = quote_name(".".join(one.full) if id(one) in shared else one.last)
        changes.append((table.start, table.end, f"{{{one.name}}}"))
        if not table.is_aliased:
            changes.append((table.sampled_end, table.sampled_end, _escaped(f" AS {alias}")))
    for column, frame, size in targets:
        alias = quote_name(".".join(frame.full) if id(frame) in shared else frame.last)
        changes.append((column.spans[0][0], column.spans[size - 1][1], _escaped(alias)))
    parts: list[str] = []
    copied = 0
    for start, end, by in sorted(changes):
        parts += _escaped(query.text[copied:start]), by
        copied = end
    return "".join((*parts, _escaped(query.text[copied:])))


def _target(
    query: LocatedQuery, column: LocatedColumn, frames: Sequence[TableFrame]
) -> tuple[TableFrame | None, int]:
    """Return the frame whose table name of several parts qualifies a column.

    Also return the number of these parts. The result is None and 0 if there is no such frame.
    """
    key = path_key(column.parts)
    for scope in column.scopes:
        own = [one for one in frames if one.table.scope == scope and not one.table.is_aliased]
        for size in range(len(key) - (not column.has_star), 1, -1):
            named = [one for one in own if one.full[-size:] == key[:size]]
            if named:
                return (named[0], size) if len(named) == 1 else (None, 0)
        if key[0] in query.relations.get(scope, ()):
            break
    return None, 0


def _shares_name(
    query: LocatedQuery,
    frame: TableFrame,
    frames: Sequence[TableFrame],
    targets: Sequence[tuple[LocatedColumn, TableFrame, int]],
) -> bool:
    """Return whether another table has the same last part, and columns use the longer name.

    Raises:
        InvalidInputError: other columns are qualified only by the last part.
    """
    scope, last = frame.table.scope, name_key(frame.last)
    if frame.table.is_aliased or query.relations.get(scope, ()).count(last) < 2:
        return False
    same = [
        one
        for one in frames
        if one.table.scope == scope and name_key(one.last) == last and not one.table.is_aliased
    ]
    if not any(target is one for _, target, _ in targets for one in same):
        return False
    for column in _by_last(query, scope, last):
        if not any(column is one for one, _, _ in targets):
            raise InvalidInputError(
                f"cannot resolve the column {'.'.join(column.parts)}: several tables are called "
                f"{frame.last}; give them aliases"
            )
    return True


def _by_last(query: LocatedQuery, scope: int, last: str) -> Iterator[LocatedColumn]:
    return (one for one in query.columns if scope in one.scopes and name_key(one.parts[0]) == last)


def _escaped(text: str) -> str:
    """Return a part of a query with its braces escaped."""
    return text.replace("{", "{{").replace("}", "}}")


# --- statements, completed with full table names and with settings of the session


CHANGES: Final = (DeleteStatement, InsertStatement, MergeStatement, UpdateStatement)
"""The statements that change the rows of a table."""


def completed(
    statement: SqlStatement, full_name: Callable[[QualifiedName], QualifiedName], *, merges: bool
) -> SqlStatement:
    """Return a statement with full table names and the session's setting for schema evolution.

    Args:
        statement: any statement. A statement that is not in `CHANGES` is returned unchanged.
        full_name: a function that returns the full name of a table.
        merges: whether statements add columns of the new rows that the table lacks.
    """
    if isinstance(statement, SeveralInserts):
        inserts: Any = (completed(one, full_name, merges=merges) for one in statement.inserts)
        return replace(statement, inserts=tuple(inserts))
    if not isinstance(statement, CHANGES):
        return statement
    known: dict[str, Any] = {"table": full_name(statement.table)}
    if isinstance(statement, MergeStatement) and isinstance(statement.source, QualifiedName):
        known["source"] = full_name(statement.source)
    if isinstance(statement, InsertStatement | MergeStatement):
        known["evolves"] = statement.evolves or merges
    return replace(statement, **known)


# --- conditions that only Spark can parse, converted to strings for Spark


_NAMES = frozenset({"word", "quoted"})
_NO_ROWS = "SELECT NULL WHERE false"


def foreign_text(
    values_of: Callable[[Query], pa.Table],
    condition: SqlCondition,
    columns: Collection[str],
    qualifiers: Qualifiers,
    *,
    keeps_last: bool = False,
) -> str:
    """Return a condition in which parameters and subqueries are replaced by their values.

    Args:
        values_of: a function that returns the rows of a query.
        condition: the condition from the statement.
        columns: the columns of the rows that the condition filters.
        qualifiers: the names that may qualify a column.
        keeps_last: whether a column is still qualified by the last part of its qualifier.

    Raises:
        InvalidInputError: a subquery returns too many rows or columns.
    """
    known = {name: to_sql(lit(value)) for name, value in condition.parameters.items()}
    for name, one in condition.subqueries.items():
        answer = answer_of(values_of, one)
        if one.kind is SubqueryKind.LIST:
            rows = [
                tuple(to_sql(lit(value)) for value in row) for row in zip(*answer[1], strict=True)
            ]
            shown = (row[0] if len(row) == 1 else f"({', '.join(row)})" for row in rows)
            known[name] = ", ".join(shown) or _NO_ROWS
        else:
            known[name] = to_sql(lit(answer))
    words, text = split(condition.text), condition.text
    own = {name_key(name) for name in columns}
    parts = TextParts(text)
    place = 0
    while (word := words[place]).kind != "end":
        if word.says(":") and words[place + 1].text in known and word.end == words[place + 1].start:
            parts.replace(word.start, words[place + 1].end, known[words[place + 1].text])
            place += 2
            continue
        path, after = _path(words, place)
        size = _size(path, qualifiers) if path and path[0] not in own else 0
        if size and not words[after].says("("):
            last = words[place + 2 * size - 2]
            by = f"{quote_name(unquoted(last.text))}." if keeps_last else ""
            parts.replace(word.start, words[place + 2 * size].start, by)
        place = after
    return parts.done(len(text)).text


def _path(words: Sequence[Word], place: int) -> tuple[tuple[str, ...], int]:
    """Return the name that starts at a word: its parts in lower case, and the index after it."""
    if words[place].kind not in _NAMES:
        return (), place + 1
    parts = [name_key(unquoted(words[place].text))]
    place += 1
    while words[place].says(".") and words[place + 1].kind in _NAMES:
        parts.append(name_key(unquoted(words[place + 1].text)))
        place += 2
    return tuple(parts), place


def _size(path: tuple[str, ...], qualifiers: Qualifiers) -> int:
    sizes = (len(one) for one in qualifiers if path[: len(one)] == one and len(one) < len(path))
    return next(sizes, 0)
