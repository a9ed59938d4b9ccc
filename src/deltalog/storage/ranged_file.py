"""A seekable file over ranged reads, for readers that want a file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.storage.store import Store

_BUFFER_BYTES: Final = 1024 * 1024


def open_ranged(store: Store, path: str) -> BinaryIO:
    """A seekable file that reads from a store.

    Cost: a `stat` now and one ranged read per megabyte that is read.
    """
    size_bytes = store.stat(path).size_bytes
    file = RangedFile(lambda start, end: store.read_ranges(path, [(start, end)])[0], size_bytes)
    return io.BufferedReader(file, buffer_size=_BUFFER_BYTES)


class RangedFile(io.RawIOBase):
    """A seekable file, each read of which asks for a range.

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

    def read(self, size: int | None = -1) -> bytes:
        """Up to `size` bytes from the position on; all by default."""
        left = max(0, self._size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        data = self._read_range(self._position, self._position + size) if size else b""
        self._position += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the position on, as far as the file goes."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
