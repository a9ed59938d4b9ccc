"""Workers that share a store, and make calls one at a time, in an order that the owner chooses.

Each worker is a thread that stops before every call to its store or catalog. The owner of the
worker lets the thread make its next call, and may make the call fail. Only one thread runs at a
time.
"""

from __future__ import annotations

import contextlib
import enum
import os
import sys
import threading
import time
import traceback
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog.errors import CommitOutcomeUnknownError, DeltaError, InternalError, StorageError
from deltalog.log.context import Committer, LogTail, RatifiedCommit, TableContext
from deltalog.operations.engine import LocalEngine
from deltalog.schema import Field
from deltalog.schema.types import LONG
from deltalog.storage.pool import alone
from deltalog.table import DeltaTable
from deltalog.table.write import write_deltalake
from deltalog.testing.simulation.model import WIDE, TableState
from deltalog.testing.stores import InMemoryCatalog, _Wrapper
from deltalog.transaction import AppTransaction, CatalogCommitter, CommitProperties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from deltalog.storage.store import Store
    from deltalog.testing.simulation.model import Machine, Row, SimulatedCatalog, Statement

_Result = TypeVar("_Result")
_LOOK_SECONDS = 1.0
_FREED: set[str] = set()


class Fate(enum.Enum):
    """The outcome of one call: the call succeeds, or a failure is injected."""

    FINE = "it is done"
    REFUSED = "nothing is done, and an error comes back"
    LOST = "it is done, and an error comes back"
    CRASH_BEFORE = "the process dies before it is done"
    CRASH_AFTER = "the process dies after it was done"
    TWICE = "the request is sent twice, and the second answer comes back"
    DELAYED = "an error comes back, and it is done some time later"
    TORN = "a listing lacks its newest file"
    TORN_MIDDLE = "a listing lacks a file in the middle"
    TORN_SHORT = "a listing ends in the middle"


HARMS = [fate for fate in Fate if fate is not Fate.FINE]
_TORN = {Fate.TORN, Fate.TORN_MIDDLE, Fate.TORN_SHORT}
_SENT = {Fate.TWICE, Fate.DELAYED}
_MAY_BE_SENT_AGAIN = {"put_if_absent", "propose"}
_LISTINGS = {"list_from", "list_all"}


def free_cached_properties() -> None:
    """Let two threads compute the same cached property at the same time, as since Python 3.12.

    Earlier versions of Python have one lock per property for all objects of a class. A worker that
    stops while it computes the property would block all other workers.
    """
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("deltalog.") and name not in _FREED:
            _FREED.add(name)
            _free(module)


def _free(module: ModuleType) -> None:
    for cls in vars(module).values():
        if isinstance(cls, type):
            for value in vars(cls).values():
                if isinstance(value, cached_property) and hasattr(value, "lock"):
                    value.lock = nullcontext()


def can_happen(fate: Fate, verb: str) -> bool:
    """Return whether this outcome is possible for a call of the method `verb`."""
    if fate in _TORN:
        return verb in _LISTINGS
    return fate not in _SENT or verb in _MAY_BE_SENT_AGAIN


class CrashedError(BaseException):
    """The simulated process has crashed. Ordinary code does not catch a `BaseException`."""


@dataclass
class CommonStore:
    """The store that all workers share, and the delayed requests, which have not reached it yet."""

    store: Store
    delayed: list[Callable[[], Any]] = field(default_factory=list)

    def deliver(self) -> None:
        """Execute the oldest delayed request. Its result is ignored."""
        with contextlib.suppress(DeltaError):
            self.delayed.pop(0)()


class SteppedStore(_Wrapper):
    """A store that waits before each call until the worker may make its next step."""

    def __init__(self, shared: CommonStore, worker: Worker) -> None:
        super().__init__(shared.store)
        self.worker = worker

    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        del data
        return self.worker.call(verb, paths, act)


class SteppedCatalog:
    """A catalog that waits before each call until the worker may make its next step."""

    def __init__(self, catalog: InMemoryCatalog, worker: Worker) -> None:
        self._catalog = catalog
        self._worker = worker

    def latest(self, table: str) -> LogTail:
        """Return the log tail; see `Catalog`."""
        return self._worker.call("latest", (table,), lambda: self._catalog.latest(table))

    def propose(self, table: str, commit: RatifiedCommit) -> None:
        """Propose a commit; see `Catalog`."""
        path = commit.file.path
        self._worker.call("propose", (path,), lambda: self._catalog.propose(table, commit))


class Worker:
    """A function that runs step by step in its own thread.

    Args:
        shared: the store that all workers share.
        work: the function that the thread runs. It receives the worker's store.
    """

    def __init__(self, shared: CommonStore, work: Callable[[SteppedStore], Any]) -> None:
        self.at: tuple[str, tuple[str, ...]] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done: bool = False
        self.steps: int = 0
        self._fate = Fate.FINE
        self._is_killed = False
        self._shared = shared
        self._go = threading.Semaphore(0)
        self._arrived = threading.Semaphore(0)
        store = SteppedStore(shared, self)
        self._thread = threading.Thread(target=self._run, args=(work, store), daemon=True)
        self._thread.start()
        self._wait()

    def _run(self, work: Callable[[SteppedStore], Any], store: SteppedStore) -> None:
        try:
            with alone():  # otherwise it would depend on timing which thread makes a call
                self.result = work(store)
        except BaseException as error:  # noqa: BLE001  # the owner of the worker examines the error
            self.error = error
        self.is_done = True
        self._arrived.release()

    def call(self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result]) -> _Result:
        """Wait for the next step. Then make the call, or let it fail as the step specifies."""
        fate = self._stop_at(verb, paths)
        if fate is Fate.FINE or not can_happen(fate, verb):
            return act()
        if fate in _TORN:
            listing: _Result = _torn(act(), fate)
            return listing
        if fate is Fate.TWICE:
            act()
            return act()
        if fate is Fate.CRASH_BEFORE:
            raise CrashedError
        if fate is Fate.DELAYED:
            self._shared.delayed.append(act)
        elif fate is not Fate.REFUSED:
            act()
        if fate is Fate.CRASH_AFTER:
            raise CrashedError
        raise StorageError(f"cannot {verb} {paths[:1]}: {fate.value} (injected)")

    def _stop_at(self, verb: str, paths: tuple[str, ...]) -> Fate:
        if self._is_killed and not self.is_done:
            raise CrashedError
        if self.is_done or threading.current_thread() is not self._thread:
            return Fate.FINE  # not a call of the worker's thread, or the worker has finished
        self.at = verb, paths
        self._arrived.release()
        self._go.acquire()
        if self._is_killed:
            raise CrashedError
        return self._fate

    def step(self, fate: Fate = Fate.FINE) -> None:
        """Let the worker make one call, and run until it stops before the next call.

        Args:
            fate: the outcome of the call.
        """
        if self.is_done:
            raise InternalError("a worker that is done has no next step")
        self.steps += 1
        self._fate = fate
        if fate in {Fate.CRASH_BEFORE, Fate.CRASH_AFTER}:
            # The worker has crashed. Code that still runs, such as `finally`, cannot reach a store.
            self._go.release()
            self._wait()
            self.kill()
            return
        self._go.release()
        self._wait()

    def finish(self) -> None:
        """Let the worker run to its end, without further failures."""
        while not self.is_done:
            self.step()

    def kill(self) -> None:
        """End the worker at the call before which it has stopped."""
        self._is_killed = True
        while not self.is_done:
            self._go.release()
            self._wait()

    def _wait(self) -> None:
        stalls = StallWatch()
        while not self._arrived.acquire(timeout=_LOOK_SECONDS):
            if stalls.has_stalled():
                raise InternalError(f"the worker hangs after {self.at}:\n{all_stacks()}")
        if self.is_done:
            self._thread.join()


def _torn(listing: Any, fate: Fate) -> Any:
    if fate is Fate.TORN_SHORT:
        del listing[(len(listing) + 1) // 2 :]
    elif len(listing) > 1:
        del listing[-1 if fate is Fate.TORN else len(listing) // 2]
    return listing


# --- detection of hangs: unlike a slow process, a process that hangs uses no processor time


_STALL_SECONDS: Final = 60.0
_PROGRESS_SECONDS: Final = 0.05
_WATCH_SECONDS: Final = 1.0


class StallWatch:
    """Detector of a process that makes no progress.

    Args:
        after_s: the number of seconds. If the process uses almost no processor time for so long, it
            counts as stalled.
    """

    def __init__(self, after_s: float = _STALL_SECONDS) -> None:
        self._after_s = after_s
        self._since = time.monotonic()
        self._used = time.process_time()

    def has_stalled(self) -> bool:
        """Return whether the process is stalled. Must be called every few seconds."""
        now, used = time.monotonic(), time.process_time()
        if used - self._used > _PROGRESS_SECONDS:
            self._since, self._used = now, used
        return now - self._since > self._after_s


def all_stacks() -> str:
    """Return the stacks of all threads of the process."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"{names.get(number, 'a thread of a library')}:\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sys._current_frames().items()  # noqa: SLF001  # there is no public function
    )


@contextmanager
def ended_when_stalled(after_s: float = _STALL_SECONDS) -> Iterator[None]:
    """End the process with code 70 if the block hangs; print the stacks of all threads before.

    Args:
        after_s: see `StallWatch`.
    """
    over = threading.Event()

    def watch() -> None:
        stalls = StallWatch(after_s)
        while not over.wait(_WATCH_SECONDS):
            if stalls.has_stalled():
                sys.stderr.write(f"no progress for {after_s} s:\n{all_stacks()}\n")
                sys.stderr.flush()
                os._exit(70)

    thread = threading.Thread(target=watch, name="stall-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# --- writers, each of which runs its statements one after the other


_TYPES: Final[Mapping[str, pa.DataType]] = {
    "id": pa.int64(),
    "p": pa.string(),
    "v": pa.int64(),
    WIDE: pa.int64(),
}


@dataclass(slots=True, kw_only=True)
class StatementRun:
    """The facts that are recorded while a statement runs.

    Args:
        statement: the statement.
        state: the state of the run. `unknown` if the writer crashed, or if it cannot be determined
            from the error whether the statement has committed.
        error: the error that the statement raised.
        version: the version of the writer's table object after the statement.
        target: the version that the statement restores or reads.
        found: the version, the columns and the rows that a read has returned.
        is_harmed: whether a failure was injected into a call of the statement.
        started_ms: the true time at which the statement started, in milliseconds since 1970.
    """

    statement: Statement
    state: Literal["waiting", "running", "done", "failed", "unknown"] = "waiting"
    error: DeltaError | None = None
    version: int | None = None
    target: int | None = None
    found: tuple[int, Sequence[str], Sequence[Row]] | None = None
    is_harmed: bool = False
    started_ms: int = 0


@dataclass(slots=True, kw_only=True)
class Writer:
    """A simulated process that runs its statements.

    Args:
        number: the number of the writer.
        outcomes: the runs of the writer's statements, in order.
        machine: the simulated machine of the process.
        catalog: the catalog of the table; None if there is none.
        begins: a function that is called when a statement begins. It chooses the version that the
            statement restores or reads.
    """

    number: int
    outcomes: list[StatementRun]
    machine: Machine
    catalog: SimulatedCatalog | None
    begins: Callable[[StatementRun], None]
    worker: Worker = field(init=False)
    current: StatementRun = field(init=False)
    has_seen_night: bool = False

    def __post_init__(self) -> None:
        """Make the first statement the current one."""
        self.current = self.outcomes[0]

    @property
    def is_at_commit(self) -> bool:
        """Whether the next call may create a version."""
        verb, paths = self.worker.at or ("", ())
        return verb == "propose" or (verb == "put_if_absent" and paths[0].startswith("_delta_log/"))

    def work(self, store: SteppedStore) -> None:
        """Run the statements. Each call to the store is a step."""
        catalog = None if self.catalog is None else SteppedCatalog(self.catalog, store.worker)
        committer = None if catalog is None else CatalogCommitter(catalog)
        table: DeltaTable | None = None
        with self.machine.on():
            for outcome in self.outcomes:
                self.current = outcome
                self.begins(outcome)
                try:
                    if table is None or outcome.statement.reopens:
                        table = open_table(store, committer)
                    self._execute(outcome, table, store)
                except CommitOutcomeUnknownError as error:
                    outcome.state, outcome.error, table = "unknown", error, None
                except DeltaError as error:
                    outcome.state, outcome.error, table = "failed", error, None
                else:
                    outcome.state, outcome.version = "done", table.version()

    def _execute(self, outcome: StatementRun, table: DeltaTable, store: Store) -> None:
        statement = outcome.statement
        if statement.kind == "publish":
            if self.catalog is not None:
                self.catalog.publish(store)
        elif statement.kind == "read":
            table = copy(table)  # the read must not change the version of the original object
            if outcome.target is not None:
                table.load_as_version(outcome.target)
            outcome.found = (table.version(), *read_rows(table))
        elif statement.rows:
            _write(table, statement)
        else:
            _change(table, statement, outcome.target)


def open_table(store: Store, committer: Committer | None) -> DeltaTable:
    """Open the latest version of the table."""
    context = TableContext(store=store, time_zone="UTC", committer=committer)
    return DeltaTable.from_context(context, LocalEngine())


def read_rows(table: DeltaTable) -> tuple[list[str], list[Row]]:
    """Return the names of a table's columns, and its rows."""
    found = table.scan().to_table()
    return found.column_names, list(found.to_pylist())


def as_arrow(rows: Sequence[Row]) -> pa.Table:
    """Return rows as an Arrow table."""
    names = list(rows[0])
    return pa.Table.from_pylist(
        [dict(row) for row in rows], pa.schema([(name, _TYPES[name]) for name in names])
    )


def properties_of(statement: Statement) -> CommitProperties:
    """Return the properties of a statement's commit, which contain the statement's number."""
    once = [AppTransaction("app", statement.app_version)] if statement.app_version else None
    return CommitProperties({"number": str(statement.number)}, app_transactions=once)


def _write(table: DeltaTable, statement: Statement) -> None:
    """Run a statement that has rows."""
    rows, properties = as_arrow(statement.rows), properties_of(statement)
    match statement.kind:
        case "append" | "append once":
            write_deltalake(table, rows, mode="append", commit_properties=properties)
        case "append wide":
            write_deltalake(
                table, rows, mode="append", schema_mode="merge", commit_properties=properties
            )
        case "upsert":
            table.upsert(rows, "id", commit_properties=properties)
        case "merge delete":
            merger = table.merge(
                rows,
                "t.id = s.id",
                source_alias="s",
                target_alias="t",
                commit_properties=properties,
            )
            merger.when_matched_delete().execute()
        case _:
            write_deltalake(
                table,
                rows,
                mode="overwrite",
                predicate=statement.condition.sql,
                commit_properties=properties,
            )


def _change(table: DeltaTable, statement: Statement, target: int | None) -> None:
    """Run a statement that has no rows."""
    properties, where = properties_of(statement), statement.condition.sql
    match statement.kind:
        case "delete":
            table.delete(where, commit_properties=properties)
        case "update":
            table.update(
                {"v": f"v + {statement.added}"}, predicate=where, commit_properties=properties
            )
        case "add column":
            table.alter.add_columns(Field(statement.column, LONG), properties)
        case "restore":
            table.restore(0 if target is None else target, commit_properties=properties)
        case "compact":
            table.optimize.compact(commit_properties=properties)
        case "purge":
            table.optimize.purge(commit_properties=properties)
        case "vacuum":
            full = bool(statement.number % 2)
            table.vacuum(dry_run=False, full=full, commit_properties=properties)
        case "clean up":
            table.cleanup_metadata()
        case _:
            table.create_checkpoint()


def state_of(rows: Sequence[Row]) -> TableState:
    """Return the state of a table that contains these rows."""
    return TableState(frozenset(rows[0]), {int(row["id"]): row for row in rows})
