"""Stores for tests: one store counts its calls, and another fails on request.

Both stores wrap another store. They do not provide the local paths of files, so that every byte is
read and written through them.
"""

from __future__ import annotations

import enum
import threading
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from deltalog._util.argument_types import kind_of
from deltalog.errors import (
    AlreadyExistsError,
    InvalidInputError,
    ObjectNotFoundError,
    StorageError,
)
from deltalog.log.context import LogTail, MaintenanceOperation, RatifiedCommit
from deltalog.log.names import commit_path
from deltalog.transaction.committer import publish_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from deltalog._util.paths import FileInfo
    from deltalog.storage.store import ByteRange, Store

_Result = TypeVar("_Result")
WRITES: Final = frozenset({"put_if_absent", "put", "delete_many"})


class _Wrapper(ABC):
    """Base class of stores that pass every call to a wrapped store, by calling `_pass`."""

    def __init__(self, store: Store) -> None:
        given: object = store
        if isinstance(given, str | PathLike) or not hasattr(given, "put_if_absent"):
            raise InvalidInputError(
                f"cannot make a {type(self).__name__} of {kind_of(given)}: expected a Store, such "
                "as DeltaTable(location).snapshot.store"
            )
        self.store = store
        self._lock = threading.Lock()

    @property
    def root(self) -> str:
        return self.store.root

    def list_from(self, directory: str, first: str) -> Iterator[FileInfo]:
        return iter(
            self._pass(
                "list_from", (directory,), lambda: list(self.store.list_from(directory, first))
            )
        )

    def list_all(self, directory: str) -> Iterator[FileInfo]:
        return iter(
            self._pass("list_all", (directory,), lambda: list(self.store.list_all(directory)))
        )

    def stat(self, path: str) -> FileInfo:
        return self._pass("stat", (path,), lambda: self.store.stat(path))

    def read(self, path: str) -> bytes:
        return self._pass("read", (path,), lambda: self.store.read(path))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        return self._pass("read_ranges", (path,), lambda: self.store.read_ranges(path, ranges))

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        return self._pass("read_many", tuple(paths), lambda: self.store.read_many(paths))

    def open(self, path: str) -> BinaryIO:
        return self._pass("open", (path,), lambda: self.store.open(path))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._pass("put_if_absent", (path,), lambda: self.store.put_if_absent(path, data), data)

    def put(self, path: str, data: bytes) -> None:
        self._pass("put", (path,), lambda: self.store.put(path, data), data)

    def delete_many(self, paths: Sequence[str]) -> None:
        self._pass("delete_many", tuple(paths), lambda: self.store.delete_many(paths))

    @abstractmethod
    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        """Call `act`, and return its result. Subclasses may count the call or make it fail."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class StoreCall:
    """One recorded call of a store.

    Args:
        verb: the name of the called method.
        paths: the paths in the arguments.
        files: the number of files, ranges or entries of a listing that the call returned.
        size_bytes: the number of bytes that the call read or wrote.
    """

    verb: str
    paths: tuple[str, ...]
    files: int
    size_bytes: int


class CountingStore(_Wrapper):
    """A store that counts calls, bytes, and opened Parquet footers.

    A call of `open` counts as one call. Reads from the opened file are not counted.

    Attributes:
        calls: every successful call, in order.
        footers_opened: the number of reads whose result ends with the magic bytes of a Parquet
            file.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.reset()

    def reset(self) -> None:
        """Set all counters to zero."""
        self.calls: list[StoreCall] = []
        self.footers_opened: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The number of calls of each method; methods without calls are omitted."""
        return dict(Counter(call.verb for call in self.calls))

    @property
    def total_calls(self) -> int:
        """The total number of calls."""
        return len(self.calls)

    @property
    def size_bytes(self) -> dict[str, int]:
        """The number of bytes that the calls of each method read or wrote: method → number."""
        total: Counter[str] = Counter()
        for call in self.calls:
            total[call.verb] += call.size_bytes
        return {verb: size for verb, size in total.items() if size}

    @property
    def bytes_read(self) -> int:
        """The number of bytes that all calls read."""
        return sum(call.size_bytes for call in self.calls if call.verb not in WRITES)

    @property
    def bytes_written(self) -> int:
        """The number of bytes that all calls wrote."""
        return sum(call.size_bytes for call in self.calls if call.verb in WRITES)

    def paths(self, *verbs: str) -> list[str]:
        """Return the paths in the arguments of calls, in order.

        Args:
            verbs: the methods whose calls count; without them, the calls of all methods.
        """
        return [
            path for call in self.calls if not verbs or call.verb in verbs for path in call.paths
        ]

    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        result = act()
        parts: list[Any] = result if isinstance(result, list) else [result]
        blobs = [part for part in parts if isinstance(part, bytes)]
        size = sum(map(len, blobs)) + len(data)
        with self._lock:
            self.calls.append(StoreCall(verb, paths, len(parts), size))
            self.footers_opened += sum(blob[-4:] == b"PAR1" for blob in blobs)
        return result


class Harm(enum.Enum):
    """A kind of failure of a call."""

    REFUSE = "nothing is done, and an error comes back"
    LOSE_RESPONSE = "it is done, and an error comes back"
    CRASH = "nothing is done, and every call after it fails too"


@dataclass(slots=True)
class InjectedFault:
    """A failure that is injected into some calls.

    Args:
        call: the number of the first call that fails, counted from 1 among the calls that `verb`
            and `path` select.
        harm: the kind of failure.
        verb: the method whose calls are selected; None means all methods.
        path: a string. Only calls whose first path contains this string are selected.
        error: the error to raise; None means a `StorageError`.
        times: the number of consecutive calls that fail.
    """

    call: int = 1
    harm: Harm = Harm.REFUSE
    verb: str | None = None
    path: str = ""
    error: Exception | None = None
    times: int = 1
    seen: int = field(default=0, init=False)

    def strikes(self, verb: str, paths: tuple[str, ...]) -> bool:
        """Count a call if it is selected; return whether it must fail."""
        if self.verb not in {None, verb} or (self.path and self.path not in "".join(paths[:1])):
            return False
        self.seen += 1
        return self.call <= self.seen < self.call + self.times


class FaultyStore(_Wrapper):
    """A store that fails as its faults specify. Otherwise it behaves like the wrapped store.

    Attributes:
        calls: the method and the first path of every call, including calls that failed.
        crashed: whether a `Harm.CRASH` has happened. To restart the store, set this to False.
    """

    def __init__(self, store: Store, *faults: InjectedFault) -> None:
        super().__init__(store)
        self.faults: list[InjectedFault] = list(faults)
        self.calls: list[tuple[str, str]] = []
        self.crashed: bool = False

    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        del data
        first = paths[0] if paths else ""
        with self._lock:
            self.calls.append((verb, first))
            struck = [fault for fault in self.faults if fault.strikes(verb, paths)]
            self.crashed = self.crashed or any(fault.harm is Harm.CRASH for fault in struck)
        if self.crashed:
            raise StorageError(f"cannot {verb} {first!r}: the store crashed (injected)")
        if not struck:
            return act()
        if struck[0].harm is Harm.LOSE_RESPONSE:
            act()
        raise struck[0].error or StorageError(
            f"cannot {verb} {first!r}: {struck[0].harm.value} (injected)"
        )


# --- a catalog in memory


class InMemoryCatalog:
    """A catalog that ratifies staged commits: in order, and one per version. It is thread-safe.

    Args:
        allowed: the maintenance operations that the catalog allows; all by default.
    """

    def __init__(
        self, allowed: Collection[MaintenanceOperation] = tuple(MaintenanceOperation)
    ) -> None:
        self._allowed = frozenset(allowed)
        self._lock = threading.Lock()
        self._latest: dict[str, int] = {}
        self._unpublished: dict[str, list[RatifiedCommit]] = {}

    def latest(self, table: str) -> LogTail:
        """Return the ratified commits that are unpublished; see `Catalog`."""
        with self._lock:
            return LogTail(
                commits=tuple(self._unpublished.get(table, ())),
                latest_version=self._latest.get(table),
                allowed=self._allowed,
            )

    def propose(self, table: str, commit: RatifiedCommit) -> None:
        """Ratify a staged commit if it has the next version; see `Catalog`."""
        with self._lock:
            next_version = self._latest.get(table, -1) + 1
            if commit.version < next_version:
                raise AlreadyExistsError(f"version {commit.version} of {table} is already ratified")
            if commit.version > next_version:
                raise ObjectNotFoundError(
                    f"cannot ratify version {commit.version} of {table}: expected {next_version}"
                )
            self._latest[table] = commit.version
            if commit.file.path != commit_path(commit.version):
                self._unpublished.setdefault(table, []).append(commit)

    def register(self, table: str, version: int) -> None:
        """Register a table. All its commits up to `version` are published."""
        with self._lock:
            self._latest[table] = version

    def publish(self, store: Store) -> list[int]:
        """Copy the ratified commits to their published names; return their versions.

        Raises:
            MalformedLogError: a version is already published with another content.
        """
        with self._lock:
            waiting = list(self._unpublished.get(store.root, ()))
        for commit in waiting:
            publish_commit(store, commit.version, store.read(commit.file.path))
        with self._lock:
            known = self._unpublished.get(store.root, [])
            self._unpublished[store.root] = [one for one in known if one not in waiting]
        return [commit.version for commit in waiting]

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a catalog in memory cannot be sent to another process")
