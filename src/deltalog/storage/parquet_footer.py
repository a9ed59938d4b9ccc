"""The bytes of a Parquet footer: where they are, and what they say of column chunks.

pyarrow (26) ends the process when it is asked for a column chunk (`row_group(n).column(n)`) whose
bounds or sizes are damaged, and when a damaged footer is written out again. A damaged file must not
end the process, so column chunks are read from the footer's bytes here: a tree in Thrift's compact
protocol, of which a few numbered fields matter.

Protocol: none; Apache Parquet's `parquet.thrift`, Apache Thrift's compact protocol
"""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog.errors import DataFileUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from deltalog.storage.store import ByteRange, Store


_TAIL_BYTES: Final = 64 * 1024
_MAGIC: Final = frozenset({b"PAR1", b"PARE"})
# Numbers of fields, struct by struct.
_ROW_GROUPS, _COLUMN_ORDERS = 4, 7
_COLUMNS = 1
_META_DATA = 3
_COMPRESSED_SIZE, _DATA_PAGES, _DICTIONARY_PAGE, _STATISTICS = 7, 9, 11, 12
_OLD_MAX, _OLD_MIN, _NULL_COUNT, _MAX_VALUE, _MIN_VALUE = 1, 2, 3, 5, 6

NullCounts = list[list[int | None]]


class ColumnChunk(NamedTuple):
    """What a footer says of one column chunk; None for what it does not say.

    Attributes:
        null_count: how many values are NULL.
        min_value: the lower bound, as the physical type stores it.
        max_value: the upper bound.
        is_ordered: whether the bounds follow the order of the logical type. Otherwise they are of
            an old writer, whose order is that of signed numbers.
        start: where its pages begin in the file.
        stored_bytes: how long they are, compressed.
    """

    null_count: int | None = None
    min_value: bytes | None = None
    max_value: bytes | None = None
    is_ordered: bool = False
    start: int | None = None
    stored_bytes: int | None = None

    def byte_range(self, file_bytes: int) -> ByteRange:
        """Where its pages are, in a file of this length.

        Raises:
            pa.ArrowInvalid: they cannot be in the file.
        """
        start, length = self.start, self.stored_bytes
        if start is None or length is None or not 0 <= start <= file_bytes or length < 0:
            raise pa.ArrowInvalid(f"a column chunk of {length} bytes at {start}")
        # parquet-mr before 1.2.9 left the header of the dictionary page out of the length.
        return start, min(file_bytes, start + length + 100)


_UNKNOWN_CHUNK: Final = ColumnChunk()


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


def column_chunks(footer: bytes, leaves: Collection[int] | None = None) -> list[list[ColumnChunk]]:
    """What a footer says of its column chunks, by row group and leaf column.

    Args:
        footer: a file's `FileMetaData` as it is stored.
        leaves: numbers of the columns that are wanted; the others are passed over quickly, and
            nothing is known of them in the answer. None is all.

    Raises:
        DataFileUnreadableError: the footer is damaged.

    Cost: some microseconds per column chunk.
    """
    try:
        reader = _ThriftReader(footer, leaves)
        node = reader.struct(_ROW_GROUPS, reader.row_groups)
        is_ordered = isinstance(node.get(_COLUMN_ORDERS), list)
        return [
            [_chunk_of(chunk, is_ordered=is_ordered) for chunk in group.get(_COLUMNS, ())]
            for group in node.get(_ROW_GROUPS, ())
        ]
    except (struct.error, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DataFileUnreadableError(f"cannot read a Parquet footer: {error!r}") from error


def _chunk_of(fields: Mapping[int, Any] | None, *, is_ordered: bool) -> ColumnChunk:
    if fields is None:
        return _UNKNOWN_CHUNK
    chunk = fields.get(_META_DATA, {})
    start, dictionary = chunk.get(_DATA_PAGES), chunk.get(_DICTIONARY_PAGE)
    # Old writers put 0 or a wrong number there when there is no dictionary.
    if dictionary is not None and start is not None and 0 < dictionary < start:
        start = dictionary
    found = chunk.get(_STATISTICS, {})
    count, low, high = found.get(_NULL_COUNT), found.get(_MIN_VALUE), found.get(_MAX_VALUE)
    if not is_ordered or not isinstance(low, bytes) or not isinstance(high, bytes):
        low, high = found.get(_OLD_MIN), found.get(_OLD_MAX)
        is_ordered = low is None and high is None  # a chunk of NULLs has no bounds
    stored = chunk.get(_COMPRESSED_SIZE)
    return ColumnChunk(
        null_count=count if isinstance(count, int) else None,
        min_value=low if isinstance(low, bytes) else None,
        max_value=high if isinstance(high, bytes) else None,
        is_ordered=is_ordered,
        start=start if isinstance(start, int) else None,
        stored_bytes=stored if isinstance(stored, int) else None,
    )


_VARINTS: Final = frozenset({4, 5, 6})
_BINARY, _LISTS, _STRUCT = 8, frozenset({9, 10}), 12


class _ThriftReader:
    """Reads the values of Thrift's compact protocol in order.

    Args:
        data: of the footer.
        leaves: columns whose chunks are read; the others are passed over. None is all.
    """

    def __init__(self, data: bytes, leaves: Collection[int] | None = None) -> None:
        self._data = data
        self._leaves = leaves
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

    def struct(
        self, own_number: int = 0, read_own: Callable[[], Any] | None = None
    ) -> dict[int, Any]:
        """The fields of a struct by number, one of which may have a reader of its own."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._integer()
            is_own = number == own_number and head & 15 in _LISTS and read_own is not None
            fields[number] = (read_own if is_own else self._readers[head & 15])()  # type: ignore[misc]  # there is one
        return fields

    def row_groups(self) -> list[dict[int, Any]]:
        """The row groups, in which chunks of columns that are not wanted are None."""
        return [self.struct(_COLUMNS, self._chunks) for _ in range(self._structs())]

    def _chunks(self) -> list[dict[int, Any] | None]:
        wanted = self._leaves
        chunks: list[dict[int, Any] | None] = []
        for leaf in range(self._structs()):
            if wanted is None or leaf in wanted:
                chunks.append(self.struct())
            else:
                self._pass_struct()
                chunks.append(None)
        return chunks

    def _structs(self) -> int:
        """The length of a list of structs."""
        head = self._byte()
        if head & 15 != _STRUCT:
            raise TypeError(f"expected a list of structs, found elements of type {head & 15}")
        return self._varint() if head >> 4 == 15 else head >> 4

    def _pass_struct(self) -> None:
        data, byte = self._data, self._byte
        while (head := byte()) != 0:
            if not head >> 4:
                self._varint()
            kind = head & 15
            if kind in _VARINTS:
                while data[self._position] & 0x80:
                    self._position += 1
                self._position += 1
            elif kind == _STRUCT:
                self._pass_struct()
            elif kind == _BINARY:
                length = self._varint()
                self._position += length
            else:
                self._readers[kind]()

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
