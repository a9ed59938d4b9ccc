"""Put-if-absent: of any number of writers of one name exactly one succeeds.

Owns this promise, which every commit rests on; nobody ever sees half a file either. Where no way
to keep it is known, the commit is refused, unless the user gives a lock that all writers share.

Protocol: Delta Log Entries (writers must never overwrite an existing log entry)
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import AlreadyExistsError, StorageError
from deltalog.storage.faults import says
from deltalog.store_kinds import KINDS, PutIfAbsent

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from deltalog.store_kinds import StoreKind

TEMPORARY_NAME: Final = r"\.[^/]+\.[0-9a-f]{32}\.tmp$"
"""Names that `write_temporary` gives; such a file is left where a writer was killed."""
_UNDECIDED_ATTEMPTS: Final = 6


def create_local(path: str, data: bytes, *, syncs: bool) -> None:
    """Create a local file with all of `data`, or raise `FileExistsError`.

    The data is written to a temporary file beside it, which then gets the name (`take_name`).

    Args:
        path: of the file.
        data: all of it.
        syncs: whether data and name are on the disk when this returns.
    """
    if os.path.lexists(path):  # spares the temporary file; the link below is what decides
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    take_name(write_temporary(path, data, syncs=syncs), path, syncs=syncs)


def take_name(temporary: str, path: str, *, syncs: bool) -> None:
    """Give a finished temporary file its name, or raise `FileExistsError` and delete it.

    A hard link is atomic and fails when the name is taken. Where there are no hard links, a rename
    that never replaces is used.

    Raises:
        StorageError: the file system has neither.
    """
    try:
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            rename_without_replacing(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108  # a string path; Path costs more than the call
    if syncs:
        sync_directory(os.path.dirname(path))  # noqa: PTH120  # as above


def sync_file(path: str) -> None:
    """Wait until the data of a file is on the disk."""
    descriptor = os.open(path, os.O_RDWR)  # Windows syncs only what is open for writing
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: str) -> None:
    """Wait until the names in a directory are on the disk, where the system can say so."""
    if sys.platform == "win32":  # it opens no directories, and keeps names in its journal
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)


def _make_directories(directory: str, *, syncs: bool) -> None:
    """Make a directory and those above it, so that their names outlive a power cut."""
    made = [directory]
    while not os.path.isdir(parent := os.path.dirname(made[-1])):  # noqa: PTH112, PTH120  # as above
        made.append(parent)
    Path(directory).mkdir(parents=True, exist_ok=True)
    if syncs:
        for one in made:
            sync_directory(os.path.dirname(one))  # noqa: PTH120  # as above


def write_temporary(path: str, data: bytes, *, syncs: bool) -> str:
    """Return the path of a new hidden file beside `path` that holds `data`; make the directory.

    Args:
        path: that the file is to have.
        data: all of it.
        syncs: whether the data is on the disk when this returns.
    """
    directory, name = os.path.split(path)
    temporary = f"{directory}/.{name}.{uuid.uuid4().hex}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666)
    except FileNotFoundError:
        _make_directories(directory, syncs=syncs)
        descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123  # a descriptor
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            if syncs and data:
                os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108  # as above
        raise
    return temporary


def create_under_lock(
    lock: AbstractContextManager[Any],
    exists: Callable[[str], bool],
    put: Callable[[str, bytes], None],
    path: str,
    data: bytes,
) -> None:
    """Create a file while holding a lock that all its writers take, or raise `FileExistsError`."""
    with lock:
        if exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        put(path, data)


def create_by_request(filesystem: Any, kind: StoreKind, path: str, data: bytes) -> None:
    """Create an object by a conditional request, or raise what the file system says.

    Raises:
        StorageError: this kind of store has no such requests.
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
    """Send a conditional request, and again while the service says that several met."""
    for attempt in range(1, _UNDECIDED_ATTEMPTS + 1):
        try:
            send()
        except OSError as error:
            # Amazon asks to send the request again when conditional writes met.
            if attempt == _UNDECIDED_ATTEMPTS or not says(error, kind.says_undecided.split()):
                raise
            time.sleep(0.025 * 2**attempt)
        else:
            return


def memory_lock() -> AbstractContextManager[Any]:
    """The lock of all memory file systems: they share one dictionary."""
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
# Some network and virtual file systems have no fsync of directories.
_NO_DIRECTORY_SYNC: Final = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP})
_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCL: Final = 4


def rename_without_replacing(source: str, target: str) -> None:
    """Rename a file in one step, unless the new name is taken.

    Raises:
        AlreadyExistsError: it is (on Windows: `FileExistsError`).
        StorageError: the operating system has no such rename.
    """
    if sys.platform == "win32":
        os.rename(source, target)  # noqa: PTH104  # on Windows it never replaces
        return
    library = ctypes.CDLL(None, use_errno=True)
    old, new = os.fsencode(source), os.fsencode(target)
    if hasattr(library, "renameat2"):
        failed = library.renameat2(_AT_FDCWD, old, _AT_FDCWD, new, _RENAME_NOREPLACE)
    elif hasattr(library, "renamex_np"):  # macOS
        failed = library.renamex_np(old, new, _RENAME_EXCL)
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
