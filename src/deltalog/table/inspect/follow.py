"""Follow a table: its current rows, then new rows as they are committed, each row once.

A `Step` is one batch of rows that a follower returns. This module defines the order of the files in
steps, how offsets advance, and which commits cannot be returned as new rows. All rows of a step
have the same schema. The rules are those of Delta's streaming source, with one exception: rows have
the schema of their own version. So a follower that stopped at a schema change can always continue
from its offset.

Protocol: Add File and Remove File, Change Data Files
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Self, TypeVar

import pyarrow as pa

from deltalog._util.call_errors import WrongCallError
from deltalog._util.clock import Clock, Moment, SystemClock
from deltalog._util.json import dumps, loads
from deltalog._util.kernels import compute
from deltalog._util.readable import FILE, counted, epoch_hint
from deltalog._util.similar_names import SimilarNames, suggests_arguments
from deltalog._util.small_arrays import small_scalar
from deltalog.data.scan.changes import open_changes
from deltalog.data.scan.plan import TASK_COLUMNS, check_rows_readable, make_task, make_tasks
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.data.scan.rows import Rows
from deltalog.data.scan.task import ReadSpec, read_spec
from deltalog.errors import (
    DeltaError,
    IncompatibleChangesError,
    InvalidInputError,
    RowsChangedError,
    VersionNotFoundError,
)
from deltalog.log.listing import list_log
from deltalog.log.reader import VERSION_COLUMN, CommitTable, advising_on_damage, read_commits
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.log.snapshot.open_log import is_same_commit
from deltalog.operations.arguments import as_bound
from deltalog.protocol.column_mapping import physical_name
from deltalog.schema.columns import naming_the_attempt, walk
from deltalog.schema.metadata_columns import (
    CHANGE_COLUMNS,
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    moment_of,
)

if TYPE_CHECKING:
    from deltalog._util.paths import FileInfo
    from deltalog.expressions import Expression
    from deltalog.log.names import LogFile
    from deltalog.log.segment import LogListing
    from deltalog.schema import StructType

_COMMITS_TOGETHER: Final = 64
StepT = TypeVar("StepT")


_OF_STEPS: Final = "the same method of each step, as in `for step in table.follow().available():`"
_ONE_STEP: Final = (
    "next(follower.available(), None) for the next step, or a loop over follower.available()"
)
_MEANT: Final = {
    **dict.fromkeys(("to_pandas", "to_polars", "to_table", "to_arrow", "to_batches"), _OF_STEPS),
    **dict.fromkeys(("to_pylist", "to_reader", "to_duckdb", "read_all", "schema"), _OF_STEPS),
    **dict.fromkeys(("read", "collect", "fetch", "get", "next", "head", "first"), _ONE_STEP),
    **dict.fromkeys(("take", "start", "load", "run"), _ONE_STEP),
}
"""Names of results, and what to use instead."""


class Follower(SimilarNames):
    """An endless iterator over the steps of a table, for both `for` and `async for`.

    `for step in follower` waits for new commits. `available()` ends when all present commits have
    been returned. Store the offset of a step after its rows are processed, and pass it as `start`
    to continue.

    Args:
        snapshot: the latest version of the table.
        start: None starts with the rows of `snapshot`, a version or a timestamp with the changes of
            that version, and `latest` with the changes after `snapshot`. An `Offset` continues
            there.
        options: options of the follower.
        until: an offset of another follower, where this follower ends.
        clock: sleeps between two polls.

    Attributes:
        listed_version: the latest version that the last poll has found; None if it did not list the
            log.

    Raises:
        InvalidInputError: the offset belongs to another table, or a column does not exist.
        VersionNotFoundError: the version was cleaned up.
        UnsupportedFeatureError: the table has a table feature that deltalog cannot read.
    """

    _meant = _MEANT

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        start: Offset | int | Moment | Literal["latest"] | None = None,
        options: FollowOptions | None = None,
        until: Offset | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._until = until
        self._options = FollowOptions() if options is None else options
        self._clock = SystemClock() if clock is None else clock
        self._context = snapshot.context
        self._root = snapshot.store.root
        self._closed = False
        self.listed_version: int | None = None
        self._offset = start_of(snapshot, start)
        if self._offset.table_id != snapshot.metadata.id:
            raise InvalidInputError(
                f"cannot follow {snapshot.store.root}: the offset belongs to table "
                f"{self._offset.table_id}, but this table is {snapshot.metadata.id}"
            )
        here = self._offset.version - snapshot.version
        if here > 0 or (here == 0 and snapshot.knows_file_time):
            check_rows_readable(snapshot)
            self._view = snapshot
        else:
            self._view = self._load(self._offset.version)
        self._spec = self._read_spec(self._view)
        self._known: CommitTable | None = None
        self._known_from, self._known_to = 0, -1
        self._snapshot_files: pa.Table | None = None
        # The version and the file of the last processed commit.
        self._before: tuple[int, FileInfo] | None = None

    @property
    def offset(self) -> Offset:
        """The position of the next step. It also advances past commits that return no rows."""
        return self._offset

    def close(self) -> None:
        """End the iteration before the next poll; may be called from any thread."""
        self._closed = True

    def poll(self) -> Step | None:
        """Return the next step, or None if there are no new rows at present.

        Raises:
            RowsChangedError: rows were deleted or rewritten, and no option allows that.
            IncompatibleChangesError: the schema changed; continue from `offset` in a new follower.
            VersionNotFoundError: the next commits were cleaned up.
            ChangeDataFeedNotEnabledError: the option `changes` is set, but the table's change data
                feed is off.

        Cost: one listing of the log, and one request per new commit.
        """
        budget = StepBudget(self._options)
        self.listed_version = None
        if self._offset.is_starting_version:
            self._take_snapshot(budget)
        else:
            try:
                self._take_commits(budget)
            except DeltaError:
                # If there are tasks, return them now. The next poll will raise the error again.
                if not budget.tasks:
                    raise
        if not budget.tasks:
            return None
        return Step(
            tasks=tuple(budget.tasks),
            offset=self._offset,
            output=self._spec.output,
            table_schema=self._view.configuration.schema,
        )

    def available(self) -> Iterator[Step]:
        """Yield steps until all present commits have been returned."""
        return Steps(lambda: None if self._closed else self.poll())

    def __iter__(self) -> Self:
        """Return the follower itself."""
        return self

    def __next__(self) -> Step:
        """Wait for the next step."""
        while not self._closed:
            if (step := self.poll()) is not None:
                return step
            self._clock.sleep(self._options.poll_seconds)
        raise StopIteration

    def __aiter__(self) -> Self:
        """Return the follower itself."""
        return self

    async def __anext__(self) -> Step:
        """Wait for the next step without blocking the event loop."""
        while not self._closed:
            if (step := await asyncio.to_thread(self.poll)) is not None:
                return step
            if isinstance(self._clock, SystemClock):
                await asyncio.sleep(self._options.poll_seconds)
            else:
                await asyncio.to_thread(self._clock.sleep, self._options.poll_seconds)
        raise StopAsyncIteration

    def __repr__(self) -> str:
        """Show the table and the position."""
        return f"Follower({self._context.store.root!r}, {self._position()})"

    def _repr_html_(self) -> str:
        """Return the notebook card: the table and the position."""
        from deltalog._util.cards import card, grid  # only notebooks need it

        facts = [("table", self._context.store.root), ("next", self._position())]
        return card("Follower", grid(facts))

    def _position(self) -> str:
        at = self._offset
        what = "all rows of version" if at.is_starting_version else "changes from version"
        return f"{what} {at.version}, file {at.index}"

    def _take_snapshot(self, budget: StepBudget) -> None:
        """Add files of the starting version to the step, oldest first.

        The order is the same for every follower, so that an offset can be continued.
        """
        if self._snapshot_files is None:
            files = self._view.files(TASK_COLUMNS)
            order = [("modificationTime", "ascending"), ("path", "ascending")]
            self._snapshot_files = files.take(compute.sort_indices(files, sort_keys=order))
        constants: tuple[tuple[str, Any], ...] = ()
        if self._options.changes:
            moment = moment_of(self._view.commit_timestamp_ms)
            kind = CHANGE_COLUMNS[COMMIT_TIMESTAMP]
            constants = (
                (COMMIT_VERSION, pa.array([self._view.version], pa.int64())),
                (COMMIT_TIMESTAMP, pa.array([moment], kind)),
                (CHANGE_TYPE, pa.array(["insert"])),
            )
        index, stop = self._offset.index, self._snapshot_files.num_rows
        if self._until is not None and self._until.version == self._view.version:
            stop = min(stop, self._until.index)
        most = min(budget.max_files, max(0, stop - index))
        for batch in self._snapshot_files.slice(index, most).to_batches():
            for row in batch.to_pylist():
                if not budget.admits(row["size"]):
                    break
                budget.take(make_task(self._view, self._spec, row, constants=constants))
        index += len(budget.tasks)
        if index >= self._snapshot_files.num_rows:
            self._snapshot_files = None
            self._offset = self._offset_at(self._view.version + 1)
            target = self._view.segment.target_commit
            self._before = None if target is None else (self._view.version, target)
        else:
            self._offset = replace(self._offset, index=index)

    def _take_commits(self, budget: StepBudget) -> None:
        commits = self._new_commits()
        for number, file in enumerate(commits):
            table = self._read(commits[number : number + _COMMITS_TOGETHER])
            if not self._take_commit(file, table, budget):
                return

    def _new_commits(self) -> Sequence[LogFile]:
        """List the commits from the offset on; raise if one is missing."""
        version = self._offset.version
        listing = list_log(
            self._context.store, from_version=max(0, version - 1), log_tail=self._context.log_tail
        )
        if self._before is not None:
            self._check_still_there(*self._before, listing)
        commits = [file for file in listing.commits.values() if file.version >= version]
        found = {file.version for file in commits}
        latest = listing.latest_version
        last = max(found, default=-1 if latest is None else latest)
        missing = next((at for at in range(version, last + 1) if at not in found), None)
        if missing is not None:
            raise VersionNotFoundError(
                f"cannot follow {self._root} from version {missing}: that commit was cleaned "
                f"up, and the latest version is {last}; start again without the offset"
            )
        self.listed_version = last
        return commits

    def _check_still_there(self, version: int, commit: FileInfo, listing: LogListing) -> None:
        """Raise if another commit has replaced the last processed commit.

        A commit that was only cleaned up is no error.
        """
        found = listing.commits.get(version)
        is_cleaned_up = found is None and max(listing.commits, default=-1) > version
        if is_cleaned_up or (found is not None and is_same_commit(commit, found.info)):
            return
        latest = load_snapshot(self._context)
        if latest.metadata.id != self._offset.table_id:
            raise IncompatibleChangesError(
                f"cannot follow {self._root} beyond version {version}: the table was replaced "
                f"(new id {latest.metadata.id}); follow the new table from its start"
            )
        raise VersionNotFoundError(
            f"cannot follow {self._root} beyond version {version}: the log now has another "
            f"commit of that version, or none, and its latest version is {latest.version}; "
            "start again without the offset"
        )

    def _take_commit(self, file: LogFile, table: CommitTable, budget: StepBudget) -> bool:
        """Add files of one commit to the step; return whether the next commit may be added too."""
        if self._is_beyond(file.version, 1) or not self._enter(file.version, table, budget):
            return False
        if self._options.changes:
            tasks: Iterator[ScanTask] = self._changes(file.version).tasks()
        else:
            tasks = self._appended(file.version, table)
        index = 0
        for task in tasks:
            index += 1
            if index <= self._offset.index:
                continue
            if self._is_beyond(file.version, index) or not budget.admits(task.size_bytes):
                return False
            budget.take(task)
            self._offset = replace(self._offset, index=index)
        self._offset = self._offset_at(file.version + 1)
        self._before = file.version, file.info
        return True

    def _is_beyond(self, version: int, index: int) -> bool:
        """Return whether the file number `index` (from 1) of a version is after `until`."""
        until = self._until
        return until is not None and (version, index) > (until.version, until.index)

    def _enter(self, version: int, table: CommitTable, budget: StepBudget) -> bool:
        """Switch to protocol and schema of a version; return whether the step may include it.

        A step that already has rows of another schema must end before this version.
        """
        nodes = (*table.protocol_nodes, *table.metadata_nodes)
        if version == self._view.version or all(found != version for found, _ in nodes):
            return True
        view = self._load(version)
        if view.metadata.id != self._offset.table_id:
            raise IncompatibleChangesError(
                f"cannot follow {self._root} beyond version {version - 1}: the table was replaced "
                f"(new id {view.metadata.id}); follow the new table from its start"
            )
        if _shape(view) != _shape(self._view):
            if budget.tasks:
                return False
            if self._options.on_schema_change == "raise":
                raise IncompatibleChangesError(
                    f"cannot follow {self._root} beyond version {version - 1}: its schema "
                    f"changed in version {version}; all earlier rows were returned: continue from "
                    f"the offset {self._offset.to_json()}, or with on_schema_change='evolve'"
                )
        self._view, self._spec = view, self._read_spec(view)
        return True

    def _appended(self, version: int, table: CommitTable) -> Iterator[ScanTask]:
        """Yield tasks for the new files of a commit, if it is an append or the options allow it."""
        adds, removes = _changing(table.adds, version), _changing(table.removes, version)
        if removes.num_rows and not self._may_pass(version, adds.num_rows):
            return
        yield from make_tasks(self._view, self._spec, adds)

    def _may_pass(self, version: int, num_adds: int) -> bool:
        """Return whether to return the new files of a commit that also removes files.

        Raises:
            RowsChangedError: no option allows such a commit.
        """
        options = self._options
        if options.skip_change_commits:
            return False
        if options.ignore_changes:
            return True
        if options.ignore_deletes and not num_adds:
            return False
        what = "rewrote rows" if num_adds else "deleted rows"
        hint = (
            "ignore_changes=True returns rewritten rows again"
            if num_adds
            else ("ignore_deletes=True skips deletes")
        )
        raise RowsChangedError(
            f"cannot follow {self._root} beyond version {version - 1}: version {version} "
            f"{what}; {hint}, skip_change_commits=True skips the whole commit, and "
            "changes=True follows the change data feed"
        )

    def _changes(self, version: int) -> Any:
        view = self._view if self._view.version == version else self._load(version)
        return open_changes(
            view,
            start=version,
            end=version,
            columns=self._options.columns,
            predicate=self._predicate(view),
        )

    def _read(self, files: Sequence[LogFile]) -> CommitTable:
        """Return a table with the actions of the first of some commits.

        It also contains the other commits, and is cached for the next calls.
        """
        version = files[0].version
        if self._known is None or not self._known_from <= version <= self._known_to:
            with advising_on_damage(self._context.store, files, self._context.log_tail):
                self._known = read_commits(self._context.store, files)
            self._known_from, self._known_to = version, files[-1].version
        return self._known

    def _read_spec(self, view: Snapshot) -> ReadSpec:
        with naming_the_attempt("follow", self._root):
            if self._options.changes:
                return self._changes_spec(view)
            return read_spec(
                view,
                columns=self._options.columns,
                predicate=self._predicate(view),
            )

    def _changes_spec(self, view: Snapshot) -> ReadSpec:
        return open_changes(
            view,
            start=view.version + 1,  # an empty range, because only the columns are needed
            columns=self._options.columns,
            predicate=self._predicate(view),
            allow_out_of_range=True,
        ).spec

    def _predicate(self, view: Snapshot) -> Expression | None:
        make = self._options.predicate
        return None if make is None else make(view)

    def _load(self, version: int) -> Snapshot:
        view = load_snapshot(self._context, version=version)
        check_rows_readable(view)
        return view

    def _offset_at(self, version: int) -> Offset:
        return Offset(table_id=self._offset.table_id, version=version)


def start_of(snapshot: Snapshot, start: Offset | int | Moment | Literal["latest"] | None) -> Offset:
    """Return the offset at which a follower starts; see `Follower` for the arguments."""
    if isinstance(start, Offset):
        if start.version > snapshot.version + 1:
            raise VersionNotFoundError(
                f"cannot follow {snapshot.store.root} from version {start.version}: the latest "
                f"version is {snapshot.version}"
            )
        return start
    offset = Offset(table_id=snapshot.metadata.id, version=snapshot.version)
    if start is None:
        return replace(offset, is_starting_version=True)
    if start == "latest":
        return replace(offset, version=snapshot.version + 1)
    if isinstance(start, Moment):
        found = open_changes(snapshot, start=start, allow_out_of_range=True)
        is_later = found.end < found.first.version
        return replace(offset, version=snapshot.version + 1 if is_later else found.first.version)
    if not 0 <= start <= snapshot.version + 1:
        raise VersionNotFoundError(
            f"cannot follow {snapshot.store.root} from version {start}: the latest version is "
            f"{snapshot.version}{epoch_hint(start)}"
        )
    return replace(offset, version=start)


def _changing(files: pa.Table, version: int) -> pa.Table:
    """Return the files of one commit that change data."""
    changing = compute.coalesce(
        files.column("dataChange"),
        small_scalar(True, pa.bool_()),  # noqa: FBT003  # a value
    )
    versions = files.column(VERSION_COLUMN)
    here = compute.equal(versions, small_scalar(version, versions.type))
    return files.filter(compute.and_(here, changing))


def _shape(view: Snapshot) -> list[tuple[Any, ...]]:
    """Return paths, physical names, types and nullability of all fields.

    Rows of two versions can be in the same step if this is equal for both.
    """
    configuration = view.configuration
    mode = configuration.column_mapping_mode
    return [
        (path, physical_name(field, mode), str(field.type), field.nullable)
        for path, field in walk(configuration.schema)
    ]


# --- Offsets, options, steps, and the size limit of a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """The position of a follower. All rows before this position have been returned.

    Args:
        table_id: id in the table's metadata.
        version: the next version, or the version that was partly returned.
        index: number of files of this version that were returned.
        is_starting_version: whether all live files of this version are returned, instead of only
            the changes of its commit.
    """

    table_id: str
    version: int
    index: int = 0
    is_starting_version: bool = False

    def to_json(self) -> str:
        """Encode the offset as a string, to store it."""
        members = {
            "offsetVersion": 1,
            "tableId": self.table_id,
            "version": self.version,
            "index": self.index,
            "isStartingVersion": self.is_starting_version,
        }
        return dumps(members).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Offset:
        """Parse the string from `to_json`.

        Raises:
            InvalidInputError: the string is not an offset.
        """
        data = text.encode() if isinstance(text, str) else text
        try:
            node = loads(data, "offset")
            offset = cls(
                table_id=node["tableId"],
                version=node["version"],
                index=node["index"],
                is_starting_version=node["isStartingVersion"],
            )
            kinds = (offset.table_id, str), (offset.version, int), (offset.index, int)
            if node["offsetVersion"] == 1 and all(type(value) is kind for value, kind in kinds):
                return offset
        except (DeltaError, KeyError, TypeError):
            pass
        raise InvalidInputError(
            f"cannot follow from {text!r}: expected a string from Offset.to_json()"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """Options of a follower.

    Args:
        changes: whether to return the change data feed, with `_change_type` and the other columns
            of the feed, instead of new rows.
        columns: columns to return; None means all.
        predicate: returns the predicate for a version, resolved against its schema. It may use
            columns of the table and, if `changes` is set, columns of the feed.
        max_files: maximum number of files in a step.
        max_bytes: maximum size of the files of a step, in bytes. A single file may be larger.
        ignore_deletes: whether to skip commits that only delete rows.
        ignore_changes: whether to return all rows of rewritten files, including unchanged rows.
            Commits that only delete rows are skipped.
        skip_change_commits: whether to skip commits that delete or rewrite rows, including the
            files that such commits add.
        on_schema_change: `raise` raises before the first row with another schema; `evolve`
            continues with the new schema.
        poll_seconds: time between two polls when there are no new commits, in seconds.
    """

    changes: bool = False
    columns: Sequence[str] | None = None
    predicate: Callable[[Snapshot], Expression | None] | None = None
    max_files: int = 1000
    max_bytes: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    on_schema_change: Literal["raise", "evolve"] = "raise"
    poll_seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.max_files < 1 or (self.max_bytes is not None and self.max_bytes < 1):
            raise InvalidInputError(
                f"cannot follow with max_files_per_step={self.max_files}, "
                f"max_bytes_per_step={self.max_bytes}: expected 1 or more"
            )
        if self.on_schema_change not in {"raise", "evolve"}:
            raise InvalidInputError(
                f"on_schema_change: expected 'raise' or 'evolve', found {self.on_schema_change!r}"
            )
        if self.poll_seconds < 0:
            raise InvalidInputError(
                f"poll_seconds: expected 0 or more, found {self.poll_seconds!r}"
            )


class Steps(SimilarNames, Iterator[StepT]):
    """An iterator over steps that ends at the first None; it can be read once.

    Args:
        poll: returns the next step; None if there is none now.
    """

    _called = "the steps"
    _meant = _MEANT
    _otherwise = "a loop over the steps, or list(steps)"

    def __init__(self, poll: Callable[[], StepT | None]) -> None:
        self._poll = poll
        self._is_done = False

    def __iter__(self) -> Self:
        """Return the iterator itself."""
        return self

    def __next__(self) -> StepT:
        """Return the next step."""
        step = None if self._is_done else self._poll()
        self._is_done = step is None
        if step is None:
            raise StopIteration
        return step

    if not TYPE_CHECKING:  # type checkers must report these uses

        def __bool__(self) -> bool:
            """Return True, as without `__len__`."""
            return True

        def __len__(self) -> NoReturn:
            """Raise an error that says how to count the steps."""
            raise WrongCallError(
                "the number of steps is not known before they are read: use len(list(steps))"
            )

        def __getitem__(self, key: object) -> NoReturn:
            """Raise an error that says how to get one step."""
            raise WrongCallError(
                "steps have no positions, because each is read once: use next(steps, None) for the "
                "next step, or list(steps) for all"
            )


@suggests_arguments
@dataclass(frozen=True, eq=False)
class Step(Rows):
    """One batch of rows of a followed table; no data is read until the rows are requested.

    Args:
        tasks: the files to read, in order.
        offset: the position after these rows, to store when they have been processed.
        output: schema of the rows.
        table_schema: schema of the table.
    """

    _internal = frozenset({"output"})

    tasks: tuple[ScanTask, ...]
    offset: Offset
    output: pa.Schema
    table_schema: StructType

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows."""
        return self.output

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, in the order of the files."""
        return read_tasks(self.tasks)

    def __repr__(self) -> str:
        """Show the number of files, and the next position."""
        files = counted(len(self.tasks), FILE)
        return f"Step({files}, next {self.offset.version}:{self.offset.index})"

    def _repr_html_(self) -> str:
        """Return the notebook card: the columns, the number of files, and the next position."""
        from deltalog._util.cards import card, grid  # only notebooks need it

        at = f"version {self.offset.version}, file {self.offset.index}"
        facts = {"files": len(self.tasks), "columns": ", ".join(self.output.names), "next": at}
        return card("Step", grid(facts.items()))


def as_start(start: Any) -> Offset | int | Moment | Literal["latest"] | None:
    """Parse the start of a follower: a version, a timestamp, or an offset in any form.

    Raises:
        InvalidInputError: the argument is not an offset, version or timestamp.
    """
    if start is None or isinstance(start, Offset):
        return start
    if isinstance(start, str) and start == "latest":
        return "latest"
    if isinstance(start, Mapping):
        return Offset.from_json(dumps(dict(start)))
    if isinstance(start, str) and start.lstrip().startswith("{"):
        return Offset.from_json(start)
    if isinstance(start, str) and start.startswith("Offset("):
        raise InvalidInputError(
            f"cannot follow from {start!r}: it is an offset in the form that Python shows; store "
            "offset.to_json(), or pass the offset itself"
        )
    if isinstance(start, bool):
        raise InvalidInputError(
            f"cannot follow from {start!r}: expected a version, a timestamp or an offset"
        )
    return as_bound(start)


class StepBudget:
    """The number of files and bytes that a step may still add. The first file is always allowed."""

    def __init__(self, options: FollowOptions) -> None:
        self.max_files: int = options.max_files
        self.tasks: list[ScanTask] = []
        self._bytes = options.max_bytes

    def admits(self, size_bytes: int | None) -> bool:
        """Return whether the step may add a file of this size."""
        if not self.tasks:
            return True
        if len(self.tasks) >= self.max_files:
            return False
        return self._bytes is None or (size_bytes or 0) <= self._bytes

    def take(self, task: ScanTask) -> None:
        """Add a file to the step."""
        self.tasks.append(task)
        if self._bytes is not None:
            self._bytes -= task.size_bytes or 0
