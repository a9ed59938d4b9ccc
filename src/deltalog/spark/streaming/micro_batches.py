"""Micro-batches of streaming reads: limits, offsets, and the files of a planned batch.

Owns what streams of Delta tables and of shared tables have in common. All rows of a stream have the
schema with which it started.

Protocol: none
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader

from deltalog._json import dumps, loads
from deltalog.errors import IncompatibleChangesError
from deltalog.insight.follow_steps import Offset
from deltalog.scan.changes import incompatibility
from deltalog.schema import StructType
from deltalog.spark.reading.batch_source import TaskPartition, TaskReader
from deltalog.spark.reading.splits import split_tasks
from deltalog.spark.streaming.read_limits import AvailableNow, default_limit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.column_mapping import Mode
    from deltalog.scan import ReadSpec, ScanTask
    from deltalog.spark.reading.options import StreamOptions


_IS_FIRST: Final = "isFirst"
_START: Final = "start"


class MicroBatchReader(TaskReader, DataSourceStreamReader, AvailableNow):
    """Base of streaming readers.

    Attributes:
        _stream: options with the limits of a batch.
        _planned: start, end and files of the batch that was planned last.
    """

    _stream: StreamOptions
    _planned: tuple[dict[str, Any], dict[str, Any], list[ScanTask]] | None = None

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  # PySpark's name
        """Return the batch limit from the options."""
        return default_limit(self._stream.max_files, self._stream.max_bytes)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[TaskPartition]:
        """Return the files of a batch in balanced splits, always the same for the same batch."""
        if self._planned is not None and self._planned[:2] == (start, end):
            tasks = self._planned[2]
        else:
            tasks = self._between(decode_offset(beginning(start, end)), decode_offset(end))
        groups = split_tasks(tasks, self._stream.max_partition_bytes, in_order=True)
        return [TaskPartition(group) for group in groups]

    @abstractmethod
    def _between(self, start: Offset, end: Offset) -> list[ScanTask]:
        """Return the files of a batch that was planned before, perhaps in another process."""


def shown_alike(task: ScanTask, spec: ReadSpec, schema: StructType, mode: Mode) -> ScanTask:
    """Return the task with its rows in the schema with which the stream started.

    Args:
        task: with the schema of its own version.
        spec: how the stream's rows are read.
        schema: of the table when the stream started.
        mode: the table's column mapping.

    Raises:
        IncompatibleChangesError: the rows cannot be read in that schema.
    """
    own = task.spec
    then = StructType([*own.data_columns, *own.partition_columns])
    problem = incompatibility(then, schema, mode)
    if problem is not None:
        raise IncompatibleChangesError(
            f"cannot show rows of {own.table} in the schema that the stream started with: it "
            f"changed, {problem}; start the query again, with a new data frame and its "
            "checkpoint, to go on in today's schema"
        )
    return replace(task, spec=replace(spec, reads_change_type=own.reads_change_type))


def first(offset: dict[str, Any]) -> dict[str, Any]:
    """Mark an offset as the start of a new query."""
    return {**offset, _IS_FIRST: True}


def ending(start: Mapping[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """Return the end offset of a batch; that of a query's first batch also holds its start."""
    return {**end, _START: dict(start)} if start.get(_IS_FIRST) else end


def beginning(start: dict[str, Any], end: Mapping[str, Any]) -> dict[str, Any]:
    """Return the start offset of a batch that was planned before.

    Spark records end offsets only. A query that stopped during its first batch asks again for the
    initial offset, which by then may be after the recorded end: all rows of the batch would be
    lost. So the end holds the start, too. If it does not, the batch is as in Delta: the version
    before the end, as a whole.
    """
    if not start.get(_IS_FIRST):
        return start
    if _START in end:
        begun: dict[str, Any] = end[_START]
        return begun
    one, other = decode_offset(start), decode_offset(end)
    if not one.is_starting_version:
        return start
    if other.is_starting_version:
        return encode_offset(replace(other, index=0))
    if one.version < other.version:
        return start
    return encode_offset(
        replace(other, version=other.version - 1, index=0, is_starting_version=True)
    )


def encode_offset(offset: Offset) -> dict[str, Any]:
    """Encode an offset as Spark stores it."""
    found: dict[str, Any] = loads(offset.to_json().encode())
    return found


def decode_offset(given: Mapping[str, Any]) -> Offset:
    """Decode an offset that Spark has stored."""
    return Offset.from_json(dumps(given))
