"""The live files of a version as a DataFrame, and its rows if the files are too many to list.

Owns the plan for the latter: tasks find the files of a piece, Spark repartitions them, and Python
workers read them. The driver never holds the list, which Spark's own Parquet reader would need.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.scan.plan import TASK_COLUMNS, make_task
from deltalog.scan.prune import prune
from deltalog.scan.reader import read_tasks
from deltalog.schema import from_arrow_schema
from deltalog.snapshot.cut import SHARE_BYTES, cut_snapshot
from deltalog.spark.reading.batch_source import with_metadata_struct
from deltalog.spark.reading.native import output_rows, with_comments
from deltalog.spark.reading.options import MAX_PARTITION_BYTES
from deltalog.spark.reading.splits import OPEN_COST_BYTES
from deltalog.spark.reading.state import NUM_RECORDS, PrunedOnCluster, files_of
from deltalog.spark.session.tasks import numbered_frame
from deltalog.spark.session.types import as_spark_batches, to_spark_arrow, to_spark_schema
from deltalog.spark.session.workers import mapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.expressions import Expression
    from deltalog.scan import ReadSpec, Scan, ScanTask
    from deltalog.schema import StructType
    from deltalog.snapshot import Snapshot

_MOST_TASKS: Final = 20_000


def files_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    predicate: Expression | None = None,
    *,
    names: Sequence[str] = tuple(FILE_SCHEMA.names),
    share_bytes: int = SHARE_BYTES,
) -> DataFrame:
    """Return a row for each file that may hold rows for which `predicate` is true.

    Args:
        spark: the session.
        snapshot: whose files.
        predicate: resolved against the snapshot's schema; None keeps all files.
        names: columns of `FILE_SCHEMA`; `numRecords` is appended.
        share_bytes: how much of the checkpoint a task reads.

        Cost: on the driver the commits after the checkpoint; then a task for each share.
    """
    cut = snapshot.read_log(lambda state: cut_snapshot(snapshot, state, share_bytes=share_bytes))
    schema = _schema(names)

    def find(number: int) -> Iterator[pa.RecordBatch]:
        arrow = to_spark_arrow(schema)
        for piece in cut.small_pieces(number):
            files = files_of(prune(piece, predicate), names)
            yield from as_spark_batches(files.to_batches(max_chunksize=1 << 14), arrow)

    return numbered_frame(spark, cut.num_pieces, find, to_spark_schema(schema))


def _schema(names: Sequence[str]) -> StructType:
    fields = [FILE_SCHEMA.field(name) for name in names]
    return from_arrow_schema(pa.schema([*fields, pa.field(NUM_RECORDS, pa.int64())]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The plan of a scan with more files than the driver lists.

    Args:
        scan: what is read.
        pruned: has the number of files.
        most_files: most files that the driver lists.
    """

    scan: Scan
    pruned: PrunedOnCluster
    most_files: int

    def explain(self) -> list[str]:
        """Explain who reads how many files, and why."""
        return [
            f"read by Python workers: {self.pruned.num_left} files",
            f"because they are more than {self.most_files}, and their list stays on the cluster",
        ]


def cluster_frame(spark: SparkSession, plan: ClusterPlan) -> DataFrame:
    """Return all rows of a plan's files: the predicate has pruned files, but filters no rows.

    Args:
        spark: the session.
        plan: how the files are read.
    """
    spec, snapshot = plan.scan.spec, plan.scan.snapshot
    files = files_frame(spark, snapshot, spec.predicate, names=TASK_COLUMNS)
    cost = plan.pruned.left_bytes + plan.pruned.num_left * OPEN_COST_BYTES
    count = max(1, min(_MOST_TASKS, cost // MAX_PARTITION_BYTES))
    rows = output_rows(spec)
    read = _reading(snapshot, spec, rows)
    return with_comments(mapped(files.repartition(count), read, to_spark_schema(rows)), rows)


def _reading(
    snapshot: Snapshot, spec: ReadSpec, rows: StructType
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def tasks(files: Iterable[pa.RecordBatch]) -> Iterator[ScanTask]:
        for batch in files:
            for row in batch.to_pylist():
                yield make_task(snapshot, spec, row)

    def read(files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = (with_metadata_struct(batch, rows) for batch in read_tasks(tasks(files)))
        yield from as_spark_batches(batches, to_spark_arrow(rows))

    return read
