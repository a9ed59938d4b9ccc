"""`INSERT INTO`, `INSERT OVERWRITE` and `INSERT INTO … REPLACE WHERE`.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from deltalog.expressions import to_sql
from deltalog.expressions.nodes import Column, Comparison, IsNull
from deltalog.expressions.trees import conjunction
from deltalog.statements.reader import Query, SqlCondition
from deltalog.statements.statement import (
    Session,
    SqlStatement,
    StatementAnswer,
    alias_of,
    condition_of,
    counted,
)
from deltalog.verbs.write import Write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.query.names import QualifiedName
    from deltalog.statements.reader import StatementReader
    from deltalog.table import DeltaTable


class Replaces(Enum):
    """Which rows an INSERT removes."""

    NOTHING = "nothing"
    ALL = "all"
    WHERE = "where"
    PARTITIONS = "partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertStatement(SqlStatement):
    """`INSERT`.

    Args:
        table: that gets the rows.
        query: gives them.
        columns: of the table, in the order of the query's columns; None is all of them.
        is_by_name: whether the query's columns go by their names.
        partition: constants of `PARTITION (column = value)`; None is a column of the query.
        replaces: which rows are removed.
        where: of `REPLACE WHERE`.
        evolves: whether columns are added that only the query has.
    """

    table: QualifiedName
    query: Query
    columns: Sequence[str] | None = None
    is_by_name: bool = False
    partition: Mapping[str, SqlCondition | None] | None = None
    replaces: Replaces = Replaces.NOTHING
    where: SqlCondition | None = None
    evolves: bool = False

    def run(self, session: Session) -> StatementAnswer:
        """Write the rows, and return their number."""
        table = session.open(self.table)
        constants = self._constants(session, table)
        data = session.insertable(
            self.query,
            table,
            columns=None if self.is_by_name else self._columns(table, constants),
            constants=constants,
            target=self.table,
            evolves=self.evolves,
        )
        replaced = self._replaced(session, table, constants)
        overwrites = self.replaces is not Replaces.NOTHING
        verb = Write(
            data=data,
            mode="overwrite" if overwrites else "append",
            schema_mode="merge" if self.evolves else None,
            predicate=replaced,
            dynamic=self.replaces is Replaces.PARTITIONS and replaced is None,
            logged=None if replaced is None else {
                "mode": "Overwrite", "partitionBy": [], "predicate": to_sql(replaced),
            },
        )  # fmt: skip
        ran = table.carry_out(verb)
        rows = 0 if ran.value is None else ran.value.written.num_rows
        metrics = {} if ran.value is None else dict(ran.value.metrics())
        return counted(metrics, num_affected_rows=rows, num_inserted_rows=rows)

    def _constants(self, session: Session, table: DeltaTable) -> dict[str, Expression]:
        found = {}
        for name, value in (self.partition or {}).items():
            if value is not None:
                constant = condition_of(session, value, table, None)
                assert constant is not None  # noqa: S101  # there is a value
                found[name] = constant
        return found

    def _columns(self, table: DeltaTable, constants: Mapping[str, Any]) -> Sequence[str]:
        """Return the columns that the query gives, in its order; partition columns come last."""
        fixed = {name.lower() for name in constants}
        if self.columns is not None:
            return [name for name in self.columns if name.lower() not in fixed]
        names = [name for name in table.schema().names if name.lower() not in fixed]
        last = [name.lower() for name, value in (self.partition or {}).items() if value is None]
        ahead = [name for name in names if name.lower() not in last]
        return [*ahead, *(name for one in last for name in names if name.lower() == one)]

    def _replaced(
        self, session: Session, table: DeltaTable, constants: Mapping[str, Expression]
    ) -> Expression | None:
        """Return which rows are replaced; None is all of them, or those of the partitions."""
        if self.replaces is Replaces.WHERE:
            return condition_of(session, self.where, table, alias_of(self.table, None))
        if self.replaces is not Replaces.PARTITIONS or len(constants) < len(self.partition or {}):
            return None
        parts: list[Expression] = []
        for name, value in constants.items():
            column = Column((name,))
            is_null = getattr(value, "value", value) is None
            parts.append(IsNull(column) if is_null else Comparison("=", column, value))
        return conjunction(parts) if parts else None


def read_insert(reader: StatementReader) -> SqlStatement:
    """Read what follows `INSERT`."""
    evolves = reader.take("WITH SCHEMA EVOLUTION")
    overwrites = reader.expect_one("INTO", "OVERWRITE") == "OVERWRITE"
    reader.take("TABLE")
    table = reader.table()
    partition = _read_partition(reader) if reader.take("PARTITION") else None
    replaces = Replaces.NOTHING
    if overwrites:
        replaces = Replaces.ALL if partition is None else Replaces.PARTITIONS
    by_name = reader.take("BY NAME")
    columns = None
    if not by_name and reader.is_at("(") and not reader.is_at_query:
        columns = reader.listed(lambda: reader.name("a column"))
    where = None
    if not overwrites and reader.take("REPLACE WHERE"):
        where, replaces = (
            reader.condition("SELECT", "WITH", "VALUES", "FROM", "TABLE"),
            Replaces.WHERE,
        )
    return InsertStatement(
        table=table,
        query=reader.query(),
        columns=columns,
        is_by_name=by_name,
        partition=partition,
        replaces=replaces,
        where=where,
        evolves=evolves,
    )


def _read_partition(reader: StatementReader) -> dict[str, SqlCondition | None]:
    def read() -> tuple[str, SqlCondition | None]:
        name = reader.name("a partition column")
        return name, reader.condition() if reader.take("=") else None

    return dict(reader.listed(read))
