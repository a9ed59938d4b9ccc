"""What a session adds to a statement before it runs.

Protocol: none
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.query.names import QualifiedName
from deltalog.statements.changes import DeleteStatement, MergeStatement, UpdateStatement
from deltalog.statements.insert import InsertStatement, SeveralInserts

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.statements.statement import SqlStatement

CHANGES: Final = (DeleteStatement, InsertStatement, MergeStatement, UpdateStatement)
"""The statements that change rows of one table."""


def completed(
    statement: SqlStatement, full_name: Callable[[QualifiedName], QualifiedName], *, merges: bool
) -> SqlStatement:
    """Return a change with all that the session knows of it.

    Args:
        statement: any.
        full_name: returns all parts of a table's name, which may stand before its columns.
        merges: whether changes add columns that only new rows have.
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
