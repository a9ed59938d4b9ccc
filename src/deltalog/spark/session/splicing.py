"""Queries in which data frames stand for tables.

PySpark knows the frames by their names in braces, also on Spark Connect. A frame has no name but
its alias, so columns that are called by longer names of their tables get the alias, too.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.expressions.render import quote_name
from deltalog.names import name_key, path_key
from deltalog.query.translate import TableChangesCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.query.located import LocatedColumn, LocatedQuery, LocatedTable


@dataclass(frozen=True, slots=True)
class TableFrame:
    """A table of a query for which a data frame stands.

    Args:
        table: where it is.
        name: of the frame in braces.
        full: all parts of the table's name in its catalog, in lower case.
    """

    table: LocatedTable
    name: str
    full: tuple[str, ...]

    @property
    def last(self) -> str:
        """What columns call the table: the last part of its name."""
        table = self.table.table
        own = table.table if isinstance(table, TableChangesCall) else table
        return own.parts[-1]


def spliced(query: LocatedQuery, frames: Sequence[TableFrame]) -> str:
    """Return the text of a query for PySpark's formatter, with names of frames in braces.

    Args:
        query: and where it names tables and columns.
        frames: of some of its tables.

    Raises:
        InvalidInputError: a column may be one of several tables.
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
    """Return the frame that a column names by more than one part, and how many these are."""
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
    """Whether columns name a table by more than its last part, which another table has as well.

    Raises:
        InvalidInputError: some columns name it, or the other one, by that part alone.
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
                f"cannot tell which table the column {'.'.join(column.parts)} is of: several are "
                f"called {frame.last}; give them aliases"
            )
    return True


def _by_last(query: LocatedQuery, scope: int, last: str) -> Iterator[LocatedColumn]:
    return (one for one in query.columns if scope in one.scopes and name_key(one.parts[0]) == last)


def _escaped(text: str) -> str:
    """A part of a query in which braces stand for themselves."""
    return text.replace("{", "{{").replace("}", "}}")
