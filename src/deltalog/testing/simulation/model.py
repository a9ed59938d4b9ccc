"""The model: it computes the effect of statements on a table in plain Python.

This module contains the statements and their effect on rows. The model has no files, no log and no
store: it computes the state of a version from the previous state and the committed statement. The
module also contains the simulated clock, machines, store and catalog.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

from deltalog._util.paths import FileInfo
from deltalog.errors import AlreadyExistsError, ObjectNotFoundError
from deltalog.log.names import commit_path
from deltalog.storage.pool import alone
from deltalog.testing.stores import InMemoryCatalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog._util.clock import Clock
    from deltalog.log.context import RatifiedCommit
    from deltalog.storage.store import ByteRange

    Row = Mapping[str, Any]

Kind = Literal[
    "append",
    "append once",
    "append wide",
    "overwrite",
    "replace where",
    "delete",
    "update",
    "upsert",
    "merge delete",
    "add column",
    "restore",
    "compact",
    "purge",
    "vacuum",
    "clean up",
    "checkpoint",
    "publish",
    "read",
]
Column = Literal["id", "p", "v"] | None
WIDE = "w"


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of one version: its columns, and its rows: value of `id` → row."""

    columns: frozenset[str]
    rows: Mapping[int, Row]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one column, which is true for a range of values; without a column, always."""

    column: Column
    low: int | str = 0
    high: int | str = 0

    @property
    def sql(self) -> str | None:
        """The condition in Spark SQL; None if it is true for all rows."""
        if self.column is None:
            return None
        if self.low == self.high:
            return f"{self.column} = {self.low!r}"
        return f"{self.column} BETWEEN {self.low!r} AND {self.high!r}"

    def holds(self, row: Row) -> bool:
        """Return whether the condition is true for a row."""
        if self.column is None:
            return True
        value: Any = row[self.column]
        return bool(self.low <= value <= self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a writer.

    Args:
        number: the number of the statement in its history. The commit of the statement contains it.
        kind: the kind of the operation.
        rows: the new rows, or the source rows of a merge.
        condition: the condition of a delete, update or replacement.
        added: the number that an update adds to `v`.
        app_version: the version of the application transaction; 0 if there is none.
        reopens: whether the writer opens the table again before this statement.
    """

    number: int
    kind: Kind
    rows: tuple[Row, ...] = ()
    condition: Condition = Condition(None)
    added: int = 0
    app_version: int = 0
    reopens: bool = True

    def __str__(self) -> str:
        """Return a short description of the statement for the trace."""
        more: list[object] = []
        if self.kind in {"delete", "update", "replace where"}:
            more.append(self.condition.sql or "all rows")
        if self.rows:
            more.append("ids " + ",".join(str(row["id"]) for row in self.rows))
        if self.added:
            more.append(f"v + {self.added}")
        if self.app_version:
            more.append(f"application version {self.app_version}")
        return f"#{self.number} {self.kind}" + "".join(f", {text}" for text in more)

    @property
    def column(self) -> str:
        """The name of the column that the statement adds to the table."""
        return f"c{self.number}"

    def applied_to(self, before: TableState, restored: TableState | None = None) -> TableState:
        """Return the state after the statement.

        Args:
            before: the state before the statement.
            restored: the state of the version that the statement restores.
        """
        if self.kind == "restore" and restored is not None:
            return restored
        columns = before.columns | self._new_columns()
        rows: Mapping[int, Row] = {
            n: {**dict.fromkeys(columns), **row}
            for n, row in before.rows.items()
            if not self._takes(row)
        }
        given = {int(row["id"]): row for row in self.rows}
        if self.kind == "update":
            rows = {
                n: {**row, "v": row["v"] + self.added} if self.condition.holds(row) else row
                for n, row in rows.items()
            }
        elif self.kind != "merge delete":
            empty: Row = dict.fromkeys(columns)
            rows = {**rows, **{n: {**rows.get(n, empty), **row} for n, row in given.items()}}
        return TableState(columns, rows)

    def _new_columns(self) -> frozenset[str]:
        """Return the columns that the statement adds to the table."""
        if self.kind == "append wide":
            return frozenset({WIDE})
        return frozenset({self.column} if self.kind == "add column" else ())

    def _takes(self, row: Row) -> bool:
        """Return whether the statement deletes or replaces this row."""
        if self.kind == "merge delete":
            return any(row["id"] == given["id"] for given in self.rows)
        if self.kind in {"overwrite", "delete", "replace where"}:
            return self.condition.holds(row)
        return False


def differences(expected: TableState, columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Return the differences between rows that were read and the model; empty if they are equal."""
    found: list[str] = []
    if set(columns) != expected.columns:
        found.append(f"columns {sorted(columns)}, expected {sorted(expected.columns)}")
    seen: dict[int, Row] = {}
    for row in rows:
        number = int(row["id"])
        if number in seen:
            found.append(f"row {number} twice")
        seen[number] = row
    found += [f"row {number} is missing" for number in sorted(set(expected.rows) - set(seen))]
    found += [f"row {number} is too many" for number in sorted(set(seen) - set(expected.rows))]
    found += [
        f"row {number} is {dict(seen[number])}, expected {dict(expected.rows[number])}"
        for number in sorted(set(seen) & set(expected.rows))
        if dict(seen[number]) != dict(expected.rows[number])
    ]
    return found


# --- the simulated machine of a process: its time, random numbers and names depend on the seed


@dataclass
class SteadyClock:
    """A clock that all machines share. Each reading advances it by 1 ms; `sleep` does not wait."""

    time_ms: int = 1_700_000_000_000

    def now_ms(self) -> int:
        """Return the time in milliseconds. It is later than all earlier results."""
        self.time_ms += 1
        return self.time_ms

    def sleep(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self.time_ms += int(seconds * 1000)


class Machine:
    """The simulated machine of a process.

    Args:
        clock: the clock with the true time.
        chance: the source of the machine's random numbers and names.
        skew_ms: the number of milliseconds by which the machine's clock is ahead of the true time.
    """

    def __init__(self, clock: Clock, chance: random.Random, skew_ms: int = 0) -> None:
        self._clock = clock
        self.skew_ms = skew_ms
        self._answers: dict[str, Callable[..., Any]] = {
            "time_ns": self._time_ns,
            "perf_counter": lambda: self._time_ns() / 1e9,
            "sleep": clock.sleep,
            "random": chance.random,
            "choice": chance.choice,
            "uuid4": lambda: uuid.UUID(int=chance.getrandbits(128), version=4),
        }

    def _time_ns(self) -> int:
        return (self._clock.now_ms() + self.skew_ms) * 1_000_000

    def answer(self, name: str) -> Callable[..., Any]:
        """Return the function that replaces a function of Python, such as `time_ns` or `uuid4`."""
        return self._answers[name]

    @contextmanager
    def on(self) -> Iterator[None]:
        """Run the block on this machine. All of its work runs in the calling thread."""
        before = getattr(_HERE, "machine", None)
        _HERE.machine = self
        try:
            with alone():
                yield
        finally:
            _HERE.machine = before


@contextmanager
def simulated() -> Iterator[None]:
    """Replace Python's functions for time and randomness in threads that run on a machine."""
    with _LOCK:
        saved = [(module, name, getattr(module, name)) for module, name in _ASKED]
        for module, name, real in saved:
            setattr(module, name, _entry_point(name, real))
        try:
            yield
        finally:
            for module, name, real in saved:
                setattr(module, name, real)


def _entry_point(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def ask(*arguments: Any) -> Any:
        machine: Machine | None = getattr(_HERE, "machine", None)
        return (real if machine is None else machine.answer(name))(*arguments)

    return ask


_HERE: Final = threading.local()
_LOCK: Final = threading.RLock()
_ASKED: Final = (
    (time, "time_ns"),
    (time, "perf_counter"),
    (time, "sleep"),
    (random, "random"),
    (secrets, "choice"),
    (uuid, "uuid4"),
)


# --- the simulated store, with files in memory and simulated times, and the simulated catalog


class SimulatedStore:
    """A consistent object store in memory: each call sees the effects of all earlier calls.

    Attributes:
        files: path → content.
    """

    root = "simulated://table"

    def __init__(self, clock: SteadyClock) -> None:
        self.files: dict[str, bytes] = {}
        self._clock = clock
        self._times_ms: dict[str, int] = {}

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        """List a directory; see `Store`."""
        start = f"{directory}/"
        found = [
            path
            for path in self.files
            if path.startswith(start) and "/" not in (name := path[len(start) :]) and name >= first
        ]
        return map(self.stat, sorted(found))

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """List all files; see `Store`."""
        start = f"{directory}/" if directory else ""
        return map(self.stat, sorted(path for path in self.files if path.startswith(start)))

    def stat(self, path: str) -> FileInfo:
        """Return the size and time of a file; see `Store`."""
        return FileInfo(path, len(self.read(path)), self._times_ms[path])

    def read(self, path: str) -> bytes:
        """Read a file; see `Store`."""
        if path not in self.files:
            raise ObjectNotFoundError(f"there is no {path}")
        return self.files[path]

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Read ranges of a file; see `Store`."""
        data = self.read(path)
        return [data[start:end] for start, end in ranges]

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Read files; see `Store`."""
        return [self.read(path) for path in paths]

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading; see `Store`."""
        return BytesIO(self.read(path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create a file; see `Store`."""
        if path in self.files:
            raise AlreadyExistsError(f"{path} already exists")
        self.put(path, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file; see `Store`."""
        self.files[path] = data
        self._times_ms[path] = self._clock.now_ms()

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete files; see `Store`."""
        for path in paths:
            self.files.pop(path, None)


class SimulatedCatalog(InMemoryCatalog):
    """A catalog that also records which commits it has ratified.

    Attributes:
        ratified: version → path of the ratified commit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ratified: dict[int, str] = {}

    def propose(self, table: str, commit: RatifiedCommit) -> None:
        """Ratify a commit and record it; see `Catalog`."""
        super().propose(table, commit)
        self.ratified[commit.version] = commit.file.path

    def register(self, table: str, version: int) -> None:
        """Register a table and record its commits; see `InMemoryCatalog`."""
        super().register(table, version)
        self.ratified |= {known: commit_path(known) for known in range(version + 1)}
