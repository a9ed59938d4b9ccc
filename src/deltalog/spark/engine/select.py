"""DELETE and UPDATE by tasks: find the rows of a table that a condition selects.

Owns whether a job is needed: none is run if the log alone decides which files to remove. Spark
evaluates the condition, which may use anything that Spark supports; the part that deltalog can
parse prunes files and goes into the read set.

Protocol: Generated Columns, Identity Columns
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.clock import Stopwatch
from deltalog.rows.assign import check_identities
from deltalog.rows.local import LocalChange
from deltalog.rows.request import Action, logged_condition
from deltalog.scan.judge import judge
from deltalog.spark.engine.apply import FrameChange, find_candidates, row_struct
from deltalog.spark.engine.assign import checked_values, new_struct, parse_assignments
from deltalog.spark.engine.row_tasks import CLAUSE, NEW, OLD, OLD_FILE, OLD_POSITION, ROW_ID
from deltalog.spark.reading.conditions import as_spark_condition
from deltalog.spark.session.types import quoted

if TYPE_CHECKING:
    from deltalog.expressions import Expression
    from deltalog.rows.planned import PlannedChange
    from deltalog.rows.request import ChangeRequest
    from deltalog.snapshot import Snapshot
    from deltalog.spark.reading.scan import SparkScan
    from deltalog.transaction import PendingTransaction


def plan_delete_or_update_by_tasks(
    scan: SparkScan, transaction: PendingTransaction, request: ChangeRequest
) -> PlannedChange:
    """Find the rows of the table that a condition selects.

    Args:
        scan: of the transaction's version.
        transaction: of an existing table.
        request: without a source.

    Raises:
        InvalidInputError: a column does not exist or cannot be assigned.

    Cost: none before rows are applied; then tasks read the condition's columns of the files that
    survive pruning. No job if the log alone decides.
    """
    watch, snapshot, condition = Stopwatch(), scan.snapshot, request.condition
    (clause,) = request.clauses
    deletes = clause.action is Action.DELETE
    configuration, alias = snapshot.configuration, request.target_alias
    schema = configuration.schema
    whole = "true" if condition is None else condition
    session = snapshot.context.session
    understood = as_spark_condition(whole, schema, session, alias=alias, by_spark=True)
    pruning = None if condition is None else understood.pruning
    by_log = condition is None or (
        pruning is not None and understood.is_known and _is_exact(snapshot, pruning)
    )
    found: PlannedChange
    if deletes and by_log:
        found = LocalChange(transaction, replace(request, condition=pruning))
    else:
        candidates = find_candidates(scan, pruning, alias)
        columns = [F.lit(0).alias(CLAUSE), F.col(OLD_FILE), F.col(OLD_POSITION)]
        if not deletes:
            values = parse_assignments(schema, clause.values or {}, alias)
            assigned = checked_values(schema, values, scan.spark)
            check_identities(schema, {path[0] for path in assigned})
            old = {name: F.col(quoted(name)) for name in schema.names}
            columns.append(new_struct(configuration, assigned, old).alias(f"{NEW}0"))
            columns += [F.col(ROW_ID)] if configuration.row_ids_enabled else []
        if configuration.change_data_feed_enabled:
            columns.append(row_struct(schema.names).alias(OLD))
        found = FrameChange(
            transaction=transaction,
            request=request,
            candidates=candidates,
            frame=candidates.frame.where(understood.column).select(*columns),
            watch=watch,
        )
    # As in Delta Spark, the history has the condition as the user wrote it.
    transaction.parameters["predicate"] = [] if condition is None else [logged_condition(condition)]
    return found


def _is_exact(snapshot: Snapshot, condition: Expression) -> bool:
    """Whether the log alone decides which files match, with all of their rows."""
    # That depends on the condition's columns, not on the files.
    none = FILE_SCHEMA.empty_table().column("partitionValues")
    return judge(
        condition,
        snapshot.configuration,
        num_files=0,
        partition_values=lambda: none,
        stats=lambda schema: schema.empty_table(),
        time_zone=snapshot.context.time_zone,
    ).is_exact
