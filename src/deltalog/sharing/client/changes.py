"""The change data feed of a shared table, read with `scan.changes` like any other.

Owns the answer's commits as a log, and the schema in which the rows are shown.

Protocol: Read Change Data Feed from a Table
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog.column_mapping import Mode
from deltalog.conditions import as_changes_condition
from deltalog.context import TableContext
from deltalog.http.client import run
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.log.reader import parse_commits
from deltalog.scan.changes import Changes, changes_spec
from deltalog.scan.plan import check_rows_readable
from deltalog.sharing.client.answers import TableAnswer, VersionHead, fetch_changes
from deltalog.sharing.client.snapshots import (
    snapshot_without_files,
    spark_frames,
    store_of_answer,
    with_own_urls,
)
from deltalog.sharing.wire.requests import ChangesQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.scan.task import ScanTask
    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.client.store import SharedStore
    from deltalog.sharing.wire.listing import Table
    from deltalog.snapshot import Snapshot


@dataclass(frozen=True)
class SharedChanges(Changes):
    """Changes of a shared table, whose tasks hold the URLs of their own files only."""

    def tasks(self) -> Iterator[ScanTask]:
        """Yield one picklable task per file, versions ascending; see `SharedScan.tasks`."""
        return with_own_urls(self.snapshot, super().tasks())

    def to_spark(self, spark: Any = None) -> Any:
        """All changed rows as a DataFrame of Spark, whose workers read the files.

        It has the columns, predicate and versions of the change feed.

        Args:
            spark: the session, classic or remote; None is the active one.

        Returns:
            A `pyspark.sql.DataFrame`.

        Raises:
            InvalidInputError: there is no session or no PySpark, or partition values without a zone
                mean other moments in the session.
            IncompatibleChangesError: the schema changed within the range.

        Cost: that of `tasks`; see `SharedScan.to_spark`.
        """
        return spark_frames().changes_frame(self, spark)


def load_changes(
    rest: AsyncRestClient,
    table: Table,
    query: ChangesQuery,
    shown: VersionHead,
    *,
    columns: Sequence[str] | None = None,
    predicate: Any = None,
    time_zone: str,
) -> SharedChanges:
    """Return the changed rows of a range of versions.

    Args:
        rest: the server.
        table: of a share.
        query: the range.
        shown: the version whose schema is shown; with column mapping it is the range's last one.
        columns: of the table and of `CHANGE_COLUMNS`; None is all of both.
        predicate: a condition over the same columns.
        time_zone: of partition values without a zone.

    Raises:
        SharingError: the server refuses the range.
        IncompatibleChangesError: when rows are read, if the schema changed within the range.
    """
    answer = run(fetch_changes, rest, table, query)
    end = query.ending_version
    commits = {n: data for n, data in answer.commits.items() if end is None or n <= end}
    log = {
        commit_path(number): (data, answer.times_ms.get(number, 0))
        for number, data in commits.items()
    }
    store = store_of_answer(rest, table, query, answer, log)
    # Without commits the range is empty: it ends before it starts.
    last = max([answer.head.version - 1 if end is None else end, *commits])
    files = tuple(_log_file(store, number) for number in commits)
    context = TableContext(store=store, time_zone=time_zone)
    first = snapshot_without_files(context, answer.head)
    snapshot = _shown(context, first, shown, last, files)
    check_rows_readable(snapshot)
    if predicate is not None:
        schema = snapshot.configuration.schema
        predicate = as_changes_condition(schema, predicate, session=context.session)
    return SharedChanges(
        snapshot=snapshot,
        first=first,
        end=last,
        commits=files,
        file_times_ms={number: answer.times_ms.get(number, 0) for number in commits},
        spec=changes_spec(snapshot, columns, predicate),
    )


def no_changes(
    rest: AsyncRestClient,
    table: Table,
    shown: VersionHead,
    *,
    columns: Sequence[str] | None,
    time_zone: str,
) -> SharedChanges:
    """Return the changes of a range that lies after the latest version."""
    query = ChangesQuery(starting_version=shown.version)
    nothing = TableAnswer(head=shown, commits={}, times_ms={}, urls={}, expires_ms=None)
    store = store_of_answer(rest, table, query, nothing, {})
    snapshot = snapshot_without_files(TableContext(store=store, time_zone=time_zone), shown)
    empty = changes_spec(snapshot, columns, None)
    return SharedChanges(snapshot, snapshot, shown.version - 1, (), {}, empty)


def _shown(
    context: TableContext,
    first: Snapshot,
    shown: VersionHead,
    last: int,
    files: Sequence[LogFile],
) -> Snapshot:
    """Return the version in whose schema the rows are shown, chosen as by `open_changes`."""
    if first.configuration.column_mapping_mode is Mode.NONE:
        return snapshot_without_files(context, shown)
    commits = parse_commits((file, context.store.read(file.info.path)) for file in files)
    metadatas = [first.metadata, *(metadata for _, metadata in commits.metadatas)]
    newest = VersionHead(version=last, protocol=first.protocol, metadata=metadatas[-1])
    return snapshot_without_files(context, newest)


def _log_file(store: SharedStore, version: int) -> LogFile:
    return LogFile(LogFileKind.COMMIT, version, store.log_info(commit_path(version)))
