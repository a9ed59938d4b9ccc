"""The streaming reader of the format `deltalog`: what is in a table, then what comes.

Owns how Spark's micro-batches ask for it. Which rows come when, and offsets, are those of
`operations.follow`; all rows of a stream are shown in the schema that it started with.

Protocol: Change Data Files
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from deltalog._json import dumps, loads
from deltalog.errors import DeltaError, IncompatibleChangesError
from deltalog.insight.follow import Follower
from deltalog.insight.follow_steps import FollowOptions, Offset
from deltalog.log.listing import list_log
from deltalog.metadata_columns import METADATA
from deltalog.scan import Moment
from deltalog.scan.changes import incompatibility, open_changes
from deltalog.scan.plan import check_snapshot, read_spec
from deltalog.schema import StructType
from deltalog.snapshot import load_snapshot
from deltalog.spark.reading.batch_source import (
    TaskPartition,
    change_fields,
    check_columns,
    read_partition,
    rows_schema,
)
from deltalog.spark.reading.splits import split_tasks
from deltalog.spark.session.opening import moment_ms, open_latest, open_table
from deltalog.spark.session.workers import InEnvelope
from deltalog.spark.streaming.read_limits import AvailableNow, default_limit, is_everything

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import types as spark_types

    from deltalog.column_mapping import Mode
    from deltalog.scan import ReadSpec, ScanTask
    from deltalog.snapshot import Snapshot
    from deltalog.spark.reading.options import StreamOptions

_ALL: Final = 1 << 62
_IS_FIRST: Final = "isFirst"
_START: Final = "start"


class StreamReader(InEnvelope, DataSourceStreamReader, AvailableNow):
    """Follows a table.

    Args:
        options: what is followed and how.
        columns: the schema that Spark asks for.
        version: the one whose schema the stream shows; None is the latest.

    Raises:
        InvalidInputError: the location names a version: that one never changes.
    """

    def __init__(
        self, options: StreamOptions, columns: spark_types.StructType, version: int | None
    ) -> None:
        self._options = options
        open_latest(options.path, options.storage, doing="follow")
        shown, self._schema = self._shown_snapshot(columns, version)
        check_snapshot(shown)
        rows = (
            StructType([*self._schema, *change_fields()])
            if options.changes
            else rows_schema(self._schema, options.metadata_columns)
        )
        self._rows = check_columns(rows, columns, options.path)
        self._mode = shown.configuration.column_mapping_mode
        self._spec = self._read_spec(shown)
        self._target: Offset | None = None
        self._follower: Follower | None = None
        self._place: tuple[dict[str, Any], bool] | None = None
        self._planned: tuple[dict[str, Any], dict[str, Any], list[ScanTask]] | None = None

    def _shown_snapshot(
        self, columns: spark_types.StructType, version: int | None
    ) -> tuple[Snapshot, StructType]:
        """The snapshot and the schema that the stream shows; if it is gone, today's like it."""
        try:
            shown = self._open(version)
        except DeltaError:
            shown = self._open()
            schema = shown.configuration.schema
            return shown, StructType([one for one in schema if one.name in columns.names])
        return shown, shown.configuration.schema

    def _read_spec(self, shown: Snapshot) -> ReadSpec:
        names = [name for name in self._rows.names if name != METADATA]
        if not self._options.changes:
            columns = [*names, *self._options.metadata_columns]
            return read_spec(shown, columns=columns, predicate=None)
        beyond = shown.version + 1  # no version at all: only the columns are asked for
        return open_changes(shown, start=beyond, columns=names, allow_out_of_range=True).spec

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # PySpark's name
        """Where a query that never ran starts."""
        start: Any = self._options.start
        if isinstance(start, str) and start != "latest":
            start = Moment(moment_ms(start, self._options.time_zone))
        options = self._following(everything=False)
        return first(_told(Follower(self._open(), start=start, options=options).offset))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  # PySpark's name
        """What the options say of the size of a batch."""
        return default_limit(self._options.max_files, self._options.max_bytes)

    def latestOffset(  # noqa: N802  # PySpark's name
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """How far the next batch goes.

        PySpark 4.1 says neither where it starts nor what limits it: then all that is there comes.
        """
        if start is None:
            latest = self._open()
            return _told(Offset(table_id=latest.metadata.id, version=latest.version + 1))
        everything = is_everything(limit)
        if self._follower is None or self._place != (start, everything):
            self._follower = self._follow(_offset(start), everything=everything, until=self._target)
        self._place = None  # until this went well
        tasks, offset = self._next_tasks(self._follower, everything=everything)
        end = ending(start, _told(offset)) if tasks else dict(start)
        if not tasks or offset == self._follower.offset:
            self._place = (end, everything)
        self._planned = (dict(start), end, tasks)
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The files of a batch, in balanced splits; the same however often it is asked for."""
        if self._planned is not None and self._planned[:2] == (start, end):
            tasks = self._planned[2]
        else:
            begin = _offset(beginning(start, end))
            follower = self._follow(begin, everything=True, until=_offset(end))
            tasks = []
            while found := self._step_tasks(follower):
                tasks += found
        groups = split_tasks(tasks, self._options.max_partition_bytes, in_order=True)
        return [TaskPartition(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one split."""
        assert isinstance(partition, TaskPartition)  # noqa: S101  # ours: `partitions` made it
        return read_partition(partition, self._rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # PySpark's name
        """Let the stream end with what is there now."""
        latest = self._open()
        self._target = Offset(table_id=latest.metadata.id, version=latest.version + 1)
        self._follower = None

    def __getstate__(self) -> dict[str, Any]:
        """Only what workers need: they get their files with each partition."""
        return {"_rows": self._rows}

    def _open(self, version: int | None = None) -> Snapshot:
        options = self._options
        return open_table(
            options.path, options.storage, version=version, time_zone=options.time_zone
        )

    def _following(self, *, everything: bool) -> FollowOptions:
        given = self._options
        return FollowOptions(
            changes=given.changes,
            max_files=_ALL if everything else given.max_files or _ALL,
            max_bytes=None if everything else given.max_bytes,
            ignore_deletes=given.ignore_deletes,
            ignore_changes=given.ignore_changes,
            skip_change_commits=given.skip_change_commits,
            on_schema_change="evolve",  # `shown_alike` says what may be shown
        )

    def _follow(self, start: Offset, *, everything: bool, until: Offset | None) -> Follower:
        """A follower from an offset on; what is gone is passed over if the options say so."""
        if start.is_starting_version and self._options.in_event_time_order:
            everything = True
        latest = self._open()
        if not self._options.fail_on_data_loss:
            start = _what_is_left(latest, start)
        options = self._following(everything=everything)
        return Follower(latest, start=start, options=options, until=until)

    def _next_tasks(self, follower: Follower, *, everything: bool) -> tuple[list[ScanTask], Offset]:
        """The files of the next batch, and where it ends: before what cannot be given.

        Everything is many steps where schemas change in between.
        """
        tasks: list[ScanTask] = []
        while True:
            before = follower.offset
            try:
                found = self._step_tasks(follower)
            except DeltaError:  # it comes again with the next batch
                if not tasks:
                    raise
                return tasks, before
            tasks += found
            if not (found and everything):
                return tasks, follower.offset

    def _step_tasks(self, follower: Follower) -> list[ScanTask]:
        step = follower.poll()
        if step is None:
            return []
        return [shown_alike(task, self._spec, self._schema, self._mode) for task in step.tasks]


def shown_alike(task: ScanTask, spec: ReadSpec, schema: StructType, mode: Mode) -> ScanTask:
    """The task with its rows in the schema that a stream started with.

    Args:
        task: as its own version's schema has it.
        spec: how the stream's rows are read.
        schema: of the table when the stream started.
        mode: the table's column mapping.

    Raises:
        IncompatibleChangesError: they cannot be shown so without being changed.
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


def _what_is_left(latest: Snapshot, start: Offset) -> Offset:
    """The offset, or the first later one whose commits are still there."""
    listing = list_log(latest.store, from_version=start.version)
    left = sorted(version for version in listing.commits if version >= start.version)
    if not left or left[0] == start.version:
        return start
    for version in left:
        with contextlib.suppress(DeltaError):  # of a version before the first checkpoint
            load_snapshot(latest.context, version=version)
            return Offset(table_id=start.table_id, version=version)
    return start


def first(offset: dict[str, Any]) -> dict[str, Any]:
    """An offset where a query starts that never ran."""
    return {**offset, _IS_FIRST: True}


def ending(start: Mapping[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """The end of a batch; that of a query's first one tells where it started."""
    return {**end, _START: dict(start)} if start.get(_IS_FIRST) else end


def beginning(start: dict[str, Any], end: Mapping[str, Any]) -> dict[str, Any]:
    """Where a batch that was planned before starts.

    Spark notes ends only. A query that stopped before its first batch was done asks anew where a
    query starts, and by then that may be behind the end that it has noted: all rows of the batch
    would be lost. Without a note it is as in Delta: the version before the end, whole.
    """
    if not start.get(_IS_FIRST):
        return start
    if _START in end:
        begun: dict[str, Any] = end[_START]
        return begun
    one, other = _offset(start), _offset(end)
    if not one.is_starting_version:
        return start
    if other.is_starting_version:
        return _told(replace(other, index=0))
    if one.version < other.version:
        return start
    return _told(replace(other, version=other.version - 1, index=0, is_starting_version=True))


def _told(offset: Offset) -> dict[str, Any]:
    found: dict[str, Any] = loads(offset.to_json().encode())
    return found


def _offset(told: Mapping[str, Any]) -> Offset:
    return Offset.from_json(dumps(told))
