"""The place of a simulated table: files in memory with the time of a simulated clock, a catalog.

Owns what a right store and a right catalog do; harm comes to single calls (`workers`).
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

from deltalog.errors import AlreadyExistsError, ObjectNotFoundError
from deltalog.log.names import commit_path
from deltalog.paths import FileInfo
from deltalog.testing.catalog import InMemoryCatalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.catalog import RatifiedCommit
    from deltalog.storage.store import ByteRange
    from deltalog.testing.simulation.process import SteadyClock


class SimulatedStore:
    """A strongly consistent object store: whatever one call did, every later call sees.

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
    """A catalog that remembers what it ratified.

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
