"""Files on web servers, read-only; paths are URLs.

A listing contains the links of an index page, without sizes and times; `stat` returns both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from deltalog._util.paths import FileInfo
from deltalog.errors import StorageError
from deltalog.storage.stores.fsspec_files import FsspecFiles

if TYPE_CHECKING:
    from deltalog.storage.store import ByteRange


class WebFiles(FsspecFiles):
    """The file operations of a store over fsspec's HTTP file system."""

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
