"""Files that were made on demand, on local disk, as many as fit.

Owns the bound: the files that were not asked for longest go first. A file that is being read stays
readable after it went, as its reader holds it open (`opened`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final
from weakref import finalize

from deltalog.storage import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

# What was found to hold no row takes no disk, but a little memory each.
_MOST_ENTRIES: Final = 100_000


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file of the cache.

    Args:
        num_rows: in it; without rows there is no file.
        size_bytes: of it.
    """

    num_rows: int
    size_bytes: int


class FileCache:
    """Files by name.

    Args:
        most_bytes: of all files together; one file may be larger.
        directory: where a directory of its own is made; None is where temporary files are.
    """

    def __init__(self, most_bytes: int, directory: str | None = None) -> None:
        self._directory = directory
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._made: OrderedDict[str, MadeFile] = OrderedDict()
        self._making: dict[str, threading.Lock] = {}
        self.size_bytes = 0

    @cached_property
    def _home(self) -> Path:
        """The cache's own directory: made when it is first needed, gone with the cache."""
        home = mkdtemp(prefix="deltalog-sharing-", dir=self._directory)
        finalize(self, rmtree, home, ignore_errors=True)
        return Path(home)

    @cached_property
    def store(self) -> Store:
        """Of the files."""
        return open_store(self._home)

    def get(self, name: str, make: Callable[[Store, str], MadeFile]) -> MadeFile:
        """A file, made now if it is not there.

        Args:
            name: tells this file from any other.
            make: writes it at a path of a store.
        """
        with self._lock:
            store = self.store  # made by one thread only
            own = self._making.setdefault(name, threading.Lock())
        with own:
            found = self.known(name)
            if found is None:
                found = make(store, name)
                self._keep(name, found)
                with self._lock:
                    self._making.pop(name, None)
        return found

    def known(self, name: str) -> MadeFile | None:
        """A file that is there; None if it is not."""
        with self._lock:
            found = self._made.get(name)
            if found is None:
                return None
            if found.num_rows and not self.path(name).exists():
                # Somebody cleans up where temporary files are.
                self.size_bytes -= self._made.pop(name).size_bytes
                return None
            self._made.move_to_end(name)
            return found

    def path(self, name: str) -> Path:
        """Where a file is."""
        return self._home / name

    def opened(self, name: str) -> BinaryIO | None:
        """A file to be read, whatever happens to its name meanwhile; None if it is not there."""
        try:
            return self.path(name).open("rb")
        except FileNotFoundError:
            return None

    def _keep(self, name: str, made: MadeFile) -> None:
        with self._lock:
            self._made[name] = made
            self.size_bytes += made.size_bytes
            while self._is_full and len(self._made) > 1:
                gone, file = self._made.popitem(last=False)
                self.size_bytes -= file.size_bytes
                with suppress(OSError):  # some systems keep names of open files
                    self.path(gone).unlink(missing_ok=True)

    @property
    def _is_full(self) -> bool:
        return self.size_bytes > self._most_bytes or len(self._made) > _MOST_ENTRIES
