"""The streaming reader of the format `deltalog`: all rows of a table, then the new rows.

This module divides the rows into Spark's micro-batches. The follower of the core determines the
order of rows and the offsets. All rows of a stream have the schema that the table had when the
stream started.

Protocol: Change Data Files
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader

from deltalog._util.clock import Moment
from deltalog._util.json import dumps, loads
from deltalog.catalogs.table_uri import naming
from deltalog.data.scan.changes import incompatibility, open_changes
from deltalog.data.scan.plan import check_rows_readable
from deltalog.data.scan.task import read_spec
from deltalog.errors import DeltaError, IncompatibleChangesError
from deltalog.log.listing import list_log
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.schema import StructType
from deltalog.spark.reading.batch_source import (
    CredentialedTaskReader,
    TaskPartition,
    TaskReader,
    change_fields,
    check_columns,
    rows_schema,
    split_tasks,
    table_names,
)
from deltalog.spark.reading.options import StreamOptions, asked_metadata_columns
from deltalog.spark.session.environment import AvailableNow
from deltalog.spark.session.opening import load_version, moment_ms, open_latest
from deltalog.table.inspect.follow import Follower, FollowOptions, Offset, start_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import types as spark_types

    from deltalog.data.scan import ReadSpec, ScanTask
    from deltalog.protocol.column_mapping import Mode

# --- limits of micro-batches, in classes that some versions of PySpark lack


def default_limit(max_files: int | None, max_bytes: int | None) -> Any:
    """Return the limit of a batch as an object of PySpark; `max_files` overrides `max_bytes`."""
    from pyspark.sql.streaming import datasource  # noqa: PLC0415  # PySpark 4.1 lacks this module

    if max_files is not None:
        return datasource.ReadMaxFiles(max_files)
    if max_bytes is not None:
        return datasource.ReadMaxBytes(max_bytes)
    return datasource.ReadAllAvailable()


def is_everything(limit: Any) -> bool:
    """Return whether Spark requests all available rows, whatever limit the options contain."""
    return limit is None or type(limit).__name__ == "ReadAllAvailable"


# --- micro-batches: their limits, offsets and files


_IS_FIRST: Final = "isFirst"
_START: Final = "start"


class MicroBatchReader(TaskReader, DataSourceStreamReader, AvailableNow):
    """Base class of streaming readers.

    Attributes:
        _stream: the options, which contain the limits of a batch.
        _planned: the start offset, the end offset and the files of the most recently planned batch.
    """

    _stream: StreamOptions
    _planned: tuple[dict[str, Any], dict[str, Any], list[ScanTask]] | None = None

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  # PySpark's name
        """Return the limit of a batch from the options."""
        return default_limit(self._stream.max_files, self._stream.max_bytes)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[TaskPartition]:
        """Return one partition per task, of about the same size; a repeated batch has the same."""
        if self._planned is not None and self._planned[:2] == (start, end):
            tasks = self._planned[2]
        else:
            tasks = self._between(decode_offset(beginning(start, end)), decode_offset(end))
        groups = split_tasks(tasks, self._stream.max_partition_bytes, in_order=True)
        return [TaskPartition(group) for group in groups]

    @abstractmethod
    def _between(self, start: Offset, end: Offset) -> list[ScanTask]:
        """Return the files of a batch that was planned earlier, perhaps in another process."""


def shown_alike(task: ScanTask, spec: ReadSpec, schema: StructType, mode: Mode) -> ScanTask:
    """Return the task in a form that returns rows in the schema with which the stream started.

    Args:
        task: a scan task with the schema of its own version.
        spec: the read specification of the stream's rows.
        schema: the schema of the table when the stream started.
        mode: the column mapping mode of the table.

    Raises:
        IncompatibleChangesError: the rows cannot be read in `schema`.
    """
    own = task.spec
    then = StructType([*own.data_columns, *own.partition_columns])
    problem = incompatibility(then, schema, mode)
    if problem is not None:
        raise IncompatibleChangesError(
            f"cannot read rows of {own.table} in the schema with which the stream started: the "
            f"schema changed, {problem}; start the query again from its checkpoint, with a new "
            "dataframe, to continue in the current schema"
        )
    return replace(task, spec=replace(spec, reads_change_type=own.reads_change_type))


def first(offset: dict[str, Any]) -> dict[str, Any]:
    """Mark an offset as the offset at which a new query starts."""
    return {**offset, _IS_FIRST: True}


def ending(start: Mapping[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """Return the end offset of a batch. In a query's first batch, it contains the start, too."""
    return {**end, _START: dict(start)} if start.get(_IS_FIRST) else end


def beginning(start: dict[str, Any], end: Mapping[str, Any]) -> dict[str, Any]:
    """Return the start offset of a batch that was planned earlier, perhaps by another process.

    Spark records only the end offset of a batch. If a query stopped during its first batch, Spark
    requests the initial offset again. The table may have changed since then, so the new initial
    offset may be after the recorded end, and the rows of the batch would be lost. Therefore the end
    offset of the first batch contains the start. If an end offset contains no start, the batch
    consists of all rows of the version before the end, as in Delta.
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
    """Encode an offset in the form that Spark stores."""
    found: dict[str, Any] = loads(offset.to_json().encode())
    return found


def decode_offset(given: Mapping[str, Any]) -> Offset:
    """Decode an offset that Spark has stored."""
    return Offset.from_json(dumps(given))


# --- the reader of Delta tables


_ALL: Final = 1 << 62


class StreamReader(MicroBatchReader, CredentialedTaskReader):
    """Reader of a table as a stream.

    Args:
        options: the options of the stream.
        columns: the schema that Spark requests.
        stored: the result of `Snapshot.stored` for the version that determines the schema of the
            stream; None means the latest version.

    Raises:
        InvalidInputError: the location contains a version.

    Cost: that of `Snapshot.refresh` if `stored` is set and the table still is the same table.
    """

    def __init__(
        self,
        options: StreamOptions,
        columns: spark_types.StructType,
        stored: Mapping[str, Any] | None,
    ) -> None:
        self._options = self._stream = options
        self._unzoned = options.unzoned
        where, zone = options.path, options.time_zone
        self._context = open_latest(where, options.storage, doing="follow", time_zone=zone)
        shown, self._schema = self._shown_snapshot(columns, stored)
        check_rows_readable(shown)
        self._hidden = asked_metadata_columns(options.metadata_columns, shown)
        rows = (
            StructType([*self._schema, *change_fields()])
            if options.changes
            else rows_schema(self._schema, self._hidden)
        )
        self._rows = check_columns(rows, columns, options.path)
        self._mode = shown.configuration.column_mapping_mode
        self._spec = self._read_spec(shown)
        self._target: Offset | None = None
        self._follower: Follower | None = None
        self._place: tuple[dict[str, Any], bool] | None = None
        self._listed: Offset | None = None

    def _shown_snapshot(
        self, columns: spark_types.StructType, stored: Mapping[str, Any] | None
    ) -> tuple[Snapshot, StructType]:
        """Return the snapshot and the schema of the version that determines the stream's schema.

        If another table has replaced the table, the version of the new table is used; if there is
        no such version, its latest version.
        """
        if stored is None:
            self._known = shown = self._open()
            return shown, shown.configuration.schema
        shown = Snapshot.restored(self._context, stored)
        with naming(shown.store.root):
            self._known = shown.refresh()
        if self._known.metadata.id == shown.metadata.id:
            return shown, shown.configuration.schema
        try:
            shown = self._open(shown.version)
        except DeltaError:
            shown = self._known
            schema = shown.configuration.schema
            return shown, StructType([one for one in schema if one.name in columns.names])
        return shown, shown.configuration.schema

    def _read_spec(self, shown: Snapshot) -> ReadSpec:
        names = table_names(self._rows, self._hidden)
        if not self._options.changes:
            return read_spec(shown, columns=names, hidden=self._hidden, predicate=None)
        beyond = shown.version + 1  # an empty range of commits has the same columns
        return open_changes(shown, start=beyond, columns=names, allow_out_of_range=True).spec

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # PySpark's name
        """Return the offset at which a new query starts."""
        start: Any = self._options.start
        if isinstance(start, str) and start != "latest":
            start = Moment(moment_ms(start, self._options.time_zone))
        return first(encode_offset(start_of(self._latest(), start)))

    def latestOffset(  # noqa: N802  # PySpark's name
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Return the end offset of the next batch.

        PySpark 4.1 passes neither a start nor a limit. The batch then contains all available rows.
        """
        if start is None:
            return encode_offset(self._newest())
        everything = is_everything(limit)
        if self._follower is None or self._place != (start, everything):
            self._follower = self._follow(
                decode_offset(start), everything=everything, until=self._target
            )
        self._place = None  # if planning fails, the next call needs a new follower
        tasks, offset = self._next_tasks(self._follower, everything=everything)
        end = ending(start, encode_offset(offset)) if tasks else dict(start)
        if not tasks or offset == self._follower.offset:
            self._place = (end, everything)
        self._planned = (dict(start), end, tasks)
        listed = self._follower.listed_version
        if listed is not None:
            table = self._follower.offset.table_id
            self._listed = Offset(table_id=table, version=listed + 1)
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  # PySpark's name
        """Return the offset after the latest version, for a query's progress (PySpark 4.2).

        The offset contains `versionsBehind`: the number of versions that the query has not read
        completely.

        Cost: no request after `latestOffset`, which Spark calls before in each trigger; otherwise
        the cost of `Snapshot.refresh`.
        """
        newest, self._listed = self._listed or self._newest(), None
        behind = {}
        if self._planned is not None:
            reached = decode_offset(self._planned[1]).version
            behind = {"versionsBehind": max(0, newest.version - reached)}
        return {**encode_offset(newest), **behind}

    def _between(self, start: Offset, end: Offset) -> list[ScanTask]:
        follower = self._follow(start, everything=True, until=end)
        tasks: list[ScanTask] = []
        while found := self._step_tasks(follower):
            tasks += found
        return tasks

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # PySpark's name
        """Make the stream end after the rows that are available now."""
        self._target = self._newest()
        self._follower = None

    def _open(self, version: int | None = None) -> Snapshot:
        return load_version(self._context, version=version, time_zone=self._options.time_zone)

    def _latest(self) -> Snapshot:
        """Return the latest version; reads only log files that are new since the last call."""
        with naming(self._known.store.root):
            self._known = self._known.refresh()
        return self._known

    def _newest(self) -> Offset:
        """Return the offset after the latest version."""
        latest = self._latest()
        return Offset(table_id=latest.metadata.id, version=latest.version + 1)

    def _following(self, *, everything: bool) -> FollowOptions:
        given = self._options
        return FollowOptions(
            changes=given.changes,
            max_files=_ALL if everything else given.max_files or _ALL,
            max_bytes=None if everything else given.max_bytes,
            ignore_deletes=given.ignore_deletes,
            ignore_changes=given.ignore_changes,
            skip_change_commits=given.skip_change_commits,
            on_schema_change="evolve",  # no error, because `shown_alike` checks the schema
        )

    def _follow(self, start: Offset, *, everything: bool, until: Offset | None) -> Follower:
        """Return a follower that starts at an offset.

        If `failOnDataLoss` is false, the follower skips commits that have been cleaned up.
        """
        if start.is_starting_version and self._options.in_event_time_order:
            everything = True
        latest = self._latest()
        if not self._options.fail_on_data_loss:
            start = _what_is_left(latest, start)
        options = self._following(everything=everything)
        return Follower(latest, start=start, options=options, until=until)

    def _next_tasks(self, follower: Follower, *, everything: bool) -> tuple[list[ScanTask], Offset]:
        """Return the files and the end offset of the next batch.

        The follower ends a step where the schema changes. With `everything`, the batch contains all
        steps before the first step that raises an error.
        """
        tasks: list[ScanTask] = []
        while True:
            before = follower.offset
            try:
                found = self._step_tasks(follower)
            except DeltaError:  # return the files so far; the next batch raises the error
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


def _what_is_left(latest: Snapshot, start: Offset) -> Offset:
    """Return `start`, or the first later offset whose commits have not been cleaned up."""
    listing = list_log(latest.store, from_version=start.version)
    left = sorted(version for version in listing.commits if version >= start.version)
    if not left or left[0] == start.version:
        return start
    for version in left:
        with contextlib.suppress(DeltaError):  # to read this version, deleted commits are necessary
            load_snapshot(latest.context, version=version)
            return Offset(table_id=start.table_id, version=version)
    return start
