"""MERGE with the method names of `delta.tables`: clauses one by one, then `execute`.

Protocol: none
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from deltalog.errors import InvalidInputError
from deltalog.rows.planned import RowCounts
from deltalog.rows.request import Action, Clause, When
from deltalog.spark.results import numbers
from deltalog.spark.session.failures import check_condition, check_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from deltalog.table import DeltaTable as CoreTable
    from deltalog.transaction import CommitOptions
    from deltalog.verbs.merge import Merge


class DeltaMergeBuilder:
    """Builder of a merge; nothing happens before `execute`.

    In every group of clauses (matched, not matched, not matched by source) the first one whose
    condition is true for a row applies. Conditions and values are Spark SQL or Spark columns.
    Every method returns a new builder and leaves this one unchanged.

    Args:
        spark: the session.
        table: of the core, with the engine of the session.
        merge: with the clauses so far.
        options: of the commit.
    """

    def __init__(
        self, spark: SparkSession, table: CoreTable, merge: Merge, options: CommitOptions
    ) -> None:
        self._spark = spark
        self._table = table
        self._merge = merge
        self._options = options

    def whenMatchedUpdate(  # noqa: N802  # Delta's
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002  # Delta's
    ) -> Self:
        """Update matched rows."""
        return self._with(When.MATCHED, Action.UPDATE, condition, _given(set, "set"))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's
        """Update all columns of matched rows from the source."""
        return self._with(When.MATCHED, Action.UPDATE, condition)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's
        """Delete matched rows."""
        return self._with(When.MATCHED, Action.DELETE, condition)

    def whenNotMatchedInsert(  # noqa: N802  # Delta's
        self,
        condition: str | Column | None = None,
        values: Mapping[str, str | Column] | None = None,
    ) -> Self:
        """Insert source rows without a match; columns not named get their default or NULL."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, _given(values, "values"))

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's
        """Insert source rows without a match, with all columns."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition)

    def whenNotMatchedBySourceUpdate(  # noqa: N802  # Delta's
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002  # Delta's
    ) -> Self:
        """Update rows of the table that no row of the source matches."""
        values = _given(set, "set")
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, values)

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's
        """Delete rows of the table that no row of the source matches."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition)

    def withSchemaEvolution(self) -> Self:  # noqa: N802  # Delta's
        """Add the columns that only the source has to the table."""
        request = replace(self._merge.request, merge_schema=True)
        return self._begun(replace(self._merge, request=request))

    def execute(self) -> DataFrame:
        """Merge, and commit.

        Returns:
            One row: num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows.

        Raises:
            AmbiguousMergeError: several rows of the source would change the same row.
            InvalidInputError, SchemaMismatchError: clauses, columns or types do not go together.
            ConstraintViolationError: new rows break a rule of the table.
            CommitFailedError: other writers won every retry.
        """
        done = self._table.carry_out(self._merge, self._options)
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
        check_condition(condition)
        clause = Clause(when=when, action=action, values=values, condition=condition)
        return self._begun(self._merge.with_clause(clause))

    def _begun(self, merge: Merge) -> Self:
        return type(self)(self._spark, self._table, merge, self._options)


def _given(values: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    check_values(values, name)
    if not values:
        raise InvalidInputError(f"{name}: expected at least one column = value")
    return values
