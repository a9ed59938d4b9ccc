"""Following a shared table: first all of its rows, then the rows of later versions.

This module decides how often to ask the server, how many versions to request at a time, and which
commits cannot be returned as new rows. `Offset` and `Step` are the classes of
`table.inspect.follow`.

Protocol: Delta Sharing Streaming Specs
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import pyarrow as pa

from deltalog._util.kernels import TRUE, compute
from deltalog._util.lazy_names import higher
from deltalog._util.paths import FileInfo
from deltalog.data.scan.changes import Changes, changes_spec
from deltalog.data.scan.plan import TASK_COLUMNS, check_rows_readable, make_task
from deltalog.data.scan.rows import require_library
from deltalog.data.scan.task import read_spec
from deltalog.errors import IncompatibleChangesError, InvalidInputError, RowsChangedError
from deltalog.log.context import TableContext
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.log.reader import VERSION_COLUMN, CommitTable, parse_commits
from deltalog.operations.arguments import as_changes_condition, as_columns, as_condition
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.protocol.configuration import TableConfiguration
from deltalog.schema.columns import naming_the_attempt, walk
from deltalog.sharing.client.answers import TableAnswer, VersionHead, fetch_changes
from deltalog.sharing.client.shown_version import ShownVersion, VersionOrTimestamp
from deltalog.sharing.client.snapshots import (
    snapshot_without_files,
    store_of_answer,
    with_own_urls,
)
from deltalog.sharing.wire.requests import ChangesQuery, TableQuery
from deltalog.storage.http.client import run
from deltalog.table.inspect.follow import Offset, Step, Steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog._util.clock import Clock
    from deltalog.data.scan.reader import ScanTask
    from deltalog.log.snapshot import Snapshot
    from deltalog.sharing.client.rest import AsyncRestClient
    from deltalog.sharing.client.store import SharedStore
    from deltalog.sharing.wire.lines import Table

# The minimum number of seconds between two requests for the latest version. The protocol: "There's
# a minimum 30 seconds interval between two getTableVersion rpcs […]. An error will be thrown if
# it's set less than 30 seconds."
SHORTEST_INTERVAL_S: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFollowOptions:
    """Options for following a shared table.

    Args:
        changes: whether to return the change data feed instead of new rows.
        columns: names of the columns to return; None means all columns.
        predicate: anything that `scan` accepts.
        version_interval_s: minimum number of seconds between two requests for the latest version.
        shortest_interval_s: the smallest valid `version_interval_s`. The protocol requires 30 s;
            today's servers allow 10 s.
        max_versions_per_request: maximum number of versions in one request.
        ignore_deletes: whether to skip commits that only delete rows.
        ignore_changes: whether to return all rows of the files that a commit writes when it
            rewrites files.
        skip_change_commits: whether to skip commits that delete or rewrite rows, including the rows
            that they add.
    """

    changes: bool = False
    columns: Sequence[str] | None = None
    predicate: Any = None
    version_interval_s: float = SHORTEST_INTERVAL_S
    shortest_interval_s: float = SHORTEST_INTERVAL_S
    # The default of the option `maxVersionsPerRpc` in the protocol.
    max_versions_per_request: int = 100
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False

    def __post_init__(self) -> None:
        if self.version_interval_s < self.shortest_interval_s:
            raise InvalidInputError(
                f"version_interval_s: expected {self.shortest_interval_s} s or more, found "
                f"{self.version_interval_s}"
            )
        if self.max_versions_per_request < 1:
            raise InvalidInputError(
                "max_versions_per_request: expected 1 or more, found "
                f"{self.max_versions_per_request}"
            )


class SharedFollower:
    """Returns the rows of a shared table in steps; an iterator that waits for later versions.

    The server must share history. Rows have the schema of the first step. When the schema changes,
    `poll` returns all rows before the change and then raises an error; a new follower can continue
    from the offset.

    Args:
        view: view of the table.
        start: the offset of an earlier step; or the first version or time whose changes are
            returned; or `latest` for later changes only. If None, the first step returns all rows
            of the table.
        options: which rows to return, and how often to ask the server.
        clock: waits between requests; None means the client's clock.
        until: this version and later versions are ignored.
    """

    def __init__(
        self,
        view: ShownVersion,
        *,
        start: Offset | VersionOrTimestamp | Literal["latest"] | None = None,
        options: SharedFollowOptions | None = None,
        clock: Clock | None = None,
        until: int | None = None,
    ) -> None:
        self._view = view
        self._options = options or SharedFollowOptions()
        self._clock = clock or view.client.clock
        self._until = until
        self._shown: TableConfiguration | None = None
        self._latest = -1
        self._known = view.head.version
        self._asked_ms: int | None = None
        self._offset = self._start(start)

    @property
    def offset(self) -> Offset:
        """Return the start of the next step; store it after processing the rows before it."""
        return self._offset

    def poll(self) -> Step | None:
        """Return the next step, or None if there is no later version now.

        Raises:
            RowsChangedError: a commit deleted or rewrote rows, and no option allows this.
            IncompatibleChangesError: the schema changed, or the table was replaced.
            SharingError: the server refuses the request.

        Cost: one request for the latest version, at most once per `version_interval_s`; one for
            each range of versions.
        """
        with naming_the_attempt("follow", self._name):
            if self._offset.is_starting_version:
                return self._starting_rows()
            while (last := self._last_of_range()) is not None:
                step = self._changes(last) if self._options.changes else self._appended(last)
                self._offset = step.offset
                if step.tasks:
                    return step
        return None

    def available(self) -> Iterator[Step]:
        """Yield the steps up to the latest version."""
        return Steps(self.poll)

    def __iter__(self) -> Self:
        """Return the follower itself."""
        return self

    def __next__(self) -> Step:
        """Wait for the next step and return it."""
        while (step := self.poll()) is None:
            self._clock.sleep(self._options.version_interval_s)
        return step

    def _start(self, start: Offset | VersionOrTimestamp | Literal["latest"] | None) -> Offset:
        head = self._view.head
        if isinstance(start, Offset):
            if start.table_id != head.metadata.id:
                raise InvalidInputError(
                    f"cannot follow {self._name}: the offset belongs to table {start.table_id}, "
                    f"but this table is {head.metadata.id}"
                )
            return start
        first = Offset(table_id=head.metadata.id, version=head.version)
        if start is None:
            return replace(first, is_starting_version=True)
        if start == "latest":
            return replace(first, version=head.version + 1)
        version = start.version
        if version is None:
            at_ms = start.timestamp_ms
            version = run(self._view.client.table_version, self._view.table, at_ms)
        return replace(first, version=version)

    @property
    def _name(self) -> str:
        return self._view.table.full_name

    def _last_of_range(self) -> int | None:
        """Return the last version to request now, or None if there is no later version."""
        first = self._offset.version
        if self._until is not None and first >= self._until:
            return None
        if self._latest < first and self._may_ask():
            self._latest = run(self._view.client.table_version, self._view.table)
            if self._latest < self._known:  # the table was replaced, or the answer is old
                self._check_same_table(self._newest().head.metadata.id)
            self._known = max(self._known, self._latest)
        if self._latest < first:
            return None
        last = min(self._latest, first + self._options.max_versions_per_request - 1)
        return last if self._until is None else min(last, self._until - 1)

    def _newest(self) -> ShownVersion:
        view = self._view
        return type(view)(view.client, view.table, VersionOrTimestamp(), time_zone=view.time_zone)

    def _check_same_table(self, table_id: str) -> None:
        """Raise if another table has replaced this one since the last step."""
        if table_id != self._offset.table_id:
            raise IncompatibleChangesError(
                f"cannot follow {self._name} beyond version {self._offset.version - 1}: the "
                f"table was replaced (new id {table_id}); follow the new table from its start"
            )

    def _may_ask(self) -> bool:
        now_ms = self._clock.now_ms()
        interval_ms = self._options.version_interval_s * 1000
        if self._asked_ms is not None and now_ms - self._asked_ms < interval_ms:
            return False
        self._asked_ms = now_ms
        return True

    def _starting_rows(self) -> Step:
        version = self._offset.version
        is_shown = self._view.at.is_latest and self._view.head.version == version
        at = None if is_shown else VersionOrTimestamp(version=version)
        snapshot = self._view.snapshot_for(at=at)
        self._check_same_table(snapshot.metadata.id)
        # A server that does not share history returns the latest version, whatever was requested.
        next_offset = Offset(table_id=self._offset.table_id, version=snapshot.version + 1)
        step = self._step(snapshot, snapshot.files(TASK_COLUMNS), next_offset)
        self._shown = snapshot.configuration
        self._offset = next_offset
        return step

    def _changes(self, last: int) -> Step:
        query = ChangesQuery(
            starting_version=self._offset.version,
            ending_version=last,
            include_historical_metadata=True,
        )
        changes = load_changes(
            self._view.client,
            self._view.table,
            query,
            self._view.head,
            columns=as_columns(self._options.columns),
            predicate=self._options.predicate,
            time_zone=self._view.time_zone,
        )
        self._check_same_table(changes.first.metadata.id)
        return Step(
            tasks=tuple(changes.tasks()),
            offset=self._after(last),
            output=changes.schema,
            table_schema=changes.table_schema,
        )

    def _appended(self, last: int) -> Step:
        first = self._offset.version
        query = TableQuery(starting_version=first, ending_version=last)
        answer = run(fetch_changes, self._view.client, self._view.table, query)
        configuration = answer.head.configuration
        self._check_same_table(answer.head.metadata.id)
        if self._shown is not None and _shape(self._shown) != _shape(configuration):
            raise IncompatibleChangesError(
                f"cannot follow {self._name} beyond version {first - 1}: its schema changed in "
                f"version {first}; all earlier rows were returned: start a new follower from the "
                f"offset {self._offset.to_json()}"
            )
        self._shown = self._shown or configuration
        table = _parsed(answer, last)
        last = self._last_of_schema(table, last)
        shown = self._shown
        store = store_of_answer(self._view.client, self._view.table, query, answer, {})
        context = TableContext(store=store, time_zone=self._view.time_zone)
        head = VersionHead(version=first, protocol=shown.protocol, metadata=shown.metadata)
        snapshot = snapshot_without_files(context, head)
        check_rows_readable(snapshot)
        added, removed = _versions(table.adds), _versions(table.removes)
        given = [
            version
            for version in sorted(added | removed)
            if version <= last and self._gives_added(version, version in added, version in removed)
        ]
        files = _of_versions(_changing(table.adds), given)
        return self._step(snapshot, files, self._after(last))

    def _last_of_schema(self, table: CommitTable, last: int) -> int:
        """Return the last version that still has the schema of the rows."""
        for version, metadata in table.metadatas:
            if self._shown is None or version > last:
                continue
            if _shape(replace(self._shown, metadata=metadata)) != _shape(self._shown):
                return version - 1
        return last

    def _gives_added(self, version: int, adds: bool, removes: bool) -> bool:  # noqa: FBT001  # facts of the commit
        """Return whether the files that a commit adds are returned as new rows."""
        options = self._options
        if not removes:
            return True
        if options.skip_change_commits:
            return False
        if options.ignore_changes:
            return True
        if options.ignore_deletes and not adds:
            return False
        raise RowsChangedError(
            f"cannot follow {self._name} beyond version {version - 1}: version {version} "
            f"{'rewrote' if adds else 'deleted'} rows; ignore_deletes=True skips deletes, "
            "ignore_changes=True returns rewritten rows again, skip_change_commits=True skips the "
            "whole commit, and changes=True follows the change data feed"
        )

    def _step(self, snapshot: Snapshot, files: pa.Table, offset: Offset) -> Step:
        options = self._options
        condition = options.predicate
        if condition is not None:
            condition = as_condition(
                snapshot.configuration.schema, condition, session=snapshot.context.session
            )
        spec = read_spec(snapshot, columns=as_columns(options.columns), predicate=condition)
        tasks = (
            make_task(snapshot, spec, row)
            for batch in files.to_batches(max_chunksize=4096)
            for row in batch.to_pylist()
        )
        own = tuple(with_own_urls(snapshot, tasks))
        return Step(
            tasks=own,
            offset=offset,
            output=spec.output,
            table_schema=snapshot.configuration.schema,
        )

    def _after(self, version: int) -> Offset:
        return Offset(table_id=self._offset.table_id, version=version + 1)


def _parsed(answer: TableAnswer, last: int) -> CommitTable:
    # Ignore later versions, because the server may send them. The protocol: `endingVersion` "is not
    # enforcement. Hence […] the client should still handle the case that it may receive files after
    # endingVersion."
    return parse_commits(
        (LogFile(LogFileKind.COMMIT, version, FileInfo(commit_path(version), 0, 0)), data)
        for version, data in answer.commits.items()
        if version <= last
    )


def _changing(files: pa.Table) -> pa.Table:
    """Return the files whose actions have `dataChange`, which defaults to true."""
    changing = compute.coalesce(files.column("dataChange"), TRUE)
    return files.filter(changing)


def _versions(files: pa.Table) -> set[int]:
    found: list[Any] = _changing(files).column(VERSION_COLUMN).to_pylist()
    return set(found)


def _of_versions(files: pa.Table, versions: Sequence[int]) -> pa.Table:
    wanted = pa.array(versions, pa.int64())
    return files.filter(compute.is_in(files.column(VERSION_COLUMN), value_set=wanted))


def _shape(configuration: TableConfiguration) -> list[tuple[Any, ...]]:
    """Return what determines the Arrow schema of the rows and the columns of files."""
    mode = configuration.column_mapping_mode
    return [
        (path, physical_name(field, mode), str(field.type), field.nullable)
        for path, field in walk(configuration.schema)
    ]


# --- The change data feed of a shared table


@dataclass(frozen=True)
class SharedChanges(Changes):
    """Changes of a shared table; each task contains only the URLs of its own files."""

    def tasks(self) -> Iterator[ScanTask]:
        """Yield one picklable task per file, in order of versions; see `SharedScan.tasks`."""
        return with_own_urls(self.snapshot, super().tasks())

    def to_spark(self, spark: Any = None) -> Any:
        """Return all changed rows as a Spark DataFrame; Spark's workers read the files.

        The DataFrame has the columns, predicate and versions of the change feed.

        Args:
            spark: the session, classic or remote; None means the active session.

        Returns:
            A `pyspark.sql.DataFrame`.

        Raises:
            InvalidInputError: there is no session or no PySpark, or the session's time zone would
                change partition values that have no zone.
            IncompatibleChangesError: the schema changed within the range.

        Cost: see `tasks` and `SharedScan.to_spark`.
        """
        require_library("pyspark", extra="spark")
        return higher("changes_frame")(self, spark)


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
        table: a table of a share.
        query: the range of versions.
        shown: the version that determines the schema of the rows; with column mapping, the last
            version of the range.
        columns: names of columns of the table or of `CHANGE_COLUMNS`; None means all of them.
        predicate: a condition on these columns.
        time_zone: the zone of partition values that have no zone.

    Raises:
        SharingError: the server refuses the range.
        IncompatibleChangesError: the schema changed within the range; raised when rows are read.
    """
    answer = run(fetch_changes, rest, table, query)
    end = query.ending_version
    commits = {n: data for n, data in answer.commits.items() if end is None or n <= end}
    log = {
        commit_path(number): (data, answer.times_ms.get(number, 0))
        for number, data in commits.items()
    }
    store = store_of_answer(rest, table, query, answer, log)
    # If there are no commits, the range is empty: its end is before its start.
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
    """Return an empty change feed, for a range after the latest version."""
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
    """Return the version that determines the schema of the rows, chosen as in `open_changes`."""
    if first.configuration.column_mapping_mode is Mode.NONE:
        return snapshot_without_files(context, shown)
    commits = parse_commits((file, context.store.read(file.info.path)) for file in files)
    metadatas = [first.metadata, *(metadata for _, metadata in commits.metadatas)]
    newest = VersionHead(version=last, protocol=first.protocol, metadata=metadatas[-1])
    return snapshot_without_files(context, newest)


def _log_file(store: SharedStore, version: int) -> LogFile:
    return LogFile(LogFileKind.COMMIT, version, store.log_info(commit_path(version)))
