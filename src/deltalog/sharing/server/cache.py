"""A cache on local disk for files that are written on demand.

This module enforces the size limit: the least recently used files are deleted first. A request that
has opened a file can read it even after its deletion.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar
from weakref import finalize

from deltalog._util.cached import cached_property
from deltalog.sharing.server.middleware import check_client
from deltalog.storage import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

# The maximum number of entries. It limits the memory, because even a file without rows, which uses
# no disk space, has an entry.
_MOST_ENTRIES: Final = 100_000
_CHECK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class CachedFile:
    """An entry of the cache.

    Args:
        num_rows: number of rows of the file; an entry with 0 rows has no file on disk.
        size_bytes: size of the file.
        digest: digest of its bytes.
    """

    num_rows: int
    size_bytes: int
    digest: bytes = b""


class _NameLock:
    """A lock, so that only one thread at a time writes the file of a name.

    Attributes:
        num_users: number of threads that have the lock or wait for it.
    """

    def __init__(self) -> None:
        self.num_users = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        """Wait for the lock; raise `ClientGoneError` if the client disconnects while waiting."""
        while not self._lock.acquire(timeout=_CHECK_SECONDS):
            check_client()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class FileCache:
    """Cache of files by name.

    Args:
        most_bytes: maximum size of all files together; a single file may be larger.
        directory: parent of the cache's directory; None means the directory of temporary files.
    """

    def __init__(self, most_bytes: int, directory: str | None = None) -> None:
        self._directory = directory
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._files: OrderedDict[str, CachedFile] = OrderedDict()
        self._locks: dict[str, _NameLock] = {}
        # `_measured` contains the properties of files, even of files that were removed from the
        # cache. `_aliases` maps an alias of a file to its name.
        self._measured: OrderedDict[str, CachedFile] = OrderedDict()
        self._aliases: OrderedDict[str, str] = OrderedDict()
        self.size_bytes: int = 0
        remove_left_over(Path(directory or gettempdir()))

    @cached_property
    def _home(self) -> Path:
        """Return the cache's own directory, which is deleted with the cache."""
        home, descriptor = make_owned(self._directory)
        finalize(self, remove_owned, home, descriptor)
        return home

    @cached_property
    def store(self) -> Store:
        """Return the store of the files."""
        return open_store(self._home)

    def get(self, name: str, make: Callable[[Store, str], CachedFile]) -> CachedFile:
        """Return a file; write it first if it is not in the cache.

        Args:
            name: name of the file.
            make: writes the file to a path of a store.
        """
        with self._lock:
            store = self.store  # under `_lock`, because the first access makes the store
            # The lock of the name ensures that concurrent requests for a file write it only once.
            own = self._locks.setdefault(name, _NameLock())
            own.num_users += 1
        try:
            with own:
                found = self.known(name)
                if found is None:
                    found = make(store, name)
                    self._keep(name, found)
        finally:
            with self._lock:
                own.num_users -= 1
                if not own.num_users:
                    self._locks.pop(name, None)
        return found

    def describe_or_make(self, name: str, make: Callable[[Store, str], CachedFile]) -> CachedFile:
        """Return the properties of a file, even if it was removed; write it if they are unknown.

        Args:
            name: name of the file.
            make: writes the file to a path of a store.
        """
        with self._lock:
            found = self._measured.get(name)
        return self.get(name, make) if found is None else found

    def tell(self, alias: str, name: str) -> None:
        """Record an alias, which is the name of a file for recipients."""
        with self._lock:
            _remember(self._aliases, alias, name)

    def name_of(self, alias: str) -> str | None:
        """Return the file name for an alias; None if it is no longer recorded."""
        with self._lock:
            return self._aliases.get(alias)

    def known(self, name: str) -> CachedFile | None:
        """Return the entry of a file, or None if the cache does not contain it."""
        with self._lock:
            found = self._files.get(name)
            if found is None:
                return None
            if found.num_rows and not self.path(name).exists():
                # Another program has deleted the temporary file.
                self.size_bytes -= self._files.pop(name).size_bytes
                return None
            self._files.move_to_end(name)
            return found

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return self._home / name

    def open(self, name: str) -> BinaryIO | None:
        """Open a file for reading, even if it is deleted later; return None if it is not cached."""
        try:
            return self.path(name).open("rb")
        except FileNotFoundError:
            return None

    def _keep(self, name: str, file: CachedFile) -> None:
        with self._lock:
            _remember(self._measured, name, file)
            self._files[name] = file
            self.size_bytes += file.size_bytes
            while self._is_full and len(self._files) > 1:
                oldest, removed = self._files.popitem(last=False)
                self.size_bytes -= removed.size_bytes
                with suppress(OSError):  # Windows does not delete open files
                    self.path(oldest).unlink(missing_ok=True)

    @property
    def _is_full(self) -> bool:
        return self.size_bytes > self._most_bytes or len(self._files) > _MOST_ENTRIES


def _remember(entries: OrderedDict[str, T], name: str, value: T) -> None:
    """Add an entry, and drop the oldest entries if there are too many."""
    entries[name] = value
    entries.move_to_end(name)
    while len(entries) > _MOST_ENTRIES:
        entries.popitem(last=False)


# --- Directories of processes; the directory of a killed process is removed by the next process


_has_locks = True
try:
    import fcntl
except ImportError:  # pragma: no cover -- Windows
    _has_locks = False

# The prefix of directories with a lock. Earlier releases used another prefix, and their directories
# have no locks.
_PREFIX: Final = "deltalog-sharing-cache-"
# The prefix of a new directory before it is locked. With `_PREFIX`, another process could remove
# the directory in `remove_left_over`, because it is not locked yet.
_NEW_PREFIX: Final = "deltalog-new-sharing-"


def make_owned(directory: str | None) -> tuple[Path, int | None]:
    """Return a new directory of this process, and the descriptor of its lock.

    Args:
        directory: parent directory; None means the directory of temporary files.
    """
    made = Path(mkdtemp(prefix=_NEW_PREFIX, dir=directory))
    home = made.with_name(_PREFIX + made.name.removeprefix(_NEW_PREFIX))
    descriptor = _lock(made)
    return made.rename(home), descriptor


def remove_owned(home: Path, descriptor: int | None) -> None:
    """Remove a directory of this process."""
    rmtree(home, ignore_errors=True)
    if descriptor is not None:
        os.close(descriptor)


def remove_left_over(directory: Path) -> None:
    """Remove the directories of processes that no longer run."""
    if not _has_locks:
        return
    for found in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            # The directory of temporary files may contain cache directories of other users.
            if found.is_symlink() or found.stat().st_uid != os.geteuid():
                continue
            descriptor = _lock(found)
            if descriptor is not None:
                rmtree(found, ignore_errors=True)
                os.close(descriptor)


def _lock(directory: Path) -> int | None:
    """Return a descriptor that has the directory's lock; None if another process has the lock."""
    if not _has_locks:
        return None
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
