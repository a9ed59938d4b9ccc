"""MERGE and OPTIMIZE with the methods of `delta.tables`.

Protocol: none
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from deltalog._util.builders import RunsOnce
from deltalog._util.escaping import name_key
from deltalog._util.similar_names import SimilarNames, answers_options
from deltalog.errors import InvalidInputError
from deltalog.expressions import TextRules, columns
from deltalog.operations.arguments import as_condition
from deltalog.operations.changes.request import Action, Clause, RowCounts, When
from deltalog.spark.create import names_of
from deltalog.spark.results import numbers, optimized_frame
from deltalog.spark.session.failures import (
    check_condition,
    check_type,
    check_values,
    speaks_spark,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from deltalog.operations.merge import Merge
    from deltalog.table import DeltaTable
    from deltalog.table import DeltaTable as CoreTable
    from deltalog.transaction import CommitOptions, CommitProperties


_OPTIONS: Final = {
    **dict.fromkeys(("predicate", "where", "filter", "on"), "condition=…"),
    **dict.fromkeys(("updates", "assignments", "columns", "set_"), "set={column: value}"),
    "values": "set={column: value}",
    "set": "values={column: value}",
}
"""Argument in other libraries → what to use instead, for errors."""


@speaks_spark
@answers_options(_OPTIONS)
class DeltaMergeBuilder(SimilarNames, RunsOnce):
    """Builder of a merge. Only `execute` changes the table.

    A builder with clauses that is freed without a call of `execute` causes a `RuntimeWarning`.

    There are three groups of clauses: matched, not matched, and not matched by source. In each
    group, the first clause whose condition is true for a row applies to the row. Conditions and
    values are Spark SQL or Spark columns. Every method returns a new builder, and does not change
    this builder.

    Args:
        spark: the session.
        table: the core's table, with the engine of the session.
        merge: the merge with its clauses so far.
        options: the options of the commit.
    """

    def __init__(
        self, spark: SparkSession, table: CoreTable, merge: Merge, options: CommitOptions
    ) -> None:
        self._spark = spark
        self._table = table
        self._merge = merge
        self._options = options
        self._is_continued = False

    def _left_undone(self) -> str | None:
        if self._is_continued or not self._merge.request.clauses:
            return None
        return f"the merge into {self._table!r} was never run: call execute() after the clauses"

    def whenMatchedUpdate(  # noqa: N802  # Delta's name
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002  # Delta's name
    ) -> Self:
        """Update rows of the table that a source row matches."""
        return self._with(When.MATCHED, Action.UPDATE, condition, _given(set, "set", condition))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's name
        """Update all columns of matched rows with the values of the source."""
        return self._with(When.MATCHED, Action.UPDATE, condition)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's name
        """Delete rows of the table that a source row matches."""
        return self._with(When.MATCHED, Action.DELETE, condition)

    def whenNotMatchedInsert(  # noqa: N802  # Delta's name
        self,
        condition: str | Column | None = None,
        values: Mapping[str, str | Column] | None = None,
    ) -> Self:
        """Insert source rows without a match. Other columns get their default or NULL."""
        return self._with(
            When.NOT_MATCHED, Action.INSERT, condition, _given(values, "values", condition)
        )

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's name
        """Insert source rows without a match, with all their columns."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition)

    def whenNotMatchedBySourceUpdate(  # noqa: N802  # Delta's name
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002  # Delta's name
    ) -> Self:
        """Update the table's rows that no source row matches."""
        values = _given(set, "set", condition)
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, values)

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's name
        """Delete the table's rows that no source row matches."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition)

    def withSchemaEvolution(self) -> Self:  # noqa: N802  # Delta's name
        """Let the merge add columns of the source that the table lacks."""
        request = replace(self._merge.request, merge_schema=True)
        return self._begun(replace(self._merge, request=request))

    def execute(self) -> DataFrame:
        """Run and commit the merge.

        Returns:
            One row with the columns `num_affected_rows`, `num_updated_rows`, `num_deleted_rows` and
            `num_inserted_rows`.

        Raises:
            AmbiguousMergeError: several rows of the source would change the same row of the table.
            InvalidInputError: the clauses contradict each other.
            SchemaMismatchError: a column is missing, or has an incompatible type.
            ConstraintViolationError: a new row violates a constraint of the table.
            CommitFailedError: commits of other writers conflicted with the merge in every attempt.
        """
        self._is_continued = True
        done = self._table.execute(self._merge, self._options)
        rows: RowCounts = RowCounts() if done.value is None else done.value.changed.rows
        return numbers(
            self._spark,
            {
                "num_affected_rows": rows.all_updated + rows.all_deleted + rows.inserted,
                "num_updated_rows": rows.all_updated,
                "num_deleted_rows": rows.all_deleted,
                "num_inserted_rows": rows.inserted,
            },
        )

    def _with(
        self, when: When, action: Action, condition: Any, values: Mapping[str, Any] | None = None
    ) -> Self:
        self._is_continued = True  # an error in the next lines says enough
        check_condition(condition)
        clause = Clause(when=when, action=action, values=values, condition=condition)
        return self._begun(self._merge.with_clause(clause))

    def _begun(self, merge: Merge) -> Self:
        self._is_continued = True
        return type(self)(self._spark, self._table, merge, self._options)


def _given(values: Mapping[str, Any] | None, name: str, condition: object) -> Mapping[str, Any]:
    check_values(values, name, condition)
    if not values:
        raise InvalidInputError(f"{name}: expected at least one assignment of a value to a column")
    return values


# --- OPTIMIZE


@speaks_spark
@answers_options(
    {
        **dict.fromkeys(("predicate", "condition", "partition_filter"), "partitionFilter=…"),
        **dict.fromkeys(("columns", "zorder_by"), "executeZOrderBy(column, …)"),
    }
)
class DeltaOptimizeBuilder(SimilarNames, RunsOnce):
    """Builder of an OPTIMIZE, which `executeCompaction` or `executeZOrderBy` runs.

    Args:
        spark: the session.
        table: the core's table, with the engine of the session.
        commit_properties: the properties of the commits.
        target_bytes: the size of the new files in bytes; None means the table's setting.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: DeltaTable,
        commit_properties: CommitProperties,
        target_bytes: int | None = None,
    ) -> None:
        self._spark = spark
        self._table = table
        self._commit_properties = commit_properties
        self._target_bytes = target_bytes
        self._filters: tuple[str, ...] = ()
        self._is_run = False

    def _left_undone(self) -> str | None:
        if self._is_run or not self._filters:
            return None
        return (
            f"OPTIMIZE of {self._table!r} was never run: call executeCompaction() or "
            "executeZOrderBy(columns)"
        )

    def where(self, partitionFilter: str) -> Self:  # noqa: N803  # Delta's name
        """Optimize only partitions for which this filter and all earlier filters are true."""
        check_type(partitionFilter, str, "partitionFilter", "Spark SQL")
        self._filters = (*self._filters, f"({partitionFilter})")
        return self

    def executeCompaction(self) -> DataFrame:  # noqa: N802  # Delta's name
        """Compact small files. Rows that deletion vectors mark as deleted are removed.

        Raises:
            InvalidInputError: a filter uses a column that is not a partition column.
        """
        self._is_run = True
        self._check_filters()
        found = self._table.optimize.compact(
            self._where(), self._target_bytes, commit_properties=self._commit_properties
        )
        return optimized_frame(self._spark, self._table.table_uri, found)

    def executeZOrderBy(self, *cols: str | list[str]) -> DataFrame:  # noqa: N802  # Delta's name
        """Sort rows in Z-order, so that a predicate on any of the columns prunes many files."""
        self._is_run = True
        names = list(names_of(cols))
        self._check_filters()
        own = {name_key(name) for name in self._partition_columns}
        for name in names:
            if name_key(name) in own:
                raise InvalidInputError(
                    f"cannot z-order by {name!r}: {name} is a partition column. Z-Ordering can "
                    "only be performed on data columns, as a file has one value of each partition "
                    "column"
                )
        found = self._table.optimize.z_order(
            names,
            self._where(),
            self._target_bytes,
            commit_properties=self._commit_properties,
        )
        return optimized_frame(self._spark, self._table.table_uri, found, is_z_order=True)

    @property
    def _partition_columns(self) -> tuple[str, ...]:
        return tuple(self._table.metadata().partition_columns)

    def _check_filters(self) -> None:
        """Refuse filters on data columns, because OPTIMIZE selects whole partitions."""
        snapshot = self._table.snapshot
        schema, session = snapshot.configuration.schema, snapshot.context.session
        where = self._where()
        condition = as_condition(schema, where, session=session, text_rules=TextRules.NONE)
        used = () if condition is None else sorted({path[0] for path in columns(condition)})
        known = ", ".join(self._partition_columns)
        for name in used:
            if name not in self._partition_columns:
                raise InvalidInputError(
                    f"cannot optimize: Predicate references non-partition column '{name}'. Only "
                    f"the partition columns may be referenced: [{known}], as files are rewritten "
                    "whole"
                )

    def _where(self) -> str | None:
        return " AND ".join(self._filters) or None
