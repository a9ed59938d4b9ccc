"""Local files by the operating system's own calls.

Paths are absolute and decoded; foreign exceptions pass, the store maps them.
"""

from __future__ import annotations

import contextlib
import os
import stat as stat_flags
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from deltalog.paths import FileInfo
from deltalog.storage import atomic
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.storage.store import ByteRange


class LocalFiles:
    """The calls of a store over absolute local paths.

    Args:
        syncs: whether files that are created are on the disk, name and all, before the call
            returns.
    """

    def __init__(self, *, syncs: bool = True) -> None:
        self.syncs = syncs

    def list_directory(self, directory: str, first: str) -> list[FileInfo]:
        """Files directly in `directory` from name `first` on, unordered; `path` is the name."""
        found = []
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(directory) as it,
        ):
            for entry in it:
                if entry.name < first or not entry.is_file():
                    continue
                with contextlib.suppress(FileNotFoundError):  # it vanished meanwhile
                    found.append(_file_info(entry.name, entry.stat()))
        return found

    def list_short(self, directory: str, most: int) -> list[FileInfo]:
        """The files directly in `directory`, unordered; always all of them."""
        del most
        return self.list_directory(directory, "")

    def list_level(self, directory: str) -> tuple[list[FileInfo], list[str]]:
        """Files and directories directly in a directory; their paths are names."""
        directories = []
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(directory) as entries,
        ):
            # As in a tree, a link to a directory is not followed.
            directories = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        return self.list_directory(directory, ""), directories

    def list_tree(self, directory: str) -> Iterator[FileInfo]:
        """Files at any depth below `directory`; `path` is relative to it."""
        pending = [""]
        while pending:
            below = pending.pop()
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError),
                os.scandir(f"{directory}/{below}") as entries,
            ):
                for entry in entries:
                    relative = below + entry.name
                    # A link to a directory is not followed: it may lead out of the table.
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(relative + "/")
                    elif entry.is_file():
                        with contextlib.suppress(FileNotFoundError):
                            yield _file_info(relative, entry.stat())

    def stat(self, path: str) -> FileInfo:
        """Size and time of a file."""
        found = os.stat(path)  # noqa: PTH116  # hot path, a string
        if stat_flags.S_ISDIR(found.st_mode):
            raise FileNotFoundError(f"{path} is a directory")
        return _file_info(path, found)

    def read(self, path: str) -> bytes:
        """The whole file."""
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # hot path, a string
            return file.readall()

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Parts of a file."""
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # hot path, a string
            return [_read_at(file, start, end) for start, end in ranges]

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """Whole files."""
        return map_in_pool(self.read, paths, batch_size=64)

    def create(self, path: str, data: bytes) -> None:
        """Create a file, or raise `FileExistsError`."""
        atomic.create_local(path, data, syncs=self.syncs)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file; a reader sees the old or the new one."""
        temporary = atomic.write_temporary(path, data, syncs=self.syncs)
        try:
            os.replace(temporary, path)  # noqa: PTH105  # hot path, strings
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108  # as above
            raise

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete files; gone ones are no error."""
        # A file system deletes from a directory for one thread at a time, so few threads suffice.
        map_in_pool(_unlink, paths, batch_size=512)


def local_path(text: str) -> str:
    """The absolute path of a local table URI: taken literally, but for `~`."""
    if text.startswith("~"):
        text = str(Path(text).expanduser())
    return os.path.abspath(text)  # noqa: PTH100  # Path.resolve would follow links


def _read_at(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(max(0, end - start))


def _unlink(path: str) -> None:
    try:  # noqa: SIM105  # a context takes as long as the call
        os.unlink(path)  # noqa: PTH108  # hot path, a string
    except FileNotFoundError:
        pass


def _file_info(path: str, found: os.stat_result) -> FileInfo:
    return FileInfo(path, found.st_size, found.st_mtime_ns // 1_000_000)
