"""The Spark engine: tasks of a session process rows and files, the driver plans.

Owns which work goes to tasks. What the log alone decides, and small work, is done in this process
as by `LocalEngine`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from deltalog.engine import LocalEngine
from deltalog.errors import InvalidInputError
from deltalog.rows.write_task import WriteJob
from deltalog.snapshot.cut import holds_more_files
from deltalog.spark.engine.bins import rewrite_by_tasks
from deltalog.spark.engine.checkpoint import checkpoint_on_cluster
from deltalog.spark.engine.files import delete_by_tasks, list_by_tasks
from deltalog.spark.engine.merge import plan_merge_by_tasks
from deltalog.spark.engine.rows import SparkRows
from deltalog.spark.engine.select import plan_delete_or_update_by_tasks
from deltalog.spark.reading.scan import SparkScan
from deltalog.spark.reading.state import most_files_here

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from deltalog.configuration import TableConfiguration
    from deltalog.engine import RowSource
    from deltalog.expressions import Expression
    from deltalog.rows.bins import BinRewrite, Rewritten
    from deltalog.rows.planned import PlannedChange
    from deltalog.rows.request import ChangeRequest
    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store
    from deltalog.transaction import PendingTransaction
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles


class SparkEngine(LocalEngine):
    """Processes rows and files by tasks of a session; see `Engine`.

    Args:
        spark: the session, classic or remote.
        objection: why Spark's own Parquet reader is not to be used; None if it is.
        gathers: whether rows to write are gathered by partition first; None follows the table's
            property.
    """

    files_per_deletion = 200_000

    def __init__(
        self, spark: SparkSession, *, objection: str | None = None, gathers: bool | None = None
    ) -> None:
        self._spark = spark
        self._objection = objection
        self._gathers = gathers

    def scan(self, snapshot: Snapshot) -> SparkScan:
        """Return a read of a version, to which conditions may be added."""
        return SparkScan(
            spark=self._spark,
            snapshot=snapshot,
            objection=self._objection,
            most_files=most_files_here(self._spark),
        )

    def open_rows(self, data: Any) -> RowSource:
        """Open a data frame, which stays on the cluster, or anything that `LocalEngine` opens."""
        if isinstance(data, DataFrame):
            return SparkRows(data, gathers=self._gathers)
        return super().open_rows(data)

    def open_merge_source(self, data: Any) -> AbstractContextManager[Any]:
        """Keep the rows of a data frame on the cluster; others are opened as `LocalEngine` does."""
        return _persisted(data) if isinstance(data, DataFrame) else super().open_merge_source(data)

    def plan_change(self, transaction: PendingTransaction, request: ChangeRequest) -> PlannedChange:
        """Plan a change by tasks; locally if the log decides, or the source is no data frame."""
        source = request.source
        if source is not None and not isinstance(source, DataFrame):
            return super().plan_change(transaction, request)
        if request.parameters is not None or not request.error_on_type_mismatch:
            raise InvalidInputError(
                f"cannot {transaction.operation} on Spark with parameters or with "
                "error_on_type_mismatch=False: Spark evaluates conditions and values; say it in "
                "Spark SQL, or give columns"
            )
        plan = plan_delete_or_update_by_tasks if source is None else plan_merge_by_tasks
        return plan(self.scan(transaction.read_snapshot), transaction, request)

    def write_rows(
        self,
        spec: WriteSpec,
        rows: RowSource,
        *,
        predicate: Expression | None = None,
        tells_changes: bool = False,
    ) -> WrittenFiles:
        """Write rows by Spark's own writer where it is fit, else by the tasks that compute them."""
        if not isinstance(rows, SparkRows):
            return super().write_rows(spec, rows, predicate=predicate, tells_changes=tells_changes)
        return rows.write(WriteJob(spec=spec, predicate=predicate, tells_changes=tells_changes))

    def rewrite_bins(self, job: BinRewrite) -> Sequence[Rewritten]:
        """Rewrite all bins in one job, a task for each."""
        return rewrite_by_tasks(self._spark, job) if job.bins else []

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write the checkpoint of a large version by tasks, that of a small one locally."""
        if not holds_more_files(snapshot, most_files_here(self._spark)):
            return super().write_checkpoint(snapshot, at_ms)
        checkpoint_on_cluster(self._spark, snapshot, at_ms=at_ms)
        return False

    def list_files(self, store: Store, configuration: TableConfiguration) -> pa.Table:
        """List the first directory levels locally, and everything below by tasks."""
        return list_by_tasks(self._spark, store, configuration)

    def delete_files(self, store: Store, paths: Sequence[str]) -> None:
        """Delete files, by tasks if there are many."""
        delete_by_tasks(self._spark, store, paths)


@contextmanager
def _persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """Persist a frame: computed a second time, it may give other rows."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()
