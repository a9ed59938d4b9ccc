"""The streaming reader of the format `deltalog_sharing`: all rows of a table, then new rows.

This module divides the rows into Spark's micro-batches, which may end within a range of versions.
`sharing.client.follow` determines the times of requests and the order of rows. All rows of a stream
have the schema that the table had when the stream started.

Protocol: Delta Sharing Streaming Specs
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal

from deltalog.data.scan.plan import check_rows_readable
from deltalog.data.scan.task import read_spec
from deltalog.errors import IncompatibleChangesError
from deltalog.protocol.configuration import TableConfiguration
from deltalog.schema import StructType
from deltalog.sharing.client import SharedFollower, SharedFollowOptions, SharedTable
from deltalog.sharing.client.profile import parse_table_name
from deltalog.sharing.client.shown_version import ShownVersion, VersionOrTimestamp
from deltalog.spark.reading.batch_source import change_fields, check_columns
from deltalog.spark.session.opening import moment_ms
from deltalog.spark.streaming.source import (
    MicroBatchReader,
    decode_offset,
    encode_offset,
    ending,
    first,
    is_everything,
    shown_alike,
)
from deltalog.table.inspect.follow import Offset, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import types as spark_types

    from deltalog.data.scan import ReadSpec, ScanTask
    from deltalog.spark.sharing.options import SharedStreamOptions

_BEYOND: Final = 1 << 62
"""A version that no table reaches."""


class SharedStreamReader(MicroBatchReader):
    """Reader that follows a shared table. The server must share the history of the table.

    An offset consists of a version and the number of the version's files that were already
    returned.

    Args:
        options: the options of the stream.
        table: the table, at the version that determines the schema of the stream.
        columns: the schema that Spark requests.
    """

    def __init__(
        self, options: SharedStreamOptions, table: SharedTable, columns: spark_types.StructType
    ) -> None:
        self._options, self._stream = options, options.stream
        self._unzoned = options.stream.unzoned
        self._client = table.client
        self._name = parse_table_name(table.name)
        self._following = _follow_options(options)
        configuration = TableConfiguration(table.protocol(), table.metadata())
        self._mode = configuration.column_mapping_mode
        self._schema = configuration.schema
        more = change_fields() if options.stream.changes else []
        self._rows = check_columns(StructType([*self._schema, *more]), columns, table.name)
        self._spec = self._read_spec(table)
        self._target: int | None = None
        self._asked: tuple[int, Offset] | None = None
        self._pace: _Pace | None = None

    def _read_spec(self, table: SharedTable) -> ReadSpec:
        """Return the read specification of the rows.

        An empty change feed provides it without a request for files.
        """
        names = self._rows.names
        changes = self._options.stream.changes
        nothing = table.load_cdf(
            _BEYOND, columns=names if changes else None, allow_out_of_range=True
        )
        check_rows_readable(nothing.snapshot)
        if changes:
            return nothing.spec
        return read_spec(nothing.snapshot, columns=names, predicate=None)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # PySpark's name
        """Return the offset at which a new query starts."""
        start = self._options.stream.start
        begin: VersionOrTimestamp | Literal["latest"] | None = None
        if isinstance(start, int):
            begin = VersionOrTimestamp(version=start)
        elif start is not None and start != "latest":
            begin = VersionOrTimestamp(
                timestamp_ms=moment_ms(start, self._options.stream.time_zone)
            )
        elif start is not None:
            begin = "latest"
        return first(encode_offset(self._follower(begin).offset))

    def latestOffset(  # noqa: N802  # PySpark's name
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Return the end offset of the next batch.

        PySpark 4.1 passes neither a start nor a limit. The batch then contains all available rows.
        """
        if start is None:
            return encode_offset(self._offset_of_latest())
        if self._pace is None or self._pace.offset != decode_offset(start):
            self._pace = self._pace_from(decode_offset(start), until=self._target)
        pace, self._pace = self._pace, None  # if planning fails, the next call starts again
        found = pace.next(self._options, everything=is_everything(limit))
        self._pace = pace
        end = ending(start, encode_offset(pace.offset)) if found else dict(start)
        self._planned = (dict(start), end, self._shown(found))
        return end

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # PySpark's name
        """Make the stream end after the rows that are available now."""
        self._target = self._offset_of_latest().version
        self._pace = None

    def _offset_of_latest(self) -> Offset:
        """Return the offset after the latest version. An option limits the rate of requests."""
        now_ms = self._client.clock.now_ms()
        interval_ms = self._options.version_interval_s * 1000
        if self._asked is None or now_ms - self._asked[0] >= interval_ms:
            head = self._view().head
            self._asked = now_ms, Offset(table_id=head.metadata.id, version=head.version + 1)
        return self._asked[1]

    def _view(self) -> ShownVersion:
        return ShownVersion(
            self._client,
            self._name,
            VersionOrTimestamp(),
            time_zone=self._options.stream.time_zone,
        )

    def _follower(
        self,
        start: Offset | VersionOrTimestamp | Literal["latest"] | None,
        *,
        until: int | None = None,
    ) -> SharedFollower:
        if isinstance(start, Offset):
            start = replace(start, index=0)
        return SharedFollower(self._view(), start=start, options=self._following, until=until)

    def _pace_from(self, start: Offset, *, until: int | None) -> _Pace:
        return _Pace(lambda offset: self._follower(offset, until=until), start)

    def _between(self, start: Offset, end: Offset) -> list[ScanTask]:
        until = end.version if not end.index else None
        pace = self._pace_from(start, until=until)
        return self._shown(pace.take(end.index - start.index if end.index else None))

    def _shown(self, tasks: Sequence[ScanTask]) -> list[ScanTask]:
        return [shown_alike(task, self._spec, self._schema, self._mode) for task in tasks]


class _Pace:
    """Divides the files of a follower into batches.

    Args:
        follow: a function that creates a follower that starts at an offset's version.
        offset: the start offset of the first batch.
    """

    def __init__(self, follow: Callable[[Offset], SharedFollower], offset: Offset) -> None:
        self.offset = offset
        self._follow = follow
        self._follower = follow(offset)
        self._skip = offset.index
        self._left: list[ScanTask] = []

    def next(self, options: SharedStreamOptions, *, everything: bool) -> list[ScanTask]:
        """Return the files of the next batch. The list is empty if no files are available."""
        if everything:
            return self.take(None)
        if not self._left and not self._fill():
            return []
        stream = options.stream
        if stream.changes:  # one batch must contain all changes of a commit
            return self._cut(len(self._left))
        return self._cut(_fitting(self._left, stream.max_files, stream.max_bytes))

    def take(self, most: int | None) -> list[ScanTask]:
        """Return at most `most` files, or all available files if `most` is None.

        Loads as many ranges of versions as necessary.
        """
        found: list[ScanTask] = []
        while (most is None or len(found) < most) and (self._left or self._fill()):
            wanted = len(self._left) if most is None else most - len(found)
            found += self._cut(min(wanted, len(self._left)))
        return found

    def _fill(self) -> bool:
        """Load the next range of versions that has files which were not returned before."""
        while True:
            lists_all = self._follower.offset.is_starting_version
            step = self._poll()
            if step is None:
                return False
            tasks = list(step.tasks)
            if lists_all:
                tasks.sort(key=lambda task: task.path)  # the server may return files in any order
            self._left = tasks[self._skip :]
            self._skip = max(0, self._skip - len(tasks))
            if self._left:
                return True

    def _poll(self) -> Step | None:
        """Return the next step. Its schema is not checked here, because `shown_alike` checks it."""
        try:
            return self._follower.poll()
        except IncompatibleChangesError:
            self._follower = self._follow(self._follower.offset)
            return self._follower.poll()

    def _cut(self, count: int) -> list[ScanTask]:
        found, self._left = self._left[:count], self._left[count:]
        if self._left:
            self.offset = replace(self.offset, index=self.offset.index + count)
        else:
            self.offset = self._follower.offset
        return found


def _fitting(tasks: Sequence[ScanTask], max_files: int | None, max_bytes: int | None) -> int:
    """Return the number of files in the next batch, at least 1."""
    count = len(tasks) if max_files is None else min(max_files, len(tasks))
    if max_bytes is None:
        return count
    sizes = accumulate(task.size_bytes or 0 for task in tasks[:count])
    return max(1, sum(size <= max_bytes for size in sizes))


def _follow_options(options: SharedStreamOptions) -> SharedFollowOptions:
    stream = options.stream
    return SharedFollowOptions(
        changes=stream.changes,
        version_interval_s=options.version_interval_s,
        max_versions_per_request=options.max_versions,
        ignore_deletes=stream.ignore_deletes,
        ignore_changes=stream.ignore_changes,
        skip_change_commits=stream.skip_change_commits,
    )
