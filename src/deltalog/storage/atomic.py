"""Put-if-absent: if several writers create the same file, exactly one of them succeeds.

Every commit relies on this guarantee. Readers never see an incomplete file. If no atomic create is
known for a store, commits are refused, unless the user passes a lock that all writers share.

Protocol: Delta Log Entries (writers must never overwrite an existing log entry)
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.store_kinds import KINDS, PutIfAbsent, StoreKind
from deltalog.errors import AlreadyExistsError, StorageError
from deltalog.storage.faults import says

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


TEMPORARY_NAME: Final = r"\.[^/]+\.[0-9a-f]{32}\.tmp$"
"""Matches the names of temporary files, which a killed writer does not delete."""
_UNDECIDED_ATTEMPTS: Final = 6


@dataclass(frozen=True, slots=True)
class Folder:
    """A local directory in which files are created, renamed and deleted; see `links.Home.open`.

    Args:
        path: the path of the directory.
        descriptor: an open descriptor of the directory. Calls relative to it use the same directory
            even if another directory gets its path. None if the operating system has no such calls.
    """

    path: str
    descriptor: int | None = None

    def open(self, name: str, flags: int) -> int:
        """Return a descriptor of a file."""
        flags |= getattr(os, "O_BINARY", 0)
        return os.open(self._own(name), flags, 0o666, dir_fd=self.descriptor)

    def has(self, name: str) -> bool:
        """Whether there is a file, directory or link of that name."""
        try:
            os.stat(self._own(name), dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def link(self, name: str, target: Folder, new: str) -> None:
        """Create a hard link to a file under a second name, or raise `FileExistsError`."""
        os.link(self._own(name), target._own(new), **self._ways(target))

    def rename(self, name: str, target: Folder, new: str) -> None:
        """Rename a file or directory, and replace an existing one, like `os.replace`."""
        # `Path.replace` does not accept descriptors of directories.
        os.replace(self._own(name), target._own(new), **self._ways(target))  # noqa: PTH105

    def rename_without_replacing(self, name: str, target: Folder, new: str) -> None:
        """Rename without replacing; see the function `rename_without_replacing`."""
        rename_without_replacing(
            self._own(name),
            target._own(new),
            source_descriptor=self.descriptor,
            target_descriptor=target.descriptor,
        )

    def unlink(self, name: str) -> None:
        """Delete a file or link."""
        os.unlink(self._own(name), dir_fd=self.descriptor)

    def remove_tree(self, name: str) -> None:
        """Delete a directory and its content, as far as possible.

        Links are deleted, but not followed.
        """
        shutil.rmtree(self._own(name), ignore_errors=True, dir_fd=self.descriptor)

    def sync(self) -> None:
        """Sync the directory entries to the disk, if the operating system supports it."""
        if self.descriptor is None:
            sync_directory(self.path)
        else:
            _sync_names(os.open(".", os.O_RDONLY, dir_fd=self.descriptor))

    def sync_file(self, name: str) -> None:
        """Sync the data of a file to the disk."""
        # Windows can sync only files that are open for writing.
        descriptor = self.open(name, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _own(self, name: str) -> str:
        return name if self.descriptor is not None else f"{self.path}/{name}"

    def _ways(self, target: Folder) -> dict[str, Any]:
        if self.descriptor is None:
            return {}
        return {"src_dir_fd": self.descriptor, "dst_dir_fd": target.descriptor}


def create_local(folder: Folder, name: str, data: bytes, *, syncs: bool) -> None:
    """Create a local file with all of `data`, or raise `FileExistsError`.

    The data is written to a temporary file in the same directory, which then gets its final name
    (`take_name`).

    Args:
        folder: the directory of the file.
        name: the name of the file.
        data: the whole content.
        syncs: whether to sync the data and the directory entry to the disk.
    """
    if folder.has(name):  # fails early; only `take_name` is atomic
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
    temporary = write_temporary(folder, name, data, syncs=syncs)
    take_name(folder, temporary, folder, name, syncs=syncs)


def take_name(source: Folder, temporary: str, target: Folder, name: str, *, syncs: bool) -> None:
    """Give a complete temporary file its final name, or raise `FileExistsError` and delete it.

    A hard link is used, because creating it is atomic and fails if the name exists. On file systems
    without hard links, the file is renamed by a call that never replaces a file.

    Raises:
        StorageError: the file system supports neither hard links nor such a rename.
    """
    try:
        try:
            source.link(temporary, target, name)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            source.rename_without_replacing(temporary, target, name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            source.unlink(temporary)
    if syncs:
        target.sync()


def sync_file(path: str) -> None:
    """Sync the data of a file to the disk."""
    directory, name = os.path.split(path)
    Folder(directory).sync_file(name)


def sync_directory(directory: str) -> None:
    """Sync the entries of a directory to the disk, if the operating system supports it."""
    # Windows cannot open directories, but its journal makes directory entries durable.
    if sys.platform == "win32":
        return
    _sync_names(os.open(directory, os.O_RDONLY))


def _sync_names(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)


def make_directories(directory: str, *, syncs: bool) -> None:
    """Make a directory and its parents; with `syncs`, sync their directory entries to the disk."""
    made = [directory]
    parent = os.path.dirname(directory)  # noqa: PTH120  # a string
    while parent and not os.path.isdir(parent):  # noqa: PTH112  # a string
        made.append(parent)
        parent = os.path.dirname(parent)  # noqa: PTH120  # a string
    Path(directory).mkdir(parents=True, exist_ok=True)
    if syncs:
        for one in made:
            sync_directory(os.path.dirname(one) or ".")  # noqa: PTH120  # a string


def open_temporary(folder: Folder, name: str) -> tuple[str, int]:
    """Create a hidden temporary file for `name`; return its name and a descriptor."""
    temporary = f".{name}.{uuid.uuid4().hex}.tmp"
    return temporary, folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def write_temporary(folder: Folder, name: str, data: bytes, *, syncs: bool) -> str:
    """Write `data` to a hidden temporary file for `name`, and return its name.

    Args:
        folder: the directory of the file.
        name: the final name of the file.
        data: the whole content.
        syncs: whether to sync the data to the disk.
    """
    temporary, descriptor = open_temporary(folder, name)
    try:
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123  # opens a descriptor
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            if syncs and data:
                os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            folder.unlink(temporary)
        raise
    return temporary


def create_under_lock(
    lock: AbstractContextManager[Any],
    exists: Callable[[str], bool],
    put: Callable[[str, bytes], None],
    path: str,
    data: bytes,
) -> None:
    """Create a file under the lock of its writers, or raise `FileExistsError`."""
    with lock:
        if exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        put(path, data)


def create_by_request(filesystem: Any, kind: StoreKind, path: str, data: bytes) -> None:
    """Create an object by a conditional request, or raise the file system's error.

    Raises:
        StorageError: this kind of store has no conditional requests.
    """
    if kind.put_if_absent is not PutIfAbsent.REQUEST:
        known = dict.fromkeys(row.name for row in KINDS.values() if row.put_if_absent)
        raise StorageError(
            f"cannot commit to {path!r}: no atomic put-if-absent is known for a file system of kind"
            f" {kind.name!r} and class {type(filesystem).__name__}; use one of {', '.join(known)}, "
            "opened by URL or as fsspec's, or give a `commit_lock`"
        )
    send_until_decided(lambda: filesystem.pipe_file(path, data, mode="create"), kind)


def send_until_decided(send: Callable[[], object], kind: StoreKind) -> None:
    """Send a conditional request; repeat it while the service reports a conflict."""
    for attempt in range(1, _UNDECIDED_ATTEMPTS + 1):
        try:
            send()
        except OSError as error:
            # S3 reports a conflict if two conditional writes collide. Then this write must be
            # repeated, because both writes may have failed.
            if attempt == _UNDECIDED_ATTEMPTS or not says(error, kind.says_undecided.split()):
                raise
            time.sleep(0.025 * 2**attempt)
        else:
            return


def memory_lock() -> AbstractContextManager[Any]:
    """The lock of all memory file systems, because they share one dictionary."""
    return _memory.lock


class _MemoryLock:
    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.lock = threading.Lock()


_memory = _MemoryLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_memory.renew)

_NO_HARD_LINKS: Final = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
)
# The errors of network and virtual file systems that cannot sync directories.
_NO_DIRECTORY_SYNC: Final = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP})
_HERE: Final = -2 if sys.platform == "darwin" else -100
"""AT_FDCWD of the C library: a relative path begins in the working directory."""
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCL: Final = 4


def rename_without_replacing(
    source: str,
    target: str,
    *,
    source_descriptor: int | None = None,
    target_descriptor: int | None = None,
) -> None:
    """Rename a file atomically; fail if the new name exists.

    Args:
        source: the path of the file.
        target: the new path.
        source_descriptor: the directory that `source` is relative to.
        target_descriptor: the directory that `target` is relative to.

    Raises:
        AlreadyExistsError: the new name exists (on Windows: `FileExistsError`).
        StorageError: the operating system has no rename that never replaces.
    """
    if sys.platform == "win32":
        os.rename(source, target)  # noqa: PTH104  # never replaces a file on Windows
        return
    library = ctypes.CDLL(None, use_errno=True)
    ways = (
        _HERE if source_descriptor is None else source_descriptor,
        os.fsencode(source),
        _HERE if target_descriptor is None else target_descriptor,
        os.fsencode(target),
    )
    if hasattr(library, "renameat2"):
        failed = library.renameat2(*ways, _RENAME_NOREPLACE)
    elif hasattr(library, "renameatx_np"):  # macOS
        failed = library.renameatx_np(*ways, _RENAME_EXCL)
    else:
        failed = -1
        ctypes.set_errno(errno.ENOSYS)
    if not failed:
        return
    number = ctypes.get_errno()
    if number == errno.EEXIST:
        raise AlreadyExistsError(f"cannot create {target!r}: it exists")
    raise StorageError(
        f"cannot create {target!r} atomically: the file system has neither hard links nor a "
        f"rename that never replaces ({os.strerror(number)}); keep the table elsewhere"
    )
