"""Queries, and `EXPLAIN` of any statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.statements.statement import (
    Session,
    SqlStatement,
    StatementAnswer,
    table_of,
)

if TYPE_CHECKING:
    from deltalog.statements.statement import Query


@dataclass(frozen=True, slots=True)
class ExplainStatement(SqlStatement):
    """`EXPLAIN statement`, which returns the plan of any statement."""

    statement: SqlStatement

    def run(self, session: Session) -> StatementAnswer:
        """Return one row with the plan of the statement, without running the statement."""
        text = self.statement.explain(session)
        return StatementAnswer(table_of({"plan": pa.string()}, [(text,)]))


@dataclass(frozen=True, slots=True)
class SelectStatement(SqlStatement):
    """A query."""

    query: Query

    def run(self, session: Session) -> StatementAnswer:
        """Return the rows of the query as a stream."""
        return StatementAnswer(session.select(self.query))

    def explain(self, session: Session) -> str:
        """Return the plan of the query."""
        return session.explain(self.query)
