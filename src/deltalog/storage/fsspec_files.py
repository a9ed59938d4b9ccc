"""The verbs of a store over an fsspec file system.

Paths are the file system's own (stripped of the scheme); foreign exceptions leave as they are,
the store maps them. Listings are asked for anew each time, whatever the file system caches.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from deltalog.errors import InvalidInputError
from deltalog.paths import FileInfo
from deltalog.storage import atomic
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

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Files directly in `directory` from name `first` on, unordered; `path` is the name."""
        self._forget(directory)
        try:
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
        return cast("bytes", self.filesystem.cat_file(path))

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of a file; sent together."""
        return self._fetch([(path, start, end) for start, end in ranges])

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Whole files; sent together."""
        return self._fetch([(path, None, None) for path in paths])

    def open(self, path: str) -> BinaryIO:
        """A seekable file."""
        return cast("BinaryIO", self.filesystem.open(path, "rb"))

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
        if self.kind == "s3" and hasattr(self.filesystem, "bulk_delete"):
            for start in range(0, len(paths), 1000):
                self.filesystem.bulk_delete(list(paths[start : start + 1000]))
            return
        map_in_pool(self._delete, paths)

    def _delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.rm_file(path)

    def _fetch(self, parts: list[tuple[str, int | None, int | None]]) -> list[bytes]:
        wanted = [part for part in parts if part[1] is None or part[1] < (part[2] or 0)]
        if len(wanted) > 1 and getattr(self.filesystem, "async_impl", False):
            paths, starts, ends = (list(column) for column in zip(*wanted, strict=True))
            answers = self.filesystem.cat_ranges(paths, starts, ends, on_error="return")
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
        else:
            answers = map_in_pool(self._fetch_one, wanted)
        queue = iter(answers)
        return [
            bytes(next(queue)) if start is None or start < (end or 0) else b""
            for _, start, end in parts
        ]

    def _fetch_one(self, part: tuple[str, int | None, int | None]) -> bytes:
        path, start, end = part
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

    def open(self, path: str) -> BinaryIO:
        """A seekable file."""
        return io.BytesIO(self.read(path))

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


_WITH_DIRECTORIES: Final = frozenset({"hdfs", "webhdfs", "viewfs", "sftp", "ssh", "smb", "file"})
_TIME_KEYS: Final = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")


def _own_name(entry: Mapping[str, Any]) -> str:
    return cast("str", entry["name"])


def _file_info(path: str, entry: Mapping[str, Any]) -> FileInfo:
    moment = next((entry[key] for key in _TIME_KEYS if entry.get(key) is not None), None)
    return FileInfo(path, int(entry.get("size") or 0), _milliseconds(moment))


def _memory_info(path: str, file: Any) -> FileInfo:
    return FileInfo(path, file.getbuffer().nbytes, _milliseconds(file.modified))


def _milliseconds(moment: object) -> int:
    """What file systems tell as a time: a datetime, seconds, or a text of RFC 3339."""
    match moment:
        case None:
            return 0
        case datetime():
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return round(aware.timestamp() * 1000)
        case int() | float():
            return round(moment * 1000)
        case str():
            return _milliseconds(datetime.fromisoformat(moment))
        case _:
            raise InvalidInputError(f"expected a time of a file, found {moment!r}")
