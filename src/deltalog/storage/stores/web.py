"""Web servers, read only; paths are URLs.

A listing returns the links of an index page; only `stat` returns sizes and times.
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
    """The calls of a store over fsspec's HTTP file system."""

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
        """Raise `StorageError`."""
        del data
        raise _read_only(path)

    def put(self, path: str, data: bytes) -> None:
        """Raise `StorageError`."""
        del data
        raise _read_only(path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Raise `StorageError`."""
        raise _read_only(", ".join(paths[:3]))


def _unquoted(file: FileInfo) -> FileInfo:
    """A file of an index page under its own name."""
    return FileInfo(unquote(file.path), file.size_bytes, file.modified_ms)


def _read_only(path: str) -> StorageError:
    return StorageError(f"cannot change {path!r}: tables on web servers are read only")
