"""Snapshots of a server's answers, and scans whose tasks can run in other processes.

An answer is converted to a log. The files of one version become one compacted log file, because
the earlier commits are unknown.

Protocol: Log Compaction Files, Read Data from a Table
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.lazy_names import higher
from deltalog.data.scan.plan import Scan
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.data.scan.rows import require_library
from deltalog.log.context import TableContext
from deltalog.log.names import LogFile, LogFileKind, commit_path, compaction_name, log_path
from deltalog.log.reader import concat_commits, parse_commits
from deltalog.log.segment import LogSegment
from deltalog.log.snapshot import Snapshot
from deltalog.log.snapshot.state import LogState
from deltalog.protocol.deletion_vectors import location
from deltalog.sharing.client.store import AnsweredQuery, SharedStore, UrlBook
from deltalog.storage.http.replies import shown_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from deltalog.sharing.client.answers import TableAnswer, VersionHead
    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.wire.lines import Table
    from deltalog.sharing.wire.requests import ChangesQuery, TableQuery


_FILES_AHEAD: Final = 12
_PIECE_BYTES: Final = 4 << 20
_WHOLE_BYTES: Final = 4 << 20
_WHOLE_BYTES_OF_PART: Final = 256 << 10


def table_root(endpoint: str, table: Table) -> str:
    """Return the URI of a shared table."""
    return f"{shown_location(endpoint)}#{table.full_name}"


def store_of_answer(
    rest: AsyncRestClient,
    table: Table,
    query: TableQuery | ChangesQuery,
    answer: TableAnswer,
    log: dict[str, tuple[bytes, int]],
) -> SharedStore:
    """Return a store with the data files of an answer and the given log files."""
    answered = AnsweredQuery(
        rest=rest,
        table=table,
        query=query,
        version=answer.head.version,
        refresh_token=answer.refresh_token,
    )
    book = UrlBook(answered, dict(answer.urls), answer.expires_ms)
    return SharedStore(table_root(rest.profile.endpoint, table), rest.http, book, log)


def snapshot_of_files(
    rest: AsyncRestClient, table: Table, query: TableQuery, answer: TableAnswer, *, time_zone: str
) -> Snapshot:
    """Return the snapshot of an answer that contains the files of one version."""
    version = answer.head.version
    path = log_path(compaction_name(0, version)) if version else commit_path(0)
    time_ms = max(answer.times_ms.values(), default=0)
    log = {path: (answer.commits[version], time_ms)}
    store = store_of_answer(rest, table, query, answer, log)
    commit = LogFile(LogFileKind.COMMIT, version, store.log_info(path))
    whole = LogFile(LogFileKind.COMPACTION, 0, store.log_info(path), end_version=version)
    # A compacted log file replaces all commits of its range, so the log is complete without
    # commits.
    segment = LogSegment(
        version=version,
        checkpoint=None,
        commits=(commit,),
        compactions=(whole,) if version else (),
        target_commit=commit.info,
    )
    # Parse a few megabytes at a time, because parsing needs much more memory than the bytes of the
    # lines.
    parsed = concat_commits(
        [parse_commits([(commit, piece)]) for piece in _pieces(answer.commits[version])]
    )
    state = LogState(store, segment, parsed=parsed, parsed_to=version)
    context = TableContext(store=store, time_zone=time_zone)
    head = answer.head
    return Snapshot(context, state, protocol=head.protocol, metadata=head.metadata)


def _pieces(data: bytes) -> Iterator[bytes]:
    """Yield whole lines, a few megabytes at a time."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _PIECE_BYTES) + 1 or len(data)
        yield data[start:end]
        start = end


def snapshot_without_files(context: TableContext, head: VersionHead) -> Snapshot:
    """Return a snapshot with protocol and metadata only."""
    segment = LogSegment(version=head.version, checkpoint=None, commits=())
    state = LogState(context.store, segment)
    return Snapshot(context, state, protocol=head.protocol, metadata=head.metadata)


@dataclass(frozen=True)
class SharedScan(Scan):
    """A scan of a shared table; each task contains only the URLs of its own files."""

    def tasks(self, *, with_rows: bool = False) -> Iterator[ScanTask]:
        """Yield one picklable task per file that may contain rows; the limit is not applied.

        A task contains the profile with its secrets, so that its reader can request new URLs.

        Args:
            with_rows: whether each task states its maximum number of rows (`most_rows`).
        """
        return with_own_urls(self.snapshot, super().tasks(with_rows=with_rows))

    def _tasks_in_turn(self) -> Iterator[ScanTask]:
        """Yield the tasks without batches of files, because the log of an answer is small."""
        return self.tasks()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches; small files are fetched in advance."""
        if self.most_rows is not None:  # no prefetching: the first file may contain enough rows
            return self._batches()
        return read_tasks(_prefetching(self.tasks()))

    def to_spark(self, spark: Any = None) -> Any:
        """Return all rows as a Spark DataFrame; Spark's workers read the files.

        The DataFrame has the columns, predicate, limit and version of the scan. Spark's later
        filters do not reduce the number of files that are read.

        Args:
            spark: the session, classic or remote; None means the active session.

        Returns:
            A `pyspark.sql.DataFrame`.

        Raises:
            InvalidInputError: there is no session or no PySpark, the scan has columns of
                `_metadata` or a limit above Spark's maximum, or the session's time zone would
                change partition values that have no zone.

        Cost: see `tasks`. Workers receive the files' URLs and, to renew them, the profile with its
            secrets.
        """
        require_library("pyspark", extra="spark")
        return higher("scan_frame")(self, spark)


def _prefetching(tasks: Iterator[ScanTask]) -> Iterator[ScanTask]:
    """Yield the tasks, and fetch the files of the next tasks in the background."""
    waiting: deque[ScanTask] = deque()
    try:
        for task in tasks:
            if isinstance(task.store, SharedStore):
                task.store.start_prefetch()
            waiting.append(task)
            if len(waiting) > _FILES_AHEAD:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        for task in waiting:
            if isinstance(task.store, SharedStore):
                task.store.cancel_prefetch()


def with_own_urls(snapshot: Snapshot, tasks: Iterable[ScanTask]) -> Iterator[ScanTask]:
    """Yield the tasks of a snapshot, each with a store of its own files only."""
    num_columns = len(snapshot.configuration.data_columns)
    for task in tasks:
        if not isinstance(task.store, SharedStore):
            yield task
            continue
        vectors = [vector for vector in (task.deletion_vector, task.without) if vector is not None]
        paths = [path for vector in vectors if (path := location(vector)) is not None]
        whole = is_read_whole(task.size_bytes, len(task.spec.data_columns), num_columns)
        yield replace(task, store=task.store.only((task.path, *paths), whole=whole))


def is_read_whole(size_bytes: int | None, num_read: int, num_columns: int) -> bool:
    """Return whether one request for a whole file is faster than two: for the footer and columns.

    Args:
        size_bytes: size of the file; None if unknown.
        num_read: number of columns to read.
        num_columns: number of columns in the file.
    """
    if size_bytes is None:
        return False
    return size_bytes <= (_WHOLE_BYTES if num_read == num_columns else _WHOLE_BYTES_OF_PART)
