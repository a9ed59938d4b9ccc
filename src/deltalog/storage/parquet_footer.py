"""The bytes of a Parquet footer: where they are, and the null counts in them.

pyarrow (26) ends the process when a damaged minimum or maximum cannot be decoded; asking for a null
count decodes both, and so does writing a damaged footer out again. A damaged checkpoint must not
end the process, so null counts are read from the footer's bytes here: a tree in Thrift's compact
protocol, of which a few numbered fields matter.

Protocol: none; Apache Parquet's `parquet.thrift`, Apache Thrift's compact protocol
"""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import DataFileUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.storage.store import Store


_TAIL_BYTES: Final = 64 * 1024
_MAGIC: Final = frozenset({b"PAR1", b"PARE"})
_ROW_GROUPS, _COLUMNS, _META_DATA, _STATISTICS, _NULL_COUNT = 4, 1, 3, 12, 3

NullCounts = list[list[int | None]]


def fetch_footer(store: Store, path: str, size_bytes: int) -> tuple[bytes, int]:
    """The footer's bytes, and the file's true length: the one in the log may be wrong.

    Args:
        store: where the file is.
        path: decoded.
        size_bytes: the file's length according to the log.

    Raises:
        pa.ArrowInvalid: it is no Parquet file.

    Cost: one ranged read, two for a large footer; one `stat` and the same again if the length is
    wrong.
    """
    start = max(0, size_bytes - _TAIL_BYTES)
    (tail,) = store.read_ranges(path, [(start, size_bytes)])
    if len(tail) != size_bytes - start or tail[-4:] not in _MAGIC:
        true_size = store.stat(path).size_bytes
        if true_size != size_bytes:
            return fetch_footer(store, path, true_size)
    if len(tail) < 12 or tail[-4:] not in _MAGIC:
        raise pa.ArrowInvalid("Parquet magic bytes not found at the end")
    footer_bytes = struct.unpack("<I", tail[-8:-4])[0] + 8
    if footer_bytes > size_bytes:
        raise pa.ArrowInvalid(f"a footer of {footer_bytes} bytes in a file of {size_bytes}")
    if footer_bytes > len(tail):
        (head,) = store.read_ranges(path, [(size_bytes - footer_bytes, start)])
        tail = head + tail
    return tail[-footer_bytes:-8], size_bytes


def local_footer(native: str) -> bytes:
    """The footer's bytes of a file that Arrow has opened, so that its length is known to fit."""
    with Path(native).open("rb") as file:
        file.seek(-8, io.SEEK_END)
        length = struct.unpack("<I", file.read(4))[0]
        file.seek(-8 - length, io.SEEK_END)
        return file.read(length)


def as_file(footer: bytes) -> bytes:
    """A Parquet file of this footer alone, from which Arrow can read it."""
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def null_counts(footer: bytes) -> NullCounts:
    """How many values are NULL, by row group and leaf column; None if the footer does not say.

    Args:
        footer: a file's `FileMetaData` as it is stored.

    Raises:
        DataFileUnreadableError: the footer is damaged.

    Cost: some microseconds per column chunk, which suits the few row groups of a checkpoint.
    """
    try:
        node = _ThriftReader(footer).struct()
        return [
            [_null_count(chunk) for chunk in group.get(_COLUMNS, ())]
            for group in node.get(_ROW_GROUPS, ())
        ]
    except (struct.error, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DataFileUnreadableError(f"cannot read a Parquet footer: {error!r}") from error


def _null_count(chunk: Mapping[int, Any]) -> int | None:
    found = chunk.get(_META_DATA, {}).get(_STATISTICS, {}).get(_NULL_COUNT)
    return found if isinstance(found, int) else None


class _ThriftReader:
    """Reads the values of Thrift's compact protocol in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._readers: dict[int, Callable[[], Any]] = {
            1: lambda: True,
            2: lambda: False,
            3: self._byte,
            4: self._integer,
            5: self._integer,
            6: self._integer,
            7: self._double,
            8: self._bytes,
            9: self._list,
            10: self._list,
            12: self.struct,
        }

    def struct(self) -> dict[int, Any]:
        """The fields of a struct by number."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._readers[head & 15]()
        return fields

    def _byte(self) -> int:
        found = self._data[self._position]
        self._position += 1
        return found

    def _varint(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 0x80:
            found |= (byte & 0x7F) << shift
            shift += 7
        return found | byte << shift

    def _integer(self) -> int:
        zigzag = self._varint()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def _double(self) -> float:
        self._position += 8
        found: float = struct.unpack("<d", self._data[self._position - 8 : self._position])[0]
        return found

    def _bytes(self) -> bytes:
        length = self._varint()
        self._position += length
        return self._data[self._position - length : self._position]

    def _list(self) -> list[Any]:
        head = self._byte()
        length = self._varint() if head >> 4 == 15 else head >> 4
        kind = head & 15
        # In a list a boolean is a byte of its own.
        read = self._byte if kind in {1, 2} else self._readers[kind]
        return [read() for _ in range(length)]
