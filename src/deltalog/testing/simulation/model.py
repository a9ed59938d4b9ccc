"""The model: the effect of statements on a table, in plain Python.

Owns statements and their effect on rows. It has no files, logs or stores: the state of a version is
the state of the version before, changed by the committed statement.
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
    """The state of one version: columns, and rows by `id`."""

    columns: frozenset[str]
    rows: Mapping[int, Row]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition for values in a range; without a column it is true for all rows."""

    column: Column
    low: int | str = 0
    high: int | str = 0

    @property
    def sql(self) -> str | None:
        """The condition in Spark SQL."""
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
        number: of the statement in its history; commits record it.
        kind: the kind of operation.
        rows: new rows, or the rows of a source.
        condition: of deletes, updates and replacements.
        added: the number that an update adds to `v`.
        app_version: of an application transaction.
        reopens: whether the writer opens the table again for this statement.
    """

    number: int
    kind: Kind
    rows: tuple[Row, ...] = ()
    condition: Condition = Condition(None)
    added: int = 0
    app_version: int = 0
    reopens: bool = True

    def __str__(self) -> str:
        """Return the statement's name for a trace."""
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
        """The column that the statement adds."""
        return f"c{self.number}"

    def applied_to(self, before: TableState, restored: TableState | None = None) -> TableState:
        """Return the state after the statement.

        Args:
            before: the state before the statement.
            restored: the state that a restore returns to.
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
        """Return whether the statement removes a row of the table."""
        if self.kind == "merge delete":
            return any(row["id"] == given["id"] for given in self.rows)
        if self.kind in {"overwrite", "delete", "replace where"}:
            return self.condition.holds(row)
        return False


def differences(expected: TableState, columns: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Return the differences between a reader's rows and the model; empty if there are none."""
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


# The simulated machine of a process: its time, random numbers and names come from the seed.


@dataclass
class SteadyClock:
    """A shared clock: each reading advances it by a millisecond, and waiting takes no real time."""

    time_ms: int = 1_700_000_000_000

    def now_ms(self) -> int:
        """Return a time that is later than the time before."""
        self.time_ms += 1
        return self.time_ms

    def sleep(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self.time_ms += int(seconds * 1000)


class Machine:
    """The simulated machine of a process.

    Args:
        clock: the true time.
        chance: source of random numbers and names.
        skew_ms: by how much the machine's clock is fast.
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
        """Return the machine's own function with this name."""
        return self._answers[name]

    @contextmanager
    def on(self) -> Iterator[None]:
        """Put the calling thread on this machine, and run all of its work in this thread."""
        before = getattr(_HERE, "machine", None)
        _HERE.machine = self
        try:
            with alone():
                yield
        finally:
            _HERE.machine = before


@contextmanager
def simulated() -> Iterator[None]:
    """Replace time and randomness in this process for all threads that are on a machine."""
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


# The simulated store, whose files in memory have the time of a simulated clock, and the catalog.


class SimulatedStore:
    """A strongly consistent object store: every call sees the effects of all earlier calls.

    Attributes:
        files: path → content.
    """

    root = "simulated://table"

    def __init__(self, clock: SteadyClock) -> None:
        self.files: dict[str, bytes] = {}
        self._clock = clock
        self._times_ms: dict[str, int] = {}

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        """As `Store`."""
        start = f"{directory}/"
        found = [
            path
            for path in self.files
            if path.startswith(start) and "/" not in (name := path[len(start) :]) and name >= first
        ]
        return map(self.stat, sorted(found))

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        """As `Store`."""
        start = f"{directory}/" if directory else ""
        return map(self.stat, sorted(path for path in self.files if path.startswith(start)))

    def stat(self, path: str) -> FileInfo:
        """As `Store`."""
        return FileInfo(path, len(self.read(path)), self._times_ms[path])

    def read(self, path: str) -> bytes:
        """As `Store`."""
        if path not in self.files:
            raise ObjectNotFoundError(f"there is no {path}")
        return self.files[path]

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """As `Store`."""
        data = self.read(path)
        return [data[start:end] for start, end in ranges]

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """As `Store`."""
        return [self.read(path) for path in paths]

    def open(self, path: str) -> BinaryIO:
        """As `Store`."""
        return BytesIO(self.read(path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        """As `Store`."""
        if path in self.files:
            raise AlreadyExistsError(f"there is {path} already")
        self.put(path, data)

    def put(self, path: str, data: bytes) -> None:
        """As `Store`."""
        self.files[path] = data
        self._times_ms[path] = self._clock.now_ms()

    def delete_many(self, paths: Sequence[str]) -> None:
        """As `Store`."""
        for path in paths:
            self.files.pop(path, None)


class SimulatedCatalog(InMemoryCatalog):
    """A catalog that remembers the commits that it ratified.

    Attributes:
        ratified: version → path of its commit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ratified: dict[int, str] = {}

    def propose(self, table: str, commit: RatifiedCommit) -> None:
        """As `Catalog`."""
        super().propose(table, commit)
        self.ratified[commit.version] = commit.file.path

    def register(self, table: str, version: int) -> None:
        """As `InMemoryCatalog`."""
        super().register(table, version)
        self.ratified |= {known: commit_path(known) for known in range(version + 1)}
