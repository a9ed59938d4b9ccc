"""Answers as snapshots, and scans of them whose tasks go to other processes.

Owns how an answer stands for a version: as one compacted file of the log, which tells all files
and nothing of how they came to be.

Protocol: Log Compaction Files, Read Data from a Table
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog.context import TableContext
from deltalog.deletion_vectors import location
from deltalog.log.names import LogFile, LogFileKind, commit_path, compaction_name, log_path
from deltalog.log.reader import concat_commits, parse_commits
from deltalog.log.segment import LogSegment
from deltalog.scan.plan import Scan
from deltalog.scan.reader import read_tasks
from deltalog.sharing.client.store import SharedStore
from deltalog.sharing.client.urls import UrlBook
from deltalog.snapshot import Snapshot
from deltalog.snapshot.state import LogState

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from deltalog.actions.model import Metadata, Protocol
    from deltalog.scan.task import ScanTask
    from deltalog.sharing.client.answers import TableAnswer
    from deltalog.sharing.client.urls import Question
    from deltalog.sharing.wire import Table


_FILES_AHEAD: Final = 12
_PIECE_BYTES: Final = 4 << 20
_SMALL_BYTES: Final = 256 << 10
_WHOLE_BYTES: Final = 4 << 20


def table_root(endpoint: str, table: Table) -> str:
    """What stands for the location of a shared table."""
    return f"{endpoint}#{table.share}.{table.schema}.{table.name}"


def open_store(
    question: Question, answer: TableAnswer, log: dict[str, tuple[bytes, int]]
) -> SharedStore:
    """The files of an answer, beside a log."""
    book = UrlBook(question, dict(answer.urls), answer.expires_ms)
    rest = question.rest
    root = table_root(rest.profile.endpoint, question.table)
    return SharedStore(root, rest.http, book, log)


def open_files(question: Question, answer: TableAnswer) -> Snapshot:
    """The version that an answer with the files of one version tells of."""
    version = answer.version
    path = log_path(compaction_name(0, version)) if version else commit_path(0)
    time_ms = max(answer.times_ms.values(), default=0)
    store = open_store(question, answer, {path: (answer.commits[version], time_ms)})
    commit = LogFile(LogFileKind.COMMIT, version, store.log_info(path))
    whole = LogFile(LogFileKind.COMPACTION, 0, store.log_info(path), end_version=version)
    segment = LogSegment(
        version=version,
        checkpoint=None,
        commits=(commit,),
        compactions=(whole,) if version else (),
        target_commit=commit.info,
    )
    # Lines become columns piece by piece: parsed, they take many times as much as written.
    parsed = concat_commits(
        [parse_commits([(commit, piece)]) for piece in _pieces(answer.commits[version])]
    )
    state = LogState(store, segment, parsed=parsed, parsed_to=version)
    context = TableContext(store=store, time_zone=question.time_zone)
    return Snapshot(context, state, protocol=answer.protocol, metadata=answer.metadata)


def _pieces(data: bytes) -> Iterator[bytes]:
    """Whole lines, a few megabytes at a time."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _PIECE_BYTES) + 1 or len(data)
        yield data[start:end]
        start = end


def bare_snapshot(
    context: TableContext, version: int, protocol: Protocol, metadata: Metadata
) -> Snapshot:
    """A version whose files nobody asks for."""
    segment = LogSegment(version=version, checkpoint=None, commits=())
    state = LogState(context.store, segment)
    return Snapshot(context, state, protocol=protocol, metadata=metadata)


@dataclass(frozen=True)
class SharedScan(Scan):
    """A scan of a shared table: a task carries the URLs of its own file only."""

    def tasks(self) -> Iterator[ScanTask]:
        """One picklable task per file that may hold rows; a limit is left to the caller.

        A task holds the profile, with its secrets: it may need new URLs where it is read.
        """
        every = len(self.snapshot.configuration.data_columns)
        return (with_own_urls(task, every) for task in super().tasks())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch; small files are fetched some time before they are read."""
        if self.limit is not None:  # the first file may be enough
            return super().to_batches()
        return read_tasks(fetched_ahead(self.tasks()))


def fetched_ahead(tasks: Iterator[ScanTask]) -> Iterator[ScanTask]:
    """The tasks, while the files of the next ones are on their way."""
    waiting: deque[ScanTask] = deque()
    try:
        for task in tasks:
            if isinstance(task.store, SharedStore):
                task.store.fetch_ahead()
            waiting.append(task)
            if len(waiting) > _FILES_AHEAD:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        for task in waiting:
            if isinstance(task.store, SharedStore):
                task.store.forget_ahead()


def with_own_urls(task: ScanTask, num_columns: int) -> ScanTask:
    """The task with a store that knows its files alone.

    Args:
        task: of a scan.
        num_columns: how many columns data files of the table have.
    """
    if not isinstance(task.store, SharedStore):
        return task
    vectors = [vector for vector in (task.deletion_vector, task.without) if vector is not None]
    places = [place for vector in vectors if (place := location(vector)) is not None]
    whole = is_read_whole(task.size_bytes, len(task.spec.data_columns), num_columns)
    return replace(task, store=task.store.only((task.path, *places), whole=whole))


def is_read_whole(size_bytes: int | None, num_read: int, num_columns: int) -> bool:
    """Whether one request for a file is better than one each for its footer and its columns.

    Args:
        size_bytes: of the file, if it is known.
        num_read: columns that are read.
        num_columns: columns that it has.
    """
    if size_bytes is None:
        return False
    return size_bytes <= (_WHOLE_BYTES if num_read == num_columns else _SMALL_BYTES)
