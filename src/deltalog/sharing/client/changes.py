"""The change data feed of a shared table, read by the rooms that read any other.

Owns the answer's commits as a log, and in which schema the rows are shown.

Protocol: Read Change Data Feed from a Table
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltalog.column_mapping import Mode
from deltalog.context import TableContext
from deltalog.expressions import as_expression
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.log.reader import parse_commits
from deltalog.scan.changes import CHANGE_COLUMNS, Changes, changes_spec
from deltalog.scan.plan import check_snapshot
from deltalog.schema import Field, StructType, from_arrow_type
from deltalog.sharing.client.answers import ask_changes
from deltalog.sharing.client.bridge import run
from deltalog.sharing.client.snapshots import bare_snapshot, open_store, with_own_urls
from deltalog.sharing.client.urls import Question
from deltalog.sharing.wire import ChangesQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.scan.task import ScanTask
    from deltalog.sharing.client.answers import TableAnswer
    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.client.store import SharedStore
    from deltalog.sharing.wire import Table
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True)
class SharedChanges(Changes):
    """Changes of a shared table: a task carries the URLs of its own file only."""

    def tasks(self) -> Iterator[ScanTask]:
        """One picklable task per file, versions ascending; see `SharedScan.tasks`."""
        every = len(self.snapshot.configuration.data_columns)
        return (with_own_urls(task, every) for task in super().tasks())


def load_changes(
    rest: AsyncRestClient,
    table: Table,
    query: ChangesQuery,
    shown: TableAnswer,
    *,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    time_zone: str,
) -> Changes:
    """The changed rows of a range of versions.

    Args:
        rest: the server.
        table: which.
        query: the range.
        shown: the table now. Its schema is shown; with column mapping, the range's last one is.
        columns: of the table and of `CHANGE_COLUMNS`; None is all of both.
        predicate: a condition over the same columns.
        time_zone: of partition values without a zone.

    Raises:
        SharingError: the server refuses the range.
        IncompatibleChangesError: once it is read, where the schema changed in between.
    """
    answer = run(ask_changes, rest, table, query)
    question = Question(
        rest=rest, table=table, query=query, version=answer.version, time_zone=time_zone
    )
    end = query.ending_version
    commits = {n: data for n, data in answer.commits.items() if end is None or n <= end}
    log = {
        commit_path(number): (data, answer.times_ms.get(number, 0))
        for number, data in commits.items()
    }
    store = open_store(question, answer, log)
    last = max([answer.version - 1 if end is None else end, *commits])
    files = tuple(_log_file(store, number) for number in commits)
    context = TableContext(store=store, time_zone=time_zone)
    first = bare_snapshot(context, answer.version, answer.protocol, answer.metadata)
    snapshot = _shown(context, first, shown, last, files)
    check_snapshot(snapshot)
    if predicate is not None:
        fields = [Field(name, from_arrow_type(kind)) for name, kind in CHANGE_COLUMNS.items()]
        known = StructType([*snapshot.configuration.schema, *fields])
        predicate = as_expression(predicate, known)
    return SharedChanges(
        snapshot=snapshot,
        first=first,
        end=last,
        commits=files,
        file_times_ms={
            number: answer.times_ms.get(number, 0) for number in range(answer.version, last + 1)
        },
        spec=changes_spec(snapshot, columns, predicate),
    )


def no_changes(
    rest: AsyncRestClient,
    table: Table,
    shown: TableAnswer,
    *,
    columns: Sequence[str] | None,
    time_zone: str,
) -> Changes:
    """The changes of a range that has none yet; arguments as those of `load_changes`."""
    query = ChangesQuery(starting_version=shown.version)
    question = Question(
        rest=rest, table=table, query=query, version=shown.version, time_zone=time_zone
    )
    store = open_store(question, shown, {})
    context = TableContext(store=store, time_zone=time_zone)
    snapshot = bare_snapshot(context, shown.version, shown.protocol, shown.metadata)
    empty = changes_spec(snapshot, columns, None)
    return SharedChanges(snapshot, snapshot, shown.version - 1, (), {}, empty)


def _shown(
    context: TableContext,
    first: Snapshot,
    shown: TableAnswer,
    last: int,
    files: Sequence[LogFile],
) -> Snapshot:
    """The version in whose schema the rows are shown, as `open_changes` chooses it."""
    if first.configuration.column_mapping_mode is Mode.NONE:
        return bare_snapshot(context, shown.version, shown.protocol, shown.metadata)
    told = parse_commits((file, context.store.read(file.info.path)) for file in files)
    metadatas = [metadata for _, metadata in told.metadatas]
    metadata = metadatas[-1] if metadatas else first.metadata
    return bare_snapshot(context, last, first.protocol, replace(metadata))


def _log_file(store: SharedStore, version: int) -> LogFile:
    return LogFile(LogFileKind.COMMIT, version, store.log_info(commit_path(version)))
