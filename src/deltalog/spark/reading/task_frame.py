"""A DataFrame whose rows Python workers read from scan tasks.

Owns how scan tasks are sent: each Spark task gets one group of them in the function that it runs.
So no format has to be registered, and remote sessions work as well.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.spark.reading.batch_source import TaskPartition, read_partition
from deltalog.spark.reading.splits import split_tasks
from deltalog.spark.session.tasks import numbered_frame
from deltalog.spark.session.types import to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from deltalog.scan import ScanTask
    from deltalog.schema import StructType


def task_frame(
    spark: SparkSession,
    tasks: Sequence[ScanTask],
    rows: StructType,
    *,
    max_bytes: int,
    in_order: bool = False,
    what: str = "",
) -> DataFrame:
    """Return the rows of scan tasks as a DataFrame.

    Args:
        spark: the session.
        tasks: the files to read.
        rows: the schema of the rows, with metadata columns as one struct.
        max_bytes: of a split.
        in_order: keep the order of files, so that neighbours stay together.
        what: names the operator in Spark's plan.

    Raises:
        WorkerMismatchError: workers lack this deltalog.
    """
    schema = to_spark_schema(rows)
    groups = split_tasks(tasks, max_bytes, in_order=in_order)
    if not groups:
        return spark.createDataFrame([], schema)
    partitions = tuple(TaskPartition(group) for group in groups)

    def read(number: int) -> Iterator[pa.RecordBatch]:
        return read_partition(partitions[number], rows)

    return numbered_frame(spark, len(partitions), read, schema, what=what)
