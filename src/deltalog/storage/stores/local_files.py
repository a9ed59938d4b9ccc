"""Local files through system calls, and a cache of facts about unchanged files.

Paths are absolute and decoded. The caller converts foreign exceptions.
"""

from __future__ import annotations

import contextlib
import os
import stat as stat_flags
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, Final, Generic, NamedTuple, TypeVar

from deltalog._util.clock import now_ms
from deltalog._util.paths import FileInfo
from deltalog.storage import atomic
from deltalog.storage.links import Home
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from deltalog.storage.atomic import Folder
    from deltalog.storage.store import ByteRange

_Fact = TypeVar("_Fact")
_STEP_MS: Final = 20  # the clock for file times advances every 1 to 10 ms
_LONG_STEP_MS: Final = 3_000
_SECOND_NS: Final = 1_000_000_000


class LocalFiles:
    """The file operations of a store over absolute local paths.

    Args:
        syncs: whether new files and their directory entries are synced to the disk.
        home: the home of the table. The caller must check paths outside of it.
    """

    def __init__(self, *, syncs: bool = True, home: Home | None = None) -> None:
        self.syncs = syncs
        self._home = home

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Return files in `directory` with names from `first` on, unordered; paths are names."""
        found = []
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(directory) as it,
        ):
            for entry in it:
                if entry.name < first or not entry.is_file():
                    continue
                with contextlib.suppress(FileNotFoundError):  # the file was deleted meanwhile
                    found.append(_file_info(entry.name, entry.stat()))
        return found

    def list_short(self, directory: str, most: int) -> list[FileInfo]:
        """Return all files directly in `directory`, unordered."""
        del most
        return self.list_directory(directory, "")

    def list_level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """Return the files and directories in a directory; paths are names."""
        directories = []
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(directory) as entries,
        ):
            # As in `list_tree`, do not follow a link to a directory.
            directories = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        return self.list_directory(directory, ""), directories

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Yield the files at any depth below `directory`; paths are relative to it."""
        pending = [""]
        while pending:
            below = pending.pop()
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError),
                os.scandir(f"{directory}/{below}") as entries,
            ):
                for entry in entries:
                    relative = below + entry.name
                    # Do not follow a link to a directory, which may be outside of the table.
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(relative + "/")
                    elif entry.is_file():
                        with contextlib.suppress(FileNotFoundError):
                            yield _file_info(relative, entry.stat())

    def stat(self, path: str) -> FileInfo:
        """Return size and time of a file."""
        found = os.stat(path)  # noqa: PTH116  # Path is slower
        if stat_flags.S_ISDIR(found.st_mode):
            raise FileNotFoundError(f"{path} is a directory")
        return _file_info(path, found)

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # Path is slower
            return file.readall()

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return ranges of a file."""
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # Path is slower
            return [_read_at(file, start, end) for start, end in ranges]

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Return whole files."""
        return map_in_pool(self.read, paths, batch_size=64)

    def create(self, path: str, data: bytes) -> None:
        """Create a file, or raise `FileExistsError`."""
        directory, name = os.path.split(path)
        with self._open(directory, makes=True) as folder:
            atomic.create_local(folder, name, data, syncs=self.syncs)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically."""
        directory, name = os.path.split(path)
        with self._open(directory, makes=True) as folder:
            temporary = atomic.write_temporary(folder, name, data, syncs=self.syncs)
            try:
                folder.rename(temporary, folder, name)
            except BaseException:
                with contextlib.suppress(OSError):
                    folder.unlink(temporary)
                raise

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete files; a missing file is not an error."""
        together: dict[str, list[str]] = {}
        for path in paths:
            directory, _, name = path.rpartition("/")
            together.setdefault(directory, []).append(name)
        # More threads per directory would not be faster, because file systems lock a directory for
        # each deletion.
        most = 512
        parts = [
            (directory, names[start : start + most])
            for directory, names in together.items()
            for start in range(0, len(names), most)
        ]
        some = max(1, most * len(parts) // max(1, len(paths)))
        map_in_pool(self._delete, parts, batch_size=some)

    def _delete(self, part: tuple[str, Sequence[str]]) -> None:
        directory, names = part
        try:
            with self._open(directory) as folder:
                for name in names:
                    try:  # noqa: SIM105  # `suppress` is slower
                        folder.unlink(name)
                    except FileNotFoundError:
                        pass
        except FileNotFoundError:  # there is no such directory
            pass

    def _open(self, directory: str, *, makes: bool = False) -> AbstractContextManager[Folder]:
        home = self._home or Home(directory)
        return home.open(directory or "/", makes=makes, syncs=self.syncs)


def local_path(text: str) -> str:
    """Return the absolute path of a local table; only `~` is expanded."""
    if text.startswith("~"):
        text = str(Path(text).expanduser())
    return os.path.abspath(text)  # noqa: PTH100  # Path.resolve would follow links


def _read_at(file: BinaryIO, start: int, end: int) -> bytes:
    data = _read_once(file, start, max(0, end - start))
    # Linux returns at most 2 GiB at once, and some file systems return less than requested.
    while 0 < len(data) < end - start:
        at = start + len(data)
        more = _read_once(file, at, end - at)
        if not more:
            break  # the file ends here
        data += more
    return data


def _read_once(file: BinaryIO, start: int, num_bytes: int) -> bytes:
    if _PREAD is not None:
        return _PREAD(file.fileno(), num_bytes, start)
    file.seek(start)
    return file.read(num_bytes)


_PREAD: Final[Callable[[int, int, int], bytes] | None] = getattr(os, "pread", None)
"""Reads at a position with one system call; None on Windows."""


def _file_info(path: str, found: os.stat_result) -> FileInfo:
    return FileInfo(path, found.st_size, found.st_mtime_ns // 1_000_000)


class FileState(NamedTuple):
    """The state of a local file, which is different after a change or replacement of the file.

    Attributes:
        path: the operating system's path.
        size_bytes: the length of the file.
        changed_ns: the time of the last change, with limited resolution; see `is_settled`.
        number: the inode number.
    """

    path: str
    size_bytes: int
    changed_ns: int
    number: int


def local_state(native: str) -> FileState:
    """Return the state of a local file, or raise FileNotFoundError."""
    found = os.stat(native)  # noqa: PTH116  # Path is slower
    return FileState(native, found.st_size, found.st_mtime_ns, found.st_ino)


def is_settled(state: FileState) -> bool:
    """Whether the state is old enough that every later change of the file changes the state.

    File times have a resolution of some milliseconds, or of one or two seconds. Two changes within
    this time result in the same file time.
    """
    step_ms = _STEP_MS if state.changed_ns % _SECOND_NS else _LONG_STEP_MS
    return now_ms() - state.changed_ns // 1_000_000 >= step_ms


class Recent(Generic[_Fact]):
    """A thread-safe cache of facts about local files; after a fork, the child's cache is empty.

    Args:
        most: the maximum number of facts.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.forget()
        # A forked child would wait forever for a lock that was locked during the fork.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Empty the cache."""
        self._kept: dict[tuple[FileState, ...], _Fact] = {}
        self._lock = Lock()

    def get(self, *states: FileState) -> _Fact | None:
        """Return the fact about files in these states, or None."""
        return self._kept.get(states)

    def keep(self, fact: _Fact, *states: FileState) -> None:
        """Cache a fact about files, whose states must have been settled before they were read."""
        with self._lock:
            if len(self._kept) >= self._most:
                del self._kept[next(iter(self._kept))]
            self._kept[states] = fact
