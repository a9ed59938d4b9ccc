"""Files in the memory of this process: fsspec's memory file system.

This module reads the file system's dictionary directly, because its `open` returns the same buffer,
with the same position, to all threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from deltalog._util.paths import FileInfo
from deltalog.storage import atomic
from deltalog.storage.stores.fsspec_files import FsspecFiles, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.storage.store import ByteRange


class MemoryFiles(FsspecFiles):
    """The file operations of a store over fsspec's memory file system."""

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
        return file if entry is None else _file_info(file.path, entry)

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Yield the files at any depth below `directory`; paths are relative to it."""
        prefix = directory.rstrip("/") + "/"
        for path, file in tuple(self.filesystem.store.items()):
            if path.startswith(prefix):
                yield _file_info(path[len(prefix) :], file)

    def stat(self, path: str) -> FileInfo:
        """Return size and time of a file."""
        return _file_info(path, self._entry(path))

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


def _file_info(path: str, file: Any) -> FileInfo:
    return FileInfo(path, file.getbuffer().nbytes, milliseconds(file.modified))
