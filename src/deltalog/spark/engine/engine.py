"""The Spark engine: the driver plans an operation, and Spark tasks process its rows and files.

The engine decides which work tasks do. As in `LocalEngine`, the driver itself does small work, and
work that needs only the log.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # PySpark's convention

from deltalog._util.clock import Stopwatch
from deltalog._util.readable import FILE, counted
from deltalog.data.scan.prune import judge
from deltalog.data.write.open_files import discard_job, new_job
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.log.snapshot.splits import holds_more_files
from deltalog.operations.changes.apply import balanced
from deltalog.operations.changes.assign import check_identities
from deltalog.operations.changes.bins import BinGroup, BinTask
from deltalog.operations.changes.local import LocalChange
from deltalog.operations.changes.request import Action, logged_condition
from deltalog.operations.changes.task_writes import WriteJob
from deltalog.operations.engine import (
    LocalEngine,
    SeenTable,
    listed_below,
    listed_files,
    listing_of,
)
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.spark.engine.apply import FrameChange, find_candidates, row_struct
from deltalog.spark.engine.checkpoint import checkpoint_on_cluster
from deltalog.spark.engine.merge import plan_merge_by_tasks
from deltalog.spark.engine.readable import ReadablePlan, readable_errors
from deltalog.spark.engine.row_tasks import (
    CLAUSE,
    NEW,
    OLD,
    OLD_FILE,
    OLD_POSITION,
    ROW_ID,
    checked_values,
    new_struct,
    parse_assignments,
)
from deltalog.spark.engine.rows import SparkRows
from deltalog.spark.reading.batch_source import OPEN_COST_BYTES
from deltalog.spark.reading.conditions import as_spark_condition
from deltalog.spark.reading.scan import SparkScan
from deltalog.spark.reading.state import most_files_here
from deltalog.spark.session.tasks import decode_all, decode_message, run_for_each, run_tasks
from deltalog.spark.session.types import quoted
from deltalog.storage import LevelStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from deltalog._util.cards import ProgressCount
    from deltalog._util.paths import FileInfo
    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.written import WrittenFiles
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.changes.bins import Bin, BinRewrite, Rewritten
    from deltalog.operations.changes.key_tasks import KeyIndexJob, KeyIndexReport
    from deltalog.operations.changes.request import ChangeRequest, PlannedChange
    from deltalog.operations.engine import RowSource
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction


class SparkEngine(LocalEngine):
    """Engine that processes rows and files with Spark tasks; see `Engine`.

    Args:
        spark: the session, classic or remote.
        objection: the reason why Spark's own Parquet reader must not be used; None if it may be
            used.
        gathers: whether the rows of each partition are moved to few tasks before a write; None
            means the table's property.
    """

    files_per_deletion = 200_000

    def __init__(
        self, spark: SparkSession, *, objection: str | None = None, gathers: bool | None = None
    ) -> None:
        self._spark = spark
        self._objection = objection
        self._gathers = gathers

    def scan(self, snapshot: Snapshot) -> SparkScan:
        """Return a scan of a version; conditions can be added to the scan."""
        return SparkScan(
            spark=self._spark,
            snapshot=snapshot,
            objection=self._objection,
            most_files=most_files_here(self._spark),
        )

    def open_rows(self, data: Any) -> RowSource:
        """Return the rows of a dataframe without collecting them, or of data for `LocalEngine`."""
        if isinstance(data, DataFrame):
            return SparkRows(data, gathers=self._gathers)
        return super().open_rows(data)

    def open_merge_source(self, data: Any) -> AbstractContextManager[Any]:
        """Open a dataframe without collecting it; see `LocalEngine` for other sources."""
        return _persisted(data) if isinstance(data, DataFrame) else super().open_merge_source(data)

    def plan_change(self, transaction: PendingTransaction, request: ChangeRequest) -> PlannedChange:
        """Plan a change that tasks apply.

        The change is planned and applied locally if the log alone is sufficient, or if the source
        is not a dataframe.
        """
        source = request.source
        if source is not None and not isinstance(source, DataFrame):
            return super().plan_change(transaction, request)
        if request.parameters is not None or not request.error_on_type_mismatch:
            raise InvalidInputError(
                f"cannot {transaction.operation} on Spark with parameters or with "
                "error_on_type_mismatch=False, because Spark evaluates conditions and values; "
                "write them in Spark SQL, or pass columns"
            )
        plan = plan_delete_or_update_by_tasks if source is None else plan_merge_by_tasks
        attempt = f"run {transaction.operation} on {transaction.store.root}"
        with readable_errors(attempt):
            planned = plan(self.scan(transaction.read_snapshot), transaction, request)
        return ReadablePlan(planned, attempt)

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Write rows with Spark's own writer if its files are correct, else in Python workers."""
        if not isinstance(rows, SparkRows):
            return super().write_rows(spec, rows, predicate=predicate, tells_changes=tells_changes)
        with readable_errors(f"write rows to {spec.store.root}"):
            return rows.write(WriteJob(spec=spec, predicate=predicate, tells_changes=tells_changes))

    def rewrite_bins(self, job: BinRewrite) -> Sequence[Rewritten]:
        """Rewrite all bins in one job. A task rewrites one large bin, or several small ones."""
        return rewrite_by_tasks(self._spark, job) if job.bins else []

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint: in tasks if the version has many files, else locally."""
        if not holds_more_files(snapshot, most_files_here(self._spark)):
            return super().write_checkpoint(snapshot, at_ms)
        checkpoint_on_cluster(self._spark, snapshot, at_ms=at_ms)
        return False

    def list_files(self, store: Store, configuration: TableConfiguration) -> pa.Table:
        """List the first levels of directories locally, and the deeper levels in tasks."""
        return list_by_tasks(self._spark, store, configuration)

    def delete_files(self, store: Store, paths: Sequence[str]) -> None:
        """Delete files: in tasks if there are many, else locally."""
        delete_by_tasks(self._spark, store, paths)

    def index_keys(
        self, job: KeyIndexJob, files: pa.Table, progress: ProgressCount
    ) -> Sequence[KeyIndexReport]:
        """Index the keys of files: in tasks if they are large, else locally."""
        from deltalog.operations.changes.key_tasks import file_groups  # noqa: PLC0415  # needs NumPy

        groups = file_groups(files, _MOST_TASKS)
        if len(groups) < 2:
            return super().index_keys(job, files, progress)
        store = job.snapshot.store
        messages = run_for_each(self._spark, groups, job.run, f"indexing keys of {store.root}")
        return decode_all(messages, store, lambda _: ())


@contextmanager
def _persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Persist a frame during the block. If Spark computed it twice, the rows could differ.

    A frame that the user has persisted remains persisted.
    """
    level = frame.storageLevel
    if level.useMemory or level.useDisk:
        yield frame
        return
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


# --- rewriting of bins of files


_LEAST_REWRITTEN_BYTES: Final = 8 << 20
_LEAST_COST_BYTES: Final = 32 << 20
_ENOUGH_TASKS: Final = 64
"""The number of tasks that small bins are divided into at most, because a task takes 70 ms to start
and a small bin some milliseconds to rewrite."""


def groups_of(bins: Sequence[Bin]) -> list[BinGroup]:
    """Divide bins into groups, one for each task. Large bins are alone, small ones are together."""
    sizes = [one.size_bytes for one in bins]
    costs = [
        size + one.files.num_rows * OPEN_COST_BYTES for size, one in zip(sizes, bins, strict=True)
    ]
    few = min(_ENOUGH_TASKS, -(-sum(costs) // _LEAST_COST_BYTES))
    count = max(few, -(-sum(sizes) // _LEAST_REWRITTEN_BYTES))
    return [BinGroup.of(bins[at : at + length]) for at, length in balanced(costs, count)]


def rewrite_by_tasks(spark: SparkSession, job: BinRewrite) -> list[Rewritten]:
    """Rewrite all bins in one Spark job; the commit interval of `job` is ignored."""
    store, job_id = job.transaction.store, new_job()
    messages = run_for_each(
        spark,
        groups_of(job.bins),
        BinTask.of(replace(job, job_id=job_id)).run,
        f"optimizing {store.root}",
        discard=partial(discard_job, store, job_id),
    )
    done: list[list[Rewritten]] = decode_all(
        messages, store, lambda part: [path for one in part for path in one.written.paths]
    )
    return list(chain.from_iterable(done))


# --- VACUUM in tasks: listing of directories, and deletion of files


FILES_PER_TASK: Final = "spark.deltalog.vacuum.filesPerTask"
"""Session setting: the number of files that one task deletes. If a VACUUM deletes no more files
than this number, the driver deletes them."""
_FILES_PER_TASK: Final = 5_000
_MOST_TASKS: Final = 256
_LOG: Final = "_delta_log"


def list_by_tasks(spark: SparkSession, store: Store, configuration: TableConfiguration) -> pa.Table:
    """List the files of a table in tasks; returns the same as `listed_files` of the core.

    Cost: the driver lists the first levels of directories, and tasks list the deeper levels.
    """
    files_per_task(spark)  # to raise an error early if the setting is invalid
    table = SeenTable.of(store)
    if table is None or not isinstance(store, LevelStore):
        return listed_files(store, configuration)
    infos, directories = _first_levels(store)
    found = [listing_of(infos, configuration)]
    if directories:
        count = min(len(directories), _MOST_TASKS)
        groups = [tuple(directories[start::count]) for start in range(count)]
        work = partial(list_task, table, configuration)
        for message in run_for_each(spark, groups, work, f"listing {store.root}"):
            part = decode_message(message)
            if isinstance(part, tuple):  # the task cannot access the table; list its directories
                found += [listed_below(store, one, configuration) for one in part]
            else:
                found.append(part)
    return pa.concat_tables(found)


def delete_by_tasks(spark: SparkSession, store: Store, paths: Sequence[str]) -> None:
    """Delete files. Missing files are ignored.

    Raises:
        StorageError: some files could not be deleted.
    """
    together = files_per_task(spark)
    table = None if len(paths) <= together else SeenTable.of(store)
    if table is None:
        store.delete_many(paths)
        return
    # Send the paths as rows, because Spark sends the variables of a function to every task.
    frame = spark.createDataFrame(pa.table({"path": pa.array(paths, pa.string())}))
    frame = frame.repartition(-(-len(paths) // together))
    what = f"deleting {counted(len(paths), FILE)} of {store.root}"
    errors: list[DeltaError] = []
    for message in run_tasks(frame, partial(delete_task, table), what):
        try:
            left: Sequence[str] = decode_message(message)
            if left:
                store.delete_many(left)
        except DeltaError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def list_task(
    table: SeenTable, configuration: TableConfiguration, directories: tuple[str, ...]
) -> pa.Table | tuple[str, ...]:
    """List the directories of one task.

    Returns:
        The files, in the form of `listed_files`. If the task does not see the table, the names of
        the directories, which the driver must list.
    """
    if not table.is_seen:
        return directories
    found = [listed_below(table.store, name, configuration) for name in directories]
    return pa.concat_tables(found).combine_chunks()


def delete_task(table: SeenTable, batches: Iterable[pa.RecordBatch]) -> Sequence[str] | DeltaError:
    """Delete the files of one task; see `SeenTable.delete`."""
    return table.delete([str(path) for batch in batches for path in batch.column(0).to_pylist()])


def _first_levels(store: LevelStore) -> tuple[list[FileInfo], list[str]]:
    """Return the files of the first directory levels, and the directories that tasks must list."""
    files, level = store.list_level("")
    level = [name for name in level if name != _LOG]
    while len(level) == 1:  # descend, because one directory would occupy only one task
        infos, level = store.list_level(level[0])
        files += infos
    return files, level


def files_per_task(spark: SparkSession) -> int:
    """Return the number of files that one task deletes.

    Raises:
        InvalidInputError: the session's setting is not a number above 0.
    """
    text = spark.conf.get(FILES_PER_TASK, None) or str(_FILES_PER_TASK)
    if not text.isdecimal() or not int(text):
        raise InvalidInputError(f"cannot use {FILES_PER_TASK}={text!r}: expected a number above 0")
    return int(text)


# --- DELETE and UPDATE in tasks


def plan_delete_or_update_by_tasks(
    scan: SparkScan, transaction: PendingTransaction, request: ChangeRequest
) -> PlannedChange:
    """Plan a DELETE or UPDATE of the rows for which a condition is true.

    Args:
        scan: a scan of the transaction's version.
        transaction: a transaction on an existing table.
        request: the user's request, which has no source.

    Raises:
        InvalidInputError: a column does not exist, or must not be assigned.

    Cost: no job before the change is applied. Tasks then read the columns of the condition from the
    files that remain after pruning. If the log alone is sufficient, no job is needed.
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
    # As in Delta Spark, the history contains the condition as the user wrote it.
    transaction.parameters["predicate"] = [] if condition is None else [logged_condition(condition)]
    return found


def _is_exact(snapshot: Snapshot, condition: Expression) -> bool:
    """Return whether the log alone shows which files contain only rows that match a condition."""
    # Call `judge` for an empty list of files, because `is_exact` depends only on the columns of the
    # condition.
    none = FILE_SCHEMA.empty_table().column("partitionValues")
    return judge(
        condition,
        snapshot.configuration,
        num_files=0,
        partition_values=lambda: none,
        stats=lambda schema: schema.empty_table(),
        time_zone=snapshot.context.time_zone,
    ).is_exact
