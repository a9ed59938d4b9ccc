"""The verbs of a store over an fsspec file system.

Paths are the file system's own (stripped of the scheme); foreign exceptions leave as they are,
the store maps them. Listings are asked for anew each time, whatever the file system caches.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

from deltalog.errors import StorageError
from deltalog.paths import FileInfo
from deltalog.storage import atomic
from deltalog.storage.native_calls import (
    delete_s3,
    is_s3fs,
    list_google,
    list_s3,
    milliseconds,
)
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from deltalog.storage.store import ByteRange


class FsspecFiles:
    """Any fsspec file system.

    Args:
        filesystem: an fsspec file system.
        kind: canonical scheme, as in `paths`.
        lock: makes the lock that stands in for a missing put-if-absent.
    """

    def __init__(
        self,
        filesystem: Any,
        kind: str,
        lock: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> None:
        self.filesystem = filesystem
        self.kind = kind
        self._lock = lock
        # s3fs asks for the size first, to fetch large files in parts; ours are small.
        self._whole = {"max_concurrency": 1} if is_s3fs(filesystem) else {}

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Files directly in `directory` from name `first` on, unordered; `path` is the name."""
        self._forget(directory)
        try:
            if is_s3fs(self.filesystem):
                return list_s3(self.filesystem, directory, first)
            if self.kind == "gs" and hasattr(self.filesystem, "call"):
                return list_google(self.filesystem, directory, first)
            entries = self.filesystem.ls(directory, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = []
        for entry in entries:
            name = _own_name(entry).rpartition("/")[2]
            # Some stores answer a listing of a file, or a directory's marker, with itself.
            if entry.get("type") == "file" and name and name >= first:
                if _own_name(entry).strip("/") == directory.strip("/"):
                    continue
                found.append(_file_info(name, entry))
        return found

    def list_level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """Files and directories directly in a directory; their paths are names."""
        self._forget(directory)
        try:
            entries = self.filesystem.ls(directory, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        files, directories = [], []
        for entry in entries:
            path = _own_name(entry)
            name = path.rstrip("/").rpartition("/")[2]
            if not name or path.strip("/") == directory.strip("/"):
                continue  # some stores answer with the directory's marker, or the file itself
            if entry.get("type") == "directory":
                directories.append(name)
            elif not path.endswith("/"):
                files.append(_file_info(name, entry))
        return files, directories

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Files at any depth below `directory`; `path` is relative to it."""
        self._forget(directory)
        try:
            entries = self.filesystem.find(directory, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return
        prefix = directory.strip("/") + "/"
        for entry in entries.values():
            name = _own_name(entry)
            if name.endswith("/"):
                continue
            yield _file_info(name.lstrip("/").removeprefix(prefix), entry)

    def stat(self, path: str) -> FileInfo:
        """Size and time of a file."""
        self._forget(path)
        entry = self.filesystem.info(path)
        if entry.get("type") == "directory":
            raise FileNotFoundError(f"{path} is a directory")
        return _file_info(path, entry)

    def read(self, path: str) -> bytes:
        """The whole file."""
        return cast("bytes", self.filesystem.cat_file(path, **self._whole))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of a file; sent together."""
        return self._fetch([(path, start, end) for start, end in ranges])

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Whole files; sent together."""
        return self._fetch([(path, None, None) for path in paths])

    def create(self, path: str, data: bytes) -> None:
        """Create an object, or raise `FileExistsError`."""
        atomic.create_remote(self.filesystem, self.kind, path, data, lock=self._lock)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        if self.kind in _WITH_DIRECTORIES:
            self.filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
        self.filesystem.pipe_file(path, data)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects; gone ones are no error."""
        if not paths:
            return
        if is_s3fs(self.filesystem):
            ordered = sorted(paths)
            for _, group in itertools.groupby(ordered, lambda path: path.partition("/")[0]):
                while some := list(itertools.islice(group, 1000)):
                    delete_s3(self.filesystem, some)
            return
        map_in_pool(self._delete, paths)

    def sign(self, path: str, seconds: int) -> str:
        """A URL by which anybody can read the file for a while."""
        # Google's older way of signing says nothing that readers take a URL for remote by.
        more = {"version": "v4"} if self.kind == "gs" else {}
        return str(self.filesystem.sign(path, expiration=seconds, **more))

    def _delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(path)

    def _fetch(self, parts: list[tuple[str, int | None, int | None]]) -> list[bytes]:
        wanted = [part for part in parts if not _is_empty(part)]
        if len(wanted) > 1 and getattr(self.filesystem, "async_impl", False):
            answers = self._fetch_together(wanted)
        else:
            answers = map_in_pool(self._fetch_one, wanted)
        queue = iter(answers)
        return [b"" if _is_empty(part) else bytes(next(queue)) for part in parts]

    def _fetch_together(self, parts: list[tuple[str, int | None, int | None]]) -> list[bytes]:
        paths, starts, ends = (list(column) for column in zip(*parts, strict=True))
        whole = self._whole if starts[0] is None else {}
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


class MemoryFiles(FsspecFiles):
    """fsspec's memory file system, read from its dictionary.

    Its own `open` hands every reader the same buffer with the same position, so that two threads
    reading one file mix up; the content is therefore taken at once here.
    """

    def __init__(self, filesystem: Any) -> None:
        super().__init__(filesystem, "memory")

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Files directly in `directory` from name `first` on, unordered; `path` is the name."""
        return [
            file
            for file in self.list_tree(directory)
            if "/" not in file.path and file.path >= first
        ]

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Files at any depth below `directory`; `path` is relative to it."""
        prefix = directory.rstrip("/") + "/"
        for path, file in tuple(self.filesystem.store.items()):
            if path.startswith(prefix):
                yield _memory_info(path[len(prefix) :], file)

    def stat(self, path: str) -> FileInfo:
        """Size and time of a file."""
        return _memory_info(path, self._entry(path))

    def read(self, path: str) -> bytes:
        """The whole file."""
        return cast("bytes", self._entry(path).getvalue())

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of a file."""
        content = self.read(path)
        return [content[start:end] for start, end in ranges]

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Whole files."""
        return [self.read(path) for path in paths]

    def create(self, path: str, data: bytes) -> None:
        """Create an entry, or raise `FileExistsError`."""
        atomic.create_in_memory(self.filesystem.store.__contains__, self.put, path, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an entry."""
        self.filesystem.pipe_file(path, bytes(data))

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete entries; gone ones are no error."""
        for path in paths:
            self.filesystem.store.pop(path, None)

    def _entry(self, path: str) -> Any:
        try:
            return self.filesystem.store[path]
        except KeyError:
            raise FileNotFoundError(path) from None


class HttpFiles(FsspecFiles):
    """A web server, read only; paths are URLs.

    Listings are what links a server's index page has; sizes and times come with `stat` only.
    """

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Files directly in `directory` from name `first` on, unordered; `path` is the name."""
        found = (_unquoted(file) for file in super().list_directory(f"{directory}/", ""))
        return [file for file in found if file.path >= first]

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Files at any depth below `directory`; `path` is relative to it."""
        return (_unquoted(file) for file in super().list_tree(directory))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of a file; sent together."""
        parts = super().read_ranges(path, ranges)
        # A server may ignore the range and send the whole file.
        return [
            part[start:end] if len(part) > max(0, end - start) else part
            for part, (start, end) in zip(parts, ranges, strict=True)
        ]

    def create(self, path: str, data: bytes) -> None:
        """Refuse."""
        del data
        raise _read_only(path)

    def put(self, path: str, data: bytes) -> None:
        """Refuse."""
        del data
        raise _read_only(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Refuse."""
        raise _read_only(", ".join(paths[:3]))


class RangedFile(io.RawIOBase):
    """A seekable file whose every read is a ranged request.

    Args:
        read_range: gives the bytes from a start to an end.
        size_bytes: length of the file.
    """

    def __init__(self, read_range: Callable[[int, int], bytes], size_bytes: int) -> None:
        super().__init__()
        self._read_range = read_range
        self._size = size_bytes
        self._position = 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position; no request."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the position on, as far as the file goes."""
        end = min(self._size, self._position + len(buffer))
        data = self._read_range(self._position, end) if end > self._position else b""
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _unquoted(file: FileInfo) -> FileInfo:
    """A file of an index page under its own name."""
    return FileInfo(unquote(file.path), file.size_bytes, file.modified_ms)


def _read_only(path: str) -> StorageError:
    return StorageError(f"cannot change {path!r}: tables on web servers are read only")


_WITH_DIRECTORIES: Final = frozenset({"hdfs", "webhdfs", "viewfs", "sftp", "ssh", "smb", "file"})
_TIME_KEYS: Final = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")


def _is_empty(part: tuple[str, int | None, int | None]) -> bool:
    return part[1] is not None and part[2] is not None and part[1] >= part[2]


def _own_name(entry: Mapping[str, Any]) -> str:
    return cast("str", entry["name"])


def _file_info(path: str, entry: Mapping[str, Any]) -> FileInfo:
    moment = next((entry[key] for key in _TIME_KEYS if entry.get(key) is not None), None)
    return FileInfo(path, int(entry.get("size") or 0), milliseconds(moment))


def _memory_info(path: str, file: Any) -> FileInfo:
    return FileInfo(path, file.getbuffer().nbytes, milliseconds(file.modified))
