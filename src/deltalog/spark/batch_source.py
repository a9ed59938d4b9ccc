"""The batch reader of the format `deltalog`: files to Arrow batches, in Spark's Python workers.

Owns one read: the scan it stands for, its splits, and the filters that Spark hands in.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from deltalog import __version__
from deltalog.errors import InvalidInputError
from deltalog.scan import METADATA_COLUMNS, plan_scan, read_tasks
from deltalog.schema import Field, StructType, from_arrow_type
from deltalog.spark.opening import open_table
from deltalog.spark.splits import split_tasks
from deltalog.spark.types import as_spark_batches, to_spark_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import types as spark_types

    from deltalog.scan import ScanTask
    from deltalog.spark.options import ReadOptions

METADATA: Final = "_metadata"


class TaskPartition(InputPartition):
    """Files for one Spark task.

    Args:
        tasks: the files.
        version: of deltalog, which the worker must have too.
    """

    def __init__(self, tasks: Sequence[ScanTask]) -> None:
        super().__init__(None)
        self.tasks = tuple(tasks)
        self.version = __version__

    def check(self) -> None:
        """Refuse a worker that has another deltalog than the planner.

        Raises:
            InvalidInputError: the versions differ.
        """
        if self.version != __version__:
            raise InvalidInputError(
                f"this Python worker has deltalog {__version__}, and the read was planned with "
                f"{self.version}: install one version on the driver and on every worker"
            )

    def __repr__(self) -> str:
        return f"TaskPartition({len(self.tasks)} files)"


def read_partition(partition: TaskPartition, rows: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of a partition as Spark takes them.

    Args:
        partition: files.
        rows: the schema of the rows, with metadata columns as the struct `_metadata`.
    """
    partition.check()
    batches = map(with_metadata_struct, read_tasks(partition.tasks))
    yield from as_spark_batches(batches, to_spark_arrow(rows))


def with_metadata_struct(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its metadata columns as one struct `_metadata` behind the others."""
    hidden = [name for name in batch.schema.names if name in METADATA_COLUMNS]
    if not hidden:
        return batch
    parts: list[Any] = [batch.column(name) for name in hidden]
    struct = pa.StructArray.from_arrays(parts, [name.partition(".")[2] for name in hidden])
    shown = [name for name in batch.schema.names if name not in METADATA_COLUMNS]
    arrays: list[Any] = [*(batch.column(name) for name in shown), struct]
    return pa.RecordBatch.from_arrays(arrays, [*shown, METADATA])


def rows_schema(schema: StructType, metadata_columns: Sequence[str]) -> StructType:
    """The schema of rows with the struct `_metadata` behind them, if any of it is asked for."""
    if not metadata_columns:
        return schema
    if METADATA in (name.lower() for name in schema.names):
        raise InvalidInputError(
            "cannot add metadata columns: the table has a column '_metadata' of its own"
        )
    parts = [
        Field(name.partition(".")[2], from_arrow_type(METADATA_COLUMNS[name]))
        for name in metadata_columns
    ]
    return StructType([*schema, Field(METADATA, StructType(parts))])


class BatchReader(DataSourceReader):
    """Reads one version of a table.

    Args:
        options: what is to be read.
        columns: the schema that Spark asks for.
    """

    def __init__(self, options: ReadOptions, columns: spark_types.StructType) -> None:
        self._options = options
        self._columns = tuple(name for name in columns.names if name != METADATA)
        snapshot = open_table(
            options.path,
            options.storage,
            version=options.version,
            timestamp=options.timestamp,
            time_zone=options.time_zone,
        )
        self._snapshot: Any = snapshot
        schema = snapshot.configuration.schema
        known = {field.name: field for field in schema}
        shown = StructType([known[name] for name in self._columns])
        self._rows = rows_schema(shown, options.metadata_columns)

    def partitions(self) -> Sequence[InputPartition]:
        """One partition per balanced split of the files."""
        scan = plan_scan(
            self._snapshot,
            columns=[*self._columns, *self._options.metadata_columns],
            default_timezone=self._options.time_zone,
        )
        groups = split_tasks(list(scan.tasks()), self._options.max_partition_bytes)
        return [TaskPartition(group) for group in groups] or [TaskPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one split."""
        assert isinstance(partition, TaskPartition)  # noqa: S101  # ours: `partitions` made it
        return read_partition(partition, self._rows)

    def __getstate__(self) -> dict[str, Any]:
        """Without the snapshot: workers need their files only."""
        return {name: value for name, value in self.__dict__.items() if name != "_snapshot"}
