"""The streaming reader of the format `deltalog`: a table's rows, then new ones.

Owns the translation to Spark's micro-batches. Which rows come when, and offsets, are those of
`insight.follow`; all rows of a stream have the schema with which it started.

Protocol: Change Data Files
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from deltalog.clock import Moment
from deltalog.errors import DeltaError
from deltalog.insight.follow import Follower
from deltalog.insight.follow_steps import FollowOptions, Offset
from deltalog.locations import naming
from deltalog.log.listing import list_log
from deltalog.scan.changes import open_changes
from deltalog.scan.plan import check_rows_readable
from deltalog.scan.spec import read_spec
from deltalog.schema import StructType
from deltalog.snapshot import load_snapshot
from deltalog.spark.reading.batch_source import (
    change_fields,
    check_columns,
    rows_schema,
    table_names,
)
from deltalog.spark.reading.options import asked_metadata_columns
from deltalog.spark.session.opening import load_version, moment_ms, open_latest
from deltalog.spark.streaming.micro_batches import (
    MicroBatchReader,
    decode_offset,
    encode_offset,
    ending,
    first,
    shown_alike,
)
from deltalog.spark.streaming.read_limits import is_everything

if TYPE_CHECKING:
    from pyspark.sql import types as spark_types

    from deltalog.scan import ReadSpec, ScanTask
    from deltalog.snapshot import Snapshot
    from deltalog.spark.reading.options import StreamOptions

_ALL: Final = 1 << 62


class StreamReader(MicroBatchReader):
    """Reads a table as a stream.

    Args:
        options: what is read and how.
        columns: the schema that Spark requests.
        version: whose schema the stream has; None is the latest.

    Raises:
        InvalidInputError: the location names a version, which never changes.
    """

    def __init__(
        self, options: StreamOptions, columns: spark_types.StructType, version: int | None
    ) -> None:
        self._options = self._stream = options
        self._unzoned = options.unzoned
        where, zone = options.path, options.time_zone
        open_latest(where, options.storage, doing="follow", time_zone=zone)
        shown, self._schema = self._shown_snapshot(columns, version)
        self._known = shown
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

    def _shown_snapshot(
        self, columns: spark_types.StructType, version: int | None
    ) -> tuple[Snapshot, StructType]:
        """Return the stream's snapshot and schema; if cleaned up, the latest with its columns."""
        try:
            shown = self._open(version)
        except DeltaError:
            shown = self._open()
            schema = shown.configuration.schema
            return shown, StructType([one for one in schema if one.name in columns.names])
        return shown, shown.configuration.schema

    def _read_spec(self, shown: Snapshot) -> ReadSpec:
        names = table_names(self._rows, self._hidden)
        if not self._options.changes:
            return read_spec(shown, columns=names, hidden=self._hidden, predicate=None)
        beyond = shown.version + 1  # an empty range: only the columns are needed
        return open_changes(shown, start=beyond, columns=names, allow_out_of_range=True).spec

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # PySpark's name
        """Return where a new query starts."""
        start: Any = self._options.start
        if isinstance(start, str) and start != "latest":
            start = Moment(moment_ms(start, self._options.time_zone))
        options = self._following(everything=False)
        return first(encode_offset(Follower(self._latest(), start=start, options=options).offset))

    def latestOffset(  # noqa: N802  # PySpark's name
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Return the end of the next batch.

        PySpark 4.1 passes neither start nor limit: then the batch takes everything available.
        """
        if start is None:
            latest = self._latest()
            return encode_offset(Offset(table_id=latest.metadata.id, version=latest.version + 1))
        everything = is_everything(limit)
        if self._follower is None or self._place != (start, everything):
            self._follower = self._follow(
                decode_offset(start), everything=everything, until=self._target
            )
        self._place = None  # set again only on success
        tasks, offset = self._next_tasks(self._follower, everything=everything)
        end = ending(start, encode_offset(offset)) if tasks else dict(start)
        if not tasks or offset == self._follower.offset:
            self._place = (end, everything)
        self._planned = (dict(start), end, tasks)
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  # PySpark's name
        """Return the newest offset of the table, for the progress of a query (PySpark 4.2).

        `versionsBehind` says how many versions the query has not ended yet.

        Cost: one listing of the log's end for each trigger.
        """
        latest = self._latest()
        newest = Offset(table_id=latest.metadata.id, version=latest.version + 1)
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
        """Let the stream end with what is available now."""
        latest = self._latest()
        self._target = Offset(table_id=latest.metadata.id, version=latest.version + 1)
        self._follower = None

    def _open(self, version: int | None = None) -> Snapshot:
        options = self._options
        return load_version(
            options.path, options.storage, version=version, time_zone=options.time_zone
        )

    def _latest(self) -> Snapshot:
        """Return the newest version; of the log, only what came since the last call is read."""
        with naming(self._known.store.root):
            self._known = self._known.refresh()
        return self._known

    def _following(self, *, everything: bool) -> FollowOptions:
        given = self._options
        return FollowOptions(
            changes=given.changes,
            max_files=_ALL if everything else given.max_files or _ALL,
            max_bytes=None if everything else given.max_bytes,
            ignore_deletes=given.ignore_deletes,
            ignore_changes=given.ignore_changes,
            skip_change_commits=given.skip_change_commits,
            on_schema_change="evolve",  # `shown_alike` checks the schema
        )

    def _follow(self, start: Offset, *, everything: bool, until: Offset | None) -> Follower:
        """Return a follower from an offset on; skips lost commits if the options allow it."""
        if start.is_starting_version and self._options.in_event_time_order:
            everything = True
        latest = self._latest()
        if not self._options.fail_on_data_loss:
            start = _what_is_left(latest, start)
        options = self._following(everything=everything)
        return Follower(latest, start=start, options=options, until=until)

    def _next_tasks(self, follower: Follower, *, everything: bool) -> tuple[list[ScanTask], Offset]:
        """Return the files of the next batch, and its end, which is before any unreadable step.

        `everything` may take many steps, since a step ends where the schema changes.
        """
        tasks: list[ScanTask] = []
        while True:
            before = follower.offset
            try:
                found = self._step_tasks(follower)
            except DeltaError:  # the next batch raises it again
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
    """Return the offset, or the first later one whose commits still exist."""
    listing = list_log(latest.store, from_version=start.version)
    left = sorted(version for version in listing.commits if version >= start.version)
    if not left or left[0] == start.version:
        return start
    for version in left:
        with contextlib.suppress(DeltaError):  # a version before the first checkpoint
            load_snapshot(latest.context, version=version)
            return Offset(table_id=start.table_id, version=version)
    return start
