"""MERGE on the cluster, with delta.tables' names.

Owns the builder, and the order of a merge: the source is kept, its keys bound the files of the
table that are read, and one join decides about all rows.

Protocol: none
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.clock import Stopwatch
from deltalog.errors import InvalidInputError
from deltalog.rows.merge.clauses import Action, When
from deltalog.spark.engine.merge_plan import (
    SOURCE,
    SparkClause,
    SparkMerge,
    check_sides,
    evolved,
    find_keys,
    joined,
    new_columns,
    reach,
    step_column,
)
from deltalog.spark.engine.row_changes import TARGET, Change, Done, Found, find_rows, row_struct
from deltalog.spark.engine.row_tasks import FILE, OLD, ROW, ROW_ID, STEP
from deltalog.spark.engine.statements import at_version
from deltalog.spark.session.parts import described
from deltalog.spark.writing.plan import schema_of
from deltalog.verbs.merge import Counts, Merged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame

    from deltalog.rows.files import FileOptions
    from deltalog.spark.reading.scan import SparkScan
    from deltalog.transaction import PendingTransaction

_NEW: Final = "__deltalog_new"
"""Tells rows apart that are in no file yet."""


def stage_spark_merge(
    pending: PendingTransaction, merge: SparkMerge, *, scan: SparkScan, options: FileOptions
) -> Merged:
    """Merge rows into the table.

    Args:
        pending: of an existing table.
        merge: what is to be done; its source may be staged again.
        scan: of the table; it is moved to the transaction's version.
        options: of new files.

    Raises:
        InvalidInputError: clauses and columns do not go together.
        AmbiguousMergeError: several rows of the source would change the same row.
        ConstraintViolationError: new rows break a rule of the table.

    Cost: one job over the source; one join, which reads of the table the columns that decide and,
    where rows are updated, all. Files without deletion vectors are copied by tasks.
    """
    merge.check()
    scan, watch = at_version(scan, pending), Stopwatch()
    before = scan.snapshot.configuration
    source = schema_of(merge.source.schema)
    after = evolved(merge, before, source)
    if after is not before:
        pending.set_configuration(after)
    pending.parameters.update(_parameters(merge))
    keys = find_keys(merge, before, source)
    with described(scan.spark, "looking at the source of a merge"):
        pruning, num_source = reach(merge, keys, merge.source, before.schema)
    found = find_rows(scan, pruning, merge.alias)
    names = before.schema.names
    target = found.frame.withColumn(TARGET, row_struct(names))
    theirs = merge.source.withColumn(SOURCE, row_struct(source.names))
    check_sides(merge, target, theirs, (before.schema, source))
    rows = joined(merge, target, theirs)
    rows = rows.withColumn(STEP, step_column(merge, before.schema, source)).where(
        F.col(STEP).isNotNull()
    )
    steps = tuple(clause.action for clause in merge.ordered)
    columns: list[Column] = [F.col(STEP), *new_columns(merge, before, after, source)]
    if any(step is not Action.INSERT for step in steps):
        columns += [F.col(FILE), F.col(ROW)]
        columns += [F.col(ROW_ID)] if before.row_ids_enabled else []
        columns += [F.col(TARGET).alias(OLD)] if before.change_data_feed_enabled else []
    frame = rows.select(*columns)
    if merge.of(When.MATCHED) and merge.allows_repeats:
        frame = _each_once(frame)
    change = Change(
        pending=pending,
        options=options,
        found=found,
        frame=frame,
        steps=steps,
        allows_repeats=merge.allows_repeats,
    )
    matching, done = change.run()
    alone = not merge.of(When.NOT_MATCHED)
    # A row of the source that matches is not inserted: so much of the files was looked at.
    pending.read(pruning, matching.files if alone else found.files, is_row_local=alone)
    return _merged(merge, done, num_source, found, watch.elapsed_ms())


def _each_once(frame: DataFrame) -> DataFrame:
    """Rows of the table once each: several rows of the source may agree that one goes."""
    new = F.when(F.col(ROW).isNull(), F.monotonically_increasing_id())
    return frame.withColumn(_NEW, new).dropDuplicates([FILE, ROW, _NEW]).drop(_NEW)


def _merged(merge: SparkMerge, done: Done, num_source: int, found: Found, ms: int) -> Merged:
    numbers: dict[tuple[When, Action], int] = {}
    for clause, count in zip(merge.ordered, done.counts, strict=True):
        key = (clause.when, clause.action)
        numbers[key] = numbers.get(key, 0) + count
    return Merged(
        num_source_rows=num_source,
        rows=Counts(
            updated=numbers.get((When.MATCHED, Action.UPDATE), 0),
            deleted=numbers.get((When.MATCHED, Action.DELETE), 0),
            updated_by_source=numbers.get((When.NOT_MATCHED_BY_SOURCE, Action.UPDATE), 0),
            deleted_by_source=numbers.get((When.NOT_MATCHED_BY_SOURCE, Action.DELETE), 0),
            inserted=numbers.get((When.NOT_MATCHED, Action.INSERT), 0),
        ),
        applied=done.applied,
        num_files=found.num_table_files,
        num_scanned_files=found.files.num_rows,
        num_touched_files=done.num_touched_files,
        num_added_files=done.num_added_files,
        num_added_bytes=done.num_added_bytes,
        num_change_files=done.num_change_files,
        scan_ms=ms,
    )


def _parameters(merge: SparkMerge) -> dict[str, Any]:
    """For the history, in the reference's words."""

    def shown(when: When) -> list[dict[str, str]]:
        return [
            {
                **({} if one.condition is None else {"predicate": str(one.condition)}),
                "actionType": one.action.value,
            }
            for one in merge.of(when)
        ]

    return {
        "predicate": [str(merge.condition)],
        "matchedPredicates": shown(When.MATCHED),
        "notMatchedPredicates": shown(When.NOT_MATCHED),
        "notMatchedBySourcePredicates": shown(When.NOT_MATCHED_BY_SOURCE),
    }


class DeltaMergeBuilder:
    """A merge that is being put together; nothing happens before `execute`.

    In every group of clauses (matched, not matched, not matched by source) the first one whose
    condition is true for a row decides. Conditions and values are Spark SQL or Spark columns.
    Every method gives another builder, and this one stays as it is.

    Args:
        merge: without clauses.
        run: does it.
    """

    def __init__(self, merge: SparkMerge, run: Callable[[SparkMerge], DataFrame]) -> None:
        self._merge = merge
        self._run = run

    def whenMatchedUpdate(  # noqa: N802  # Delta's
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002  # Delta's
    ) -> Self:
        """Give new values to rows that match."""
        return self._with(When.MATCHED, Action.UPDATE, condition, _given(set, "set"))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's
        """Give all values of the source's row to the row that it matches."""
        return self._with(When.MATCHED, Action.UPDATE, condition)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's
        """Delete rows that match."""
        return self._with(When.MATCHED, Action.DELETE, condition)

    def whenNotMatchedInsert(  # noqa: N802  # Delta's
        self,
        condition: str | Column | None = None,
        values: Mapping[str, str | Column] | None = None,
    ) -> Self:
        """Add rows of the source that match nothing; columns not named get default or NULL."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, _given(values, "values"))

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's
        """Add rows of the source that match nothing, with all their values."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition)

    def whenNotMatchedBySourceUpdate(  # noqa: N802  # Delta's
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002  # Delta's
    ) -> Self:
        """Give new values to rows of the table that match no row of the source."""
        values = _given(set, "set")
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, values)

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> Self:  # noqa: N802  # Delta's
        """Delete rows of the table that match no row of the source."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition)

    def withSchemaEvolution(self) -> Self:  # noqa: N802  # Delta's
        """Add the columns that only the source has to the table."""
        return type(self)(replace(self._merge, merge_schema=True), self._run)

    def execute(self) -> DataFrame:
        """Merge, and commit.

        Returns:
            One row: num_affected_rows, num_updated_rows, num_deleted_rows, num_inserted_rows.

        Raises:
            AmbiguousMergeError: several rows of the source would change the same row.
            InvalidInputError, SchemaMismatchError: clauses, columns or types do not go together.
            ConstraintViolationError: new rows break a rule of the table.
            CommitFailedError: another writer won, again and again.
        """
        return self._run(self._merge)

    def _with(
        self,
        when: When,
        action: Action,
        condition: Any,
        values: Mapping[str, Any] | None = None,
    ) -> Self:
        clause = SparkClause(when=when, action=action, values=values, condition=condition)
        merge = replace(self._merge, clauses=(*self._merge.clauses, clause))
        return type(self)(merge, self._run)


def _given(values: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    if not values:
        raise InvalidInputError(f"{name}: expected at least one column = value")
    return values
