"""Statements of the core, said to `deltalog.spark`.

SQL goes through as it is written. What Spark's interface has no argument for is said otherwise:
expressions, constants and parameters as SQL, `EXCEPT` as a list of columns, and the names `source`
and `target`, which the core always knows, as the aliases that the statement has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

import deltalog.spark
from deltalog.errors import DeltaError
from deltalog.expressions import (
    Column,
    Expression,
    Literal,
    columns,
    lit,
    map_columns,
    parse_sql,
    to_sql,
)
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.changes.request import Action, ChangeRequest, Clause, When
from deltalog.schema import MapType, conform, from_arrow_schema, to_arrow_schema
from deltalog.spark import DeltaTable
from deltalog.spark.session.types import to_spark_schema
from deltalog.storage import open_store
from deltalog.transaction import CommitProperties

Numbers = Mapping[str, int | None]


@dataclass(frozen=True)
class Twin:
    """A copy of a table, which Spark changes.

    Args:
        spark: the session.
        path: of the copy.
        app: makes a statement happen once.
    """

    spark: SparkSession
    path: Path
    app: tuple[str, int] | None = None

    def delete(self, where: Any) -> Numbers:
        """`DELETE`."""
        (row,) = self._table().delete(where).collect()
        return row.asDict()

    def update(self, values: Mapping[Any, object], where: Any) -> Numbers:
        """`UPDATE`."""
        given = {_key(key): self._value(key, value) for key, value in values.items()}
        (row,) = self._table().update(where, given).collect()
        return row.asDict()

    def merge(self, source: pa.Table, merge: ChangeRequest) -> Numbers:
        """`MERGE`."""
        said = _Said(merge)
        frame = self.frame(source).alias(said.source)
        begun = self._table().alias(said.target).merge(frame, said.sql(merge.condition))
        if merge.merge_schema:
            begun = begun.withSchemaEvolution()
        for clause in merge.clauses:
            begun = _with(begun, clause, said, source.schema.names)
        (row,) = begun.execute().collect()
        return row.asDict()

    def write(self, data: pa.Table, **options: Any) -> Numbers:
        """Append, overwrite."""
        deltalog.spark.write(self.frame(data), self.path, txn=self.app, **options)
        return {}

    def compact(self, where: Expression | None = None) -> Numbers:
        """`OPTIMIZE`."""
        builder = self._table().optimize()
        builder = builder if where is None else builder.where(to_sql(where))
        return _files(builder.executeCompaction())

    def z_order(self, names: Sequence[str], where: Expression | None = None) -> Numbers:
        """`OPTIMIZE … ZORDER BY`."""
        builder = self._table().optimize()
        builder = builder if where is None else builder.where(to_sql(where))
        return _files(builder.executeZOrderBy(*names))

    def restore(self, version: int) -> Numbers:
        """`RESTORE`."""
        (row,) = self._table().restoreToVersion(version).collect()
        return {name: row[name] for name in ("num_restored_files", "num_removed_files")}

    def frame(self, data: pa.Table) -> DataFrame:
        """Rows as Spark has them."""
        schema = from_arrow_schema(data.schema)
        rows = conform(data, to_arrow_schema(schema))
        return self.spark.createDataFrame(rows, to_spark_schema(schema))

    def _value(self, key: Any, value: object) -> str:
        """A new value in SQL; a dictionary is a map where the column is one."""
        found = value.value if isinstance(value, Literal) else None
        kinds = {
            one.name: one.type
            for one in load_snapshot(utc_context(open_store(self.path))).configuration.schema
        }
        if not isinstance(found, dict) or not isinstance(kinds.get(key), MapType):
            return _sql(value)
        return f"map({', '.join(_sql(lit(part)) for pair in found.items() for part in pair)})"

    def _table(self) -> DeltaTable:
        found = DeltaTable.forPath(self.spark, self.path)
        return found if self.app is None else found.inTransaction(*self.app)


def app_of(properties: CommitProperties | None) -> tuple[str, int] | None:
    """The application of a commit."""
    if properties is None or not properties.app_transactions:
        return None
    (app,) = properties.app_transactions
    return app.app_id, app.version


class _Said:
    """What a merge says, in the names that Spark is given."""

    def __init__(self, merge: ChangeRequest) -> None:
        self.source = merge.source_alias or "source"
        self.target = merge.target_alias or "target"
        self._parameters = merge.parameters

    def sql(self, value: object) -> str:
        """A condition or a value."""
        if not isinstance(value, str):
            return to_sql(self._renamed(value if isinstance(value, Expression) else lit(value)))
        try:
            parsed = parse_sql(value, parameters=self._parameters)
        except DeltaError:  # Spark is to say what is wrong with it
            return value
        firsts = {path[0] for path in columns(parsed) if len(path) > 1}
        as_it_is = not self._parameters and not firsts & (
            self._sides().keys() - self._sides_given()
        )
        return value if as_it_is else to_sql(self._renamed(parsed))

    def _sides(self) -> dict[str, str]:
        return {"source": self.source, "target": self.target}

    def _sides_given(self) -> set[str]:
        return {self.source, self.target}

    def _renamed(self, expression: Expression) -> Expression:
        def other(column: Column) -> Column:
            first, *rest = column.path
            return Column((self._sides().get(first, first), *rest)) if rest else column

        return map_columns(expression, other)


def _with(builder: Any, clause: Clause, said: _Said, names: Sequence[str]) -> Any:
    condition = None if clause.condition is None else said.sql(clause.condition)
    values = None
    if clause.values is not None:
        values = {_key(key): said.sql(value) for key, value in clause.values.items()}
    elif clause.except_columns:
        left_out = {name.lower() for name in clause.except_columns}
        values = {
            f"`{name}`": f"{said.source}.`{name}`" for name in names if name.lower() not in left_out
        }
    match clause.when, clause.action, values:
        case When.MATCHED, Action.DELETE, _:
            return builder.whenMatchedDelete(condition)
        case When.MATCHED, Action.UPDATE, None:
            return builder.whenMatchedUpdateAll(condition)
        case When.MATCHED, Action.UPDATE, _:
            return builder.whenMatchedUpdate(condition, values)
        case When.NOT_MATCHED, Action.INSERT, None:
            return builder.whenNotMatchedInsertAll(condition)
        case When.NOT_MATCHED, Action.INSERT, _:
            return builder.whenNotMatchedInsert(condition, values)
        case When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, _:
            return builder.whenNotMatchedBySourceUpdate(condition, values)
        case When.NOT_MATCHED_BY_SOURCE, Action.DELETE, _:
            return builder.whenNotMatchedBySourceDelete(condition)
    raise AssertionError(f"Spark's interface cannot say {clause}")


def _key(key: Any) -> str:
    return ".".join(f"`{part}`" for part in key) if isinstance(key, tuple) else key


def _sql(value: object) -> str:
    if isinstance(value, str):
        return value
    return to_sql(value if isinstance(value, Expression) else lit(value))


def _files(frame: DataFrame) -> Numbers:
    (row,) = frame.collect()
    metrics: Row = row["metrics"]
    return {"files added": metrics["numFilesAdded"], "files removed": metrics["numFilesRemoved"]}
