"""Sources of bytes to copy from one Parquet file into another.

If possible, the operating system copies the bytes of local files.

Protocol: none
"""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import DataFileUnreadableError
from deltalog.storage.parquet.parts import Segments

if TYPE_CHECKING:
    import pyarrow as pa

_SLICE_BYTES: Final = 8 * 1024 * 1024
_NO_COPY: Final = frozenset(
    {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EBADF}
)


class LocalBytes:
    """A local file.

    Args:
        native: the operating system's path.

    Attributes:
        size_bytes: the file's length.
    """

    def __init__(self, native: str) -> None:
        self._file = os.open(native, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self.size_bytes: int = os.fstat(self._file).st_size

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`.

        Raises:
            DataFileUnreadableError: the file ends before `end`.
        """
        return _whole(_read_at(self._file, end - start, start), start, end)

    def copy(self, start: int, end: int, out: Any) -> None:
        """Append the bytes from `start` to `end` to a file that is open for writing."""
        start = _copied_by_system(self._file, start, end, out)
        for first in range(start, end, _SLICE_BYTES):
            write_all(out, self.read(first, min(end, first + _SLICE_BYTES)))

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class FetchedBytes:
    """Fetched parts of a file.

    Args:
        segments: the fetched parts.
        size_bytes: the length of the whole file.

    Attributes:
        size_bytes: the length of the whole file.
    """

    def __init__(self, segments: Segments, size_bytes: int) -> None:
        self._segments = segments
        self.size_bytes = size_bytes

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`.

        Raises:
            DataFileUnreadableError: the file ends before `end`.
        """
        try:
            return self._segments.read(start, end)
        except OSError as error:
            raise DataFileUnreadableError(str(error)) from error

    def copy(self, start: int, end: int, out: Any) -> None:
        """Append the bytes from `start` to `end` to a file that is open for writing."""
        write_all(out, self.read(start, end))

    def close(self) -> None:
        """Drop the fetched parts."""
        self._segments = Segments()


class EncodedBytes:
    """A file in memory.

    Args:
        data: the content of the file.

    Attributes:
        size_bytes: the length of the file.
    """

    def __init__(self, data: pa.Buffer) -> None:
        self._view = memoryview(data)
        self.size_bytes: int = len(self._view)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`.

        Raises:
            DataFileUnreadableError: the file ends before `end`.
        """
        return _whole(bytes(self._view[start:end]), start, end)

    def copy(self, start: int, end: int, out: Any) -> None:
        """Append the bytes from `start` to `end` to a file that is open for writing."""
        write_all(out, self._view[start:end])

    def footer(self) -> bytes:
        """Return the footer of a Parquet file that this process has written."""
        length = int.from_bytes(self._view[-8:-4], "little")
        return self.read(self.size_bytes - 8 - length, self.size_bytes - 8)


def write_all(out: Any, data: bytes | memoryview) -> None:
    """Write all of the data to a file, in several writes if necessary."""
    view = memoryview(data)
    while view:
        taken = out.write(view)
        view = view[len(view) if taken is None else taken :]


def _read_at(file: int, num_bytes: int, start: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, num_bytes, start)
    # Windows has no `pread`. Only one thread at a time uses the descriptor.
    os.lseek(file, start, os.SEEK_SET)
    return os.read(file, num_bytes)


def _copied_by_system(file: int, start: int, end: int, out: Any) -> int:
    """Let the operating system copy bytes; return where it stopped, `start` if it copied none."""
    copy = getattr(os, "copy_file_range", None)
    if copy is None or not isinstance(out, io.FileIO):
        return start
    try:
        while start < end:
            copied = copy(file, out.fileno(), end - start, offset_src=start)
            if not copied:
                break  # the file is too short: the caller raises the error
            start += copied
    except OSError as error:
        if error.errno not in _NO_COPY:
            raise
    return start


def _whole(data: bytes, start: int, end: int) -> bytes:
    if len(data) != end - start:
        raise DataFileUnreadableError(f"expected {end - start} bytes at {start}, found {len(data)}")
    return data
