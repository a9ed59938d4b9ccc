"""The file operations of a store over an fsspec file system.

Paths are paths inside the file system, without scheme. The caller converts foreign exceptions.
Every listing is a new request, even if the file system has a cache.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Final, cast
from urllib.parse import unquote

from deltalog._util.paths import FileInfo
from deltalog.errors import InvalidInputError, StorageError
from deltalog.storage import atomic
from deltalog.storage.faults import absent_container
from deltalog.storage.pool import map_in_pool, send_together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from deltalog._util.store_kinds import StoreKind
    from deltalog.storage.store import ByteRange, Store


@dataclass(frozen=True, slots=True)
class IssuedCredentials:
    """Temporary credentials for one directory.

    Args:
        kind: the kind of the credentials, as named in Delta Sharing.
        values: the values by their names in Delta Sharing.
        expires_ms: the time of expiry.
    """

    kind: str
    values: Mapping[str, str]
    expires_ms: int


class FsspecFiles:
    """The file operations of a store over an fsspec file system; some store kinds have subclasses.

    Args:
        filesystem: an fsspec file system.
        kind: the kind of the store.
        lock: returns a lock, for file systems without put-if-absent.
    """

    option_names: ClassVar[Mapping[str, str]] = {}
    """The argument of the file system for each storage option; see `options.translate`."""
    whole: ClassVar[Mapping[str, Any]] = {}
    """Additional arguments of `cat_file` and `cat_ranges` for reading a whole file."""

    def __init__(
        self,
        filesystem: Any,
        kind: StoreKind,
        lock: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> None:
        self.filesystem = filesystem
        self.kind = kind
        self._lock = lock

    @staticmethod
    def finish(arguments: dict[str, Any], location: str) -> dict[str, Any]:
        """Complete the translated options; `location` is the URL to open."""
        del location
        return arguments

    @staticmethod
    def prepare(made: Any, arguments: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """Return the fsspec class to use, and its arguments."""
        return made, arguments

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Return files in `directory` with names from `first` on, unordered; paths are names."""
        self._forget(directory)
        try:
            return self.list_names(directory, first)
        except (FileNotFoundError, NotADirectoryError) as error:
            if absent_container(error):
                raise
            return []

    def list_short(self, directory: str, most: int) -> list[FileInfo] | None:
        """Return a directory's files, unordered; may return None if there are more than `most`.

        If the service cannot limit a listing, all files are returned.
        """
        self._forget(directory)
        try:
            return self.short_names(directory, most)
        except (FileNotFoundError, NotADirectoryError) as error:
            if absent_container(error):
                raise
            return []

    def short_names(self, directory: str, most: int) -> list[FileInfo] | None:
        """Like `list_short`, for an existing directory. Cost: lists the whole directory."""
        del most
        return self.list_names(directory, "")

    def list_names(self, directory: str, first: str) -> list[FileInfo]:
        """Like `list_directory`, for an existing directory. Cost: lists the whole directory."""
        return [file for file in self._level(directory)[0] if file.path >= first]

    def list_level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """Return the files and directories in a directory; paths are names."""
        self._forget(directory)
        try:
            return self._level(directory)
        except (FileNotFoundError, NotADirectoryError) as error:
            if absent_container(error):
                raise
            return [], []

    def _level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        files, directories = [], []
        for entry in self.filesystem.ls(directory, detail=True):
            path = _own_name(entry)
            name = path.rstrip("/").rpartition("/")[2]
            if not name or path.strip("/") == directory.strip("/"):
                continue  # some stores also list a marker of the directory, or the file itself
            if entry.get("type") == "directory":
                directories.append(name)
            elif not path.endswith("/"):
                files.append(_file_info(name, entry))
        return files, directories

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Yield the files at any depth below `directory`; paths are relative to it."""
        self._forget(directory)
        try:
            entries = self.filesystem.find(directory, detail=True)
        except (FileNotFoundError, NotADirectoryError) as error:
            if absent_container(error):
                raise
            return
        prefix = directory.strip("/") + "/"
        for entry in entries.values():
            name = _own_name(entry)
            if name.endswith("/"):
                continue
            yield _file_info(name.lstrip("/").removeprefix(prefix), entry)

    def stat(self, path: str) -> FileInfo:
        """Return size and time of a file."""
        self._forget(path)
        entry = self.filesystem.info(path)
        if entry.get("type") == "directory":
            raise FileNotFoundError(f"{path} is a directory")
        return _file_info(path, entry)

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        return cast("bytes", self.filesystem.cat_file(path, **self.whole))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return ranges of a file, fetched concurrently."""
        return self._fetch([(path, start, end) for start, end in ranges])

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Return whole files, fetched concurrently."""
        return self._fetch([(path, None, None) for path in paths])

    def create(self, path: str, data: bytes) -> None:
        """Create an object, or raise `FileExistsError`."""
        if self._lock is None:
            atomic.create_by_request(self.filesystem, self.kind, path, data)
        else:
            atomic.create_under_lock(self._lock(), self.filesystem.exists, self.put, path, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        if self.kind.has_directories:
            self.filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
        self.filesystem.pipe_file(path, data)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects; a missing object is not an error."""
        map_in_pool(self._delete, paths)

    def sign(self, path: str, seconds: int) -> str:
        """Return a URL with which anybody can read the file for a limited time."""
        return str(self.filesystem.sign(path, expiration=seconds))

    def _delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(path)

    def _fetch(self, parts: list[tuple[str, int | None, int | None]]) -> list[bytes]:
        wanted = [part for part in parts if not _is_empty(part)]
        if len(wanted) > 1 and getattr(self.filesystem, "async_impl", False):
            answers = self._fetch_together(wanted)
        else:
            answers = send_together(self._fetch_one, wanted)
        queue = iter(answers)
        return [b"" if _is_empty(part) else bytes(next(queue)) for part in parts]

    def _fetch_together(self, parts: list[tuple[str, int | None, int | None]]) -> list[bytes]:
        paths, starts, ends = (list(column) for column in zip(*parts, strict=True))
        whole = self.whole if starts[0] is None else {}
        answers = self.filesystem.cat_ranges(paths, starts, ends, on_error="return", **whole)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return cast("list[bytes]", answers)

    def _fetch_one(self, part: tuple[str, int | None, int | None]) -> bytes:
        path, start, end = part
        if start is None:
            return self.read(path)
        return cast("bytes", self.filesystem.cat_file(path, start=start, end=end))

    def _forget(self, path: str) -> None:
        self.filesystem.invalidate_cache(path)


_TIME_KEYS: Final = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")


def _is_empty(part: tuple[str, int | None, int | None]) -> bool:
    return part[1] is not None and part[2] is not None and part[1] >= part[2]


def _own_name(entry: Mapping[str, Any]) -> str:
    return cast("str", entry["name"])


def _file_info(path: str, entry: Mapping[str, Any]) -> FileInfo:
    moment = next((entry[key] for key in _TIME_KEYS if entry.get(key) is not None), None)
    return FileInfo(path, int(entry.get("size") or 0), milliseconds(moment))


def milliseconds(moment: object) -> int:
    """Return a file's time in milliseconds, from a datetime, seconds, or an RFC 3339 string."""
    match moment:
        case None:
            return 0
        case datetime():
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return round(aware.timestamp() * 1000)
        case int() | float():
            return round(moment * 1000)
        case str():
            return milliseconds(datetime.fromisoformat(moment))
        case _:
            raise InvalidInputError(f"expected a time of a file, found {moment!r}")


# --- A seekable file object that sends range requests


_BUFFER_BYTES: Final = 1024 * 1024


def open_ranged(store: Store, path: str) -> BinaryIO:
    """Return a seekable file that reads from a store.

    Cost: a `stat` now, and one range request per megabyte that is read.
    """
    size_bytes = store.stat(path).size_bytes
    file = RangedFile(lambda start, end: store.read_ranges(path, [(start, end)])[0], size_bytes)
    return io.BufferedReader(file, buffer_size=_BUFFER_BYTES)


class RangedFile(io.RawIOBase):
    """A seekable file that sends a range request for each read.

    Args:
        read_range: returns the bytes from a start to an end position.
        size_bytes: the length of the file.
    """

    def __init__(self, read_range: Callable[[int, int], bytes], size_bytes: int) -> None:
        super().__init__()
        self._read_range = read_range
        self._size = size_bytes
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position; sends no request."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return up to `size` bytes from the position; by default all remaining bytes."""
        left = max(0, self._size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        data = self._read_range(self._position, self._position + size) if size else b""
        self._position += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the position, up to the end of the file."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


# --- Files on web servers


class WebFiles(FsspecFiles):
    """The file operations of a store over fsspec's HTTP file system: read-only; paths are URLs.

    A listing contains the links of an index page, without sizes and times; `stat` returns both.
    """

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Return files in `directory` with names from `first` on, unordered; paths are names."""
        found = (_unquoted(file) for file in super().list_directory(f"{directory}/", ""))
        return [file for file in found if file.path >= first]

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Yield the files at any depth below `directory`; paths are relative to it."""
        return (_unquoted(file) for file in super().list_tree(directory))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return ranges of a file, fetched concurrently."""
        parts = super().read_ranges(path, ranges)
        # A server that ignores the range sends the whole file.
        return [
            part[start:end] if len(part) > max(0, end - start) else part
            for part, (start, end) in zip(parts, ranges, strict=True)
        ]

    def create(self, path: str, data: bytes) -> None:
        """Raise `StorageError`, because web servers are read-only."""
        del data
        raise _read_only(path)

    def put(self, path: str, data: bytes) -> None:
        """Raise `StorageError`, because web servers are read-only."""
        del data
        raise _read_only(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Raise `StorageError`, because web servers are read-only."""
        raise _read_only(", ".join(paths[:3]))


def _unquoted(file: FileInfo) -> FileInfo:
    """Return a file of an index page with its name decoded."""
    return FileInfo(unquote(file.path), file.size_bytes, file.modified_ms)


def _read_only(path: str) -> StorageError:
    return StorageError(f"cannot change {path!r}: tables on web servers are read only")


# --- Files in the memory of this process


class MemoryFiles(FsspecFiles):
    """The file operations of a store over fsspec's memory file system.

    The file system's dictionary is read directly, because its `open` returns the same buffer, with
    the same position, to all threads.
    """

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Return files in `directory` with names from `first` on, unordered; paths are names."""
        return [
            file
            for file in self.list_tree(directory)
            if "/" not in file.path and file.path >= first
        ]

    def short_names(self, directory: str, most: int) -> list[FileInfo] | None:
        """Like `list_short`, for an existing directory."""
        del most
        return self.list_directory(directory, "")

    def _level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        # `ls` returns the time of creation; other methods return the time of the last change.
        files, directories = super()._level(directory)
        prefix = directory.rstrip("/") + "/"
        return [self._as_changed(prefix, file) for file in files], directories

    def _as_changed(self, prefix: str, file: FileInfo) -> FileInfo:
        entry = self.filesystem.store.get(prefix + file.path)
        return file if entry is None else _memory_file(file.path, entry)

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Yield the files at any depth below `directory`; paths are relative to it."""
        prefix = directory.rstrip("/") + "/"
        for path, file in tuple(self.filesystem.store.items()):
            if path.startswith(prefix):
                yield _memory_file(path[len(prefix) :], file)

    def stat(self, path: str) -> FileInfo:
        """Return size and time of a file."""
        return _memory_file(path, self._entry(path))

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        return cast("bytes", self._entry(path).getvalue())

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return ranges of a file."""
        content = self.read(path)
        return [content[start:end] for start, end in ranges]

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Return whole files."""
        return [self.read(path) for path in paths]

    def create(self, path: str, data: bytes) -> None:
        """Create an entry, or raise `FileExistsError`."""
        exists = self.filesystem.store.__contains__
        atomic.create_under_lock(atomic.memory_lock(), exists, self.put, path, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an entry."""
        self.filesystem.pipe_file(path, bytes(data))

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete entries; a missing entry is not an error."""
        for path in paths:
            self.filesystem.store.pop(path, None)

    def _entry(self, path: str) -> Any:
        try:
            return self.filesystem.store[path]
        except KeyError:
            raise FileNotFoundError(path) from None


def _memory_file(path: str, file: Any) -> FileInfo:
    return FileInfo(path, file.getbuffer().nbytes, milliseconds(file.modified))
