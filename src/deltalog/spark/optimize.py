"""OPTIMIZE with the method names of `delta.tables`: the same rows in better files.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from deltalog.conditions import as_condition
from deltalog.errors import InvalidInputError
from deltalog.expressions import TextRules, columns
from deltalog.names import name_key
from deltalog.spark.create import names_of
from deltalog.spark.results import optimized_frame
from deltalog.spark.session.failures import check_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from deltalog.table import DeltaTable
    from deltalog.transaction import CommitProperties


class DeltaOptimizeBuilder:
    """Builder of an optimization.

    Args:
        spark: the session.
        table: of the core, with the engine of the session.
        commit_properties: of its commits.
        target_bytes: size of the new files; None follows the table.
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

    def where(self, partitionFilter: str) -> Self:  # noqa: N803  # Delta's
        """Restrict it to partitions for which this filter, and all filters before, are true."""
        check_type(partitionFilter, str, "partitionFilter", "Spark SQL")
        self._filters = (*self._filters, f"({partitionFilter})")
        return self

    def executeCompaction(self) -> DataFrame:  # noqa: N802  # Delta's
        """Compact small files, and drop deleted rows.

        Raises:
            InvalidInputError: a filter uses a column that is not a partition column.
        """
        self._check_filters()
        found = self._table.optimize.compact(
            self._where(), self._target_bytes, commit_properties=self._commit_properties
        )
        return optimized_frame(self._spark, self._table.table_uri, found)

    def executeZOrderBy(self, *cols: str | list[str]) -> DataFrame:  # noqa: N802  # Delta's
        """Cluster rows by Z-order, so that predicates on any of the columns prune many files."""
        names = list(names_of(cols))
        self._check_filters()
        own = {name_key(name) for name in self._partition_columns}
        for name in names:
            if name_key(name) in own:
                raise InvalidInputError(
                    f"cannot z-order by {name!r}: {name} is a partition column. Z-Ordering can "
                    "only be performed on data columns, as a file has one value of the others"
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
        """Refuse filters of rows: files are rewritten whole."""
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
