"""Put-if-absent, by kind of file system.

Owns the promise that a commit stands on: of any number of writers of one name exactly one
succeeds, and nobody ever sees half a file. A file system for which no such primitive is known
refuses, unless the user hands in a lock that all writers of the table share.

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

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

CONDITIONAL_KINDS: Final = frozenset({"s3", "gs", "az"})
_CONFLICT_ATTEMPTS: Final = 6


def create_local(path: str, data: bytes) -> None:
    """Create a local file with all of `data`, or raise `FileExistsError`.

    A temporary file beside it gets the data, and then the name (see `take_name`).
    """
    if os.path.lexists(path):  # spares the temporary file; the link below is what decides
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    take_name(write_temporary(path, data), path)


def take_name(temporary: str, path: str) -> None:
    """Give a finished file its name, or raise `FileExistsError`; the temporary name goes.

    A hard link is atomic and fails when the name is taken. Where there are none, a rename that
    never replaces does the same.

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


def write_temporary(path: str, data: bytes) -> str:
    """Write `data` to a new hidden file beside `path` (making the directory) and name it."""
    directory, name = os.path.split(path)
    temporary = f"{directory}/.{name}.{uuid.uuid4().hex}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666)
    except FileNotFoundError:
        Path(directory).mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123  # a descriptor
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108  # as above
        raise
    return temporary


def create_in_memory(
    exists: Callable[[str], bool], put: Callable[[str, bytes], None], path: str, data: bytes
) -> None:
    """Create an entry of a file system that lives in this process, or raise `FileExistsError`."""
    with _memory.lock:
        if exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        put(path, data)


def create_remote(
    filesystem: Any,
    kind: str,
    path: str,
    data: bytes,
    *,
    lock: Callable[[], AbstractContextManager[Any]] | None,
) -> None:
    """Create an object by the store's own conditional write, or raise `FileExistsError`.

    Args:
        filesystem: an fsspec file system.
        kind: canonical scheme, as in `paths`.
        path: the file system's own path.
        data: the whole content.
        lock: makes a lock that every writer of the table takes; then check-then-write is enough.

    Raises:
        StorageError: there is neither a primitive nor a lock.
    """
    if lock is not None:
        with lock():
            if filesystem.exists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            filesystem.pipe_file(path, data)
        return
    if kind not in CONDITIONAL_KINDS:
        raise StorageError(
            f"cannot commit to {path!r}: no atomic put-if-absent is known for file systems of "
            f"kind {kind!r}; use one of file, memory, s3, gs, az, or hand in `commit_lock`"
        )
    for attempt in range(_CONFLICT_ATTEMPTS):
        try:
            filesystem.pipe_file(path, data, mode="create")
        except OSError as error:
            if attempt + 1 == _CONFLICT_ATTEMPTS or not _writes_met(error):
                raise
            time.sleep(0.05 * 2**attempt)
        else:
            return


def _writes_met(error: BaseException | None) -> bool:
    """Whether S3 says that another conditional write was under way, so that nobody knows yet.

    Amazon asks to send the request again then.
    """
    while error is not None:
        answer = getattr(error, "response", None)
        if isinstance(answer, dict) and answer.get("Error", {}).get("Code") in {
            "ConditionalRequestConflict",
            "OperationAborted",
        }:
            return True
        error = error.__cause__
    return False


class _MemoryLock:
    """One lock for all memory file systems: they share one dictionary."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def renew(self) -> None:
        self.lock = threading.Lock()


_memory = _MemoryLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_memory.renew)

_NO_HARD_LINKS: Final = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
)
_AT_FDCWD: Final = -100
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCL: Final = 4


def rename_without_replacing(source: str, target: str) -> None:
    """Rename, or raise `FileExistsError`; refuse where the system cannot do that in one step."""
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
