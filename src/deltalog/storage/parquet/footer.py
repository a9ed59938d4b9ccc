"""Finding the Parquet footer of a file, and parsing the facts about column chunks in it.

pyarrow (26) crashes the process if a column chunk with damaged bounds or sizes is requested
(`row_group(n).column(n)`), or if a damaged footer is written again. To avoid this, this module
parses the few required fields from the footer's bytes.

Protocol: none; Apache Parquet's `parquet.thrift`
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa

from deltalog.errors import DataFileUnreadableError, ObjectNotFoundError, StorageError
from deltalog.storage.parquet import thrift
from deltalog.storage.store import ByteRange, Store, fetches_whole

_TAIL_BYTES: Final = 64 * 1024
# The maximum size of a file that is fetched whole. The transfer takes about 5 ms, but another
# request takes 25 ms.
_SMALL_FILE_BYTES: Final = 512 * 1024
_SMALL_BYTES: Final = 32 * 1024
_LOCAL_TAIL_BYTES: Final = 8 * 1024
_MAGIC: Final = frozenset({b"PAR1", b"PARE"})
# The numbers of fields of Parquet's Thrift structs.
_ROW_GROUPS, _COLUMN_ORDERS = 4, 7
_COLUMNS = 1
_META_DATA = 3
_OFFSET_INDEX, _OFFSET_INDEX_BYTES, _COLUMN_INDEX, _COLUMN_INDEX_BYTES = 4, 5, 6, 7
_ENCRYPTION = 8
_STARTS_AT = -1  # not in Thrift: the position of the struct in the footer
_CODEC, _UNCOMPRESSED_SIZE, _COMPRESSED_SIZE = 4, 6, 7
_DATA_PAGES, _DICTIONARY_PAGE, _STATISTICS = 9, 11, 12
_OLD_MAX, _OLD_MIN, _NULL_COUNT, _MAX_VALUE, _MIN_VALUE = 1, 2, 3, 5, 6
# Maps the fields to read of a struct to the fields to read of their inner structs.
_Fields = Mapping[int, "_Fields"]
_COLUMN_CHUNK: Final[_Fields] = {
    _META_DATA: {
        _CODEC: {},
        _UNCOMPRESSED_SIZE: {},
        _COMPRESSED_SIZE: {},
        _DATA_PAGES: {},
        _DICTIONARY_PAGE: {},
        _STATISTICS: {_OLD_MAX: {}, _OLD_MIN: {}, _NULL_COUNT: {}, _MAX_VALUE: {}, _MIN_VALUE: {}},
    },
    _OFFSET_INDEX: {},
    _OFFSET_INDEX_BYTES: {},
    _COLUMN_INDEX: {},
    _COLUMN_INDEX_BYTES: {},
    _ENCRYPTION: {},
}
_FOOTER: Final[_Fields] = {_ROW_GROUPS: {_COLUMNS: _COLUMN_CHUNK}, _COLUMN_ORDERS: {}}

NullCounts = list[list[int | None]]


class ColumnChunk(NamedTuple):
    """The facts about one column chunk in the footer; None for a missing fact.

    Attributes:
        null_count: the number of NULLs.
        min_value: the lower bound, encoded as the physical type.
        max_value: the upper bound, encoded as the physical type.
        is_ordered: whether the bounds follow the order of the logical type. If not, an old writer
            has compared the values as signed numbers.
        start: the position of the chunk's pages in the file.
        stored_bytes: the compressed length of the pages.
        offset_index: the range of the offset index (positions of pages); None if the column is
            encrypted.
        column_index: the range of the column index (bounds of pages).
        details_at: the position of the chunk's description in the footer.
        has_dictionary: whether the footer states the position of a dictionary page.
        codec: the number of the codec.
        uncompressed_bytes: the decompressed length of the pages, with their headers.
    """

    null_count: int | None = None
    min_value: bytes | None = None
    max_value: bytes | None = None
    is_ordered: bool = False
    start: int | None = None
    stored_bytes: int | None = None
    offset_index: ByteRange | None = None
    column_index: ByteRange | None = None
    details_at: int | None = None
    has_dictionary: bool = False
    codec: int | None = None
    uncompressed_bytes: int | None = None

    def byte_range(self, file_bytes: int) -> ByteRange:
        """Return the range of the chunk's pages in a file of this length.

        Raises:
            pa.ArrowInvalid: the range is not within the file.
        """
        start, length = self.start, self.stored_bytes
        if start is None or length is None or not 0 <= start <= file_bytes or length < 0:
            raise pa.ArrowInvalid(f"a column chunk of {length} bytes at {start}")
        # The length that parquet-mr stored before version 1.2.9 does not include the header of the
        # dictionary page, so add 100 bytes.
        return start, min(file_bytes, start + length + 100)


ColumnChunks = tuple[tuple[ColumnChunk, ...], ...]
"""The facts about all column chunks of a file: for each row group, one entry per leaf column."""
_UNKNOWN_CHUNK: Final = ColumnChunk()


class FileTail(NamedTuple):
    """The last bytes of a file, or a whole small file.

    Attributes:
        footer: the stored bytes of the footer.
        size_bytes: the file's true length; the length in the log may be wrong.
        start: the position of `data` in the file.
        data: all bytes from `start` to the end of the file.
    """

    footer: bytes
    size_bytes: int
    start: int
    data: bytes


def tail_bytes(store: Store, path: str, size_bytes: int, *, footer_only: bool = False) -> int:
    """Return the number of bytes that the first request of `fetch_tail` fetches."""
    is_small = size_bytes <= _SMALL_FILE_BYTES or fetches_whole(store, path)
    return size_bytes if is_small and not footer_only else min(size_bytes, _TAIL_BYTES)


def fetch_tail(store: Store, path: str, size_bytes: int, *, footer_only: bool = False) -> FileTail:
    """Fetch the end of a file, with its footer.

    Args:
        store: the store of the file.
        path: the decoded path.
        size_bytes: the file's length according to the log.
        footer_only: whether only the footer is needed. If not, a small file is fetched whole, which
            is faster than a second request.

    Raises:
        pa.ArrowInvalid: the file is not a Parquet file.

    Cost: one range request, or two for a large footer. If `size_bytes` is wrong, also one `stat`
        and the same requests again.
    """
    start = size_bytes - tail_bytes(store, path, size_bytes, footer_only=footer_only)
    try:
        (tail,) = store.read_ranges(path, [(start, size_bytes)])
    except ObjectNotFoundError:
        raise
    except StorageError:  # in S3 also if the range begins after the end of the file
        true_size = store.stat(path).size_bytes
        if true_size == size_bytes:
            raise
        return fetch_tail(store, path, true_size, footer_only=footer_only)
    if len(tail) != size_bytes - start or tail[-4:] not in _MAGIC:
        true_size = store.stat(path).size_bytes
        if true_size != size_bytes:
            return fetch_tail(store, path, true_size, footer_only=footer_only)
    if len(tail) < 12 or tail[-4:] not in _MAGIC:
        raise pa.ArrowInvalid("Parquet magic bytes not found at the end")
    footer_bytes = struct.unpack("<I", tail[-8:-4])[0] + 8
    if footer_bytes > size_bytes:
        raise pa.ArrowInvalid(f"a footer of {footer_bytes} bytes in a file of {size_bytes}")
    if footer_bytes > len(tail):
        (head,) = store.read_ranges(path, [(size_bytes - footer_bytes, start)])
        start, tail = size_bytes - footer_bytes, head + tail
    return FileTail(tail[-footer_bytes:-8], size_bytes, start, tail)


def local_footer(native: str) -> bytes | None:
    """Read the footer of a local file; None if it is not a Parquet file with a plain footer."""
    with open(native, "rb", buffering=0) as file:  # noqa: PTH123  # Path is slower
        size_bytes = file.seek(0, io.SEEK_END)
        start = max(0, size_bytes - _LOCAL_TAIL_BYTES)
        file.seek(start)
        tail = file.read(size_bytes - start)
        if len(tail) < 12 or tail[-4:] != b"PAR1":
            return None
        length = struct.unpack("<I", tail[-8:-4])[0]
        if length + 8 <= len(tail):
            return tail[-8 - length : -8]
        if length + 8 > size_bytes:
            return None
        file.seek(size_bytes - 8 - length)
        footer = file.read(length)
        return footer if len(footer) == length else None


def as_file(footer: bytes) -> bytes:
    """Return a Parquet file that contains only this footer, so that Arrow can read it."""
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def column_chunks(footer: bytes, leaves: Collection[int] | None = None) -> ColumnChunks:
    """Return the facts about the column chunks of a footer, by row group and leaf column.

    Args:
        footer: the stored bytes of a file's `FileMetaData`.
        leaves: the numbers of the wanted leaf columns; the result contains only their chunks. None
            means all columns.

    Raises:
        DataFileUnreadableError: the footer is damaged.

    Cost: some microseconds per column chunk. The results of small footers are cached.
    """
    read = _chunks_of_small if len(footer) <= _SMALL_BYTES else _chunks
    try:
        return read(footer, None if leaves is None else frozenset(leaves))
    except (struct.error, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DataFileUnreadableError(f"cannot read a Parquet footer: {error!r}") from error


def has_column_orders(footer: bytes) -> bool:
    """Whether a footer states the order of bounds; False for a damaged footer."""
    try:
        fields = _FooterReader(footer).struct({_COLUMN_ORDERS: {}})
    except (struct.error, LookupError, TypeError, AttributeError, RecursionError):
        return False
    return isinstance(fields.get(_COLUMN_ORDERS), list)


def _chunks(footer: bytes, leaves: frozenset[int] | None) -> ColumnChunks:
    node = _FooterReader(footer, leaves).struct(_FOOTER)
    is_ordered = isinstance(node.get(_COLUMN_ORDERS), list)
    return tuple(
        tuple(_chunk_of(chunk, is_ordered=is_ordered) for chunk in group.get(_COLUMNS, ()))
        for group in node.get(_ROW_GROUPS, ())
    )


_chunks_of_small = lru_cache(maxsize=256)(_chunks)


def _chunk_of(fields: Mapping[int, Any] | None, *, is_ordered: bool) -> ColumnChunk:
    if fields is None:
        return _UNKNOWN_CHUNK
    chunk = fields.get(_META_DATA, {})
    start, dictionary = chunk.get(_DATA_PAGES), chunk.get(_DICTIONARY_PAGE)
    # If the chunk has no dictionary, old writers store 0 or a wrong position.
    if dictionary is not None and start is not None and 0 < dictionary < start:
        start = dictionary
    found = chunk.get(_STATISTICS, {})
    count, low, high = found.get(_NULL_COUNT), found.get(_MIN_VALUE), found.get(_MAX_VALUE)
    if not is_ordered or not isinstance(low, bytes) or not isinstance(high, bytes):
        low, high = found.get(_OLD_MIN), found.get(_OLD_MAX)
        is_ordered = low is None and high is None  # without bounds, such as a chunk of NULLs
    stored = chunk.get(_COMPRESSED_SIZE)
    return ColumnChunk(
        null_count=_whole(count),
        min_value=low if isinstance(low, bytes) else None,
        max_value=high if isinstance(high, bytes) else None,
        is_ordered=is_ordered,
        start=_whole(start),
        stored_bytes=_whole(stored),
        offset_index=_range_of(fields, _OFFSET_INDEX, _OFFSET_INDEX_BYTES),
        column_index=_range_of(fields, _COLUMN_INDEX, _COLUMN_INDEX_BYTES),
        details_at=fields.get(_STARTS_AT),
        has_dictionary=isinstance(dictionary, int) and dictionary > 0,
        codec=_whole(chunk.get(_CODEC)),
        uncompressed_bytes=_whole(chunk.get(_UNCOMPRESSED_SIZE)),
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _range_of(fields: Mapping[int, Any], offset: int, length: int) -> ByteRange | None:
    """Return the range of an index; None if the index is missing or the column is encrypted."""
    start, size = fields.get(offset), fields.get(length)
    if not isinstance(start, int) or not isinstance(size, int) or _ENCRYPTION in fields:
        return None
    return (start, start + size) if start > 0 and size > 0 else None


class _FooterReader:
    """Reads the fields in `_FOOTER` from a struct in Thrift's compact protocol, and skips others.

    Args:
        data: the bytes of the footer.
        leaves: the numbers of the leaf columns to read; None means all columns.
    """

    def __init__(self, data: bytes, leaves: Collection[int] | None = None) -> None:
        self._data = data
        self._leaves = leaves
        self._position = 0

    def struct(self, wanted: _Fields) -> dict[int, Any]:
        """Return the wanted fields that exist, by number."""
        data = self._data
        fields: dict[int, Any] = {}
        number = 0
        while head := data[self._position]:
            self._position += 1
            number = number + (head >> 4) if head >> 4 else self._integer()
            if number in wanted:
                fields[number] = self._value(head & 15, wanted[number])
            else:
                self._position = thrift.pass_value(data, self._position, head & 15)
        self._position += 1
        return fields

    def _value(self, kind: int, wanted: _Fields) -> Any:
        """Return a number, bytes, a struct or a list; None for other kinds."""
        if kind in thrift.INTEGERS:
            return self._integer()
        if kind == thrift.STRUCT:
            return self.struct(wanted)
        if kind in thrift.LISTS:
            return self._list(wanted)
        start = self._position
        self._position = thrift.pass_value(self._data, start, kind)
        if kind != thrift.BINARY:
            return None
        while self._data[start] & 0x80:  # skip the length of the bytes
            start += 1
        return self._data[start + 1 : self._position]

    def _list(self, wanted: _Fields) -> list[dict[int, Any] | None]:
        """Return the structs of a list, with None for column chunks that are not wanted."""
        head = self._data[self._position]
        self._position += 1
        if head & 15 != thrift.STRUCT:
            raise TypeError(f"expected a list of structs, found elements of type {head & 15}")
        length = head >> 4
        if length == 15:
            length, self._position = thrift.varint(self._data, self._position)
        leaves = self._leaves if wanted is _COLUMN_CHUNK else None
        structs: list[dict[int, Any] | None] = []
        for place in range(length):
            if leaves is None or place in leaves:
                start = self._position
                fields = self.struct(wanted)
                fields[_STARTS_AT] = start
                structs.append(fields)
            else:
                self._position = thrift.pass_struct(self._data, self._position)
                structs.append(None)
        return structs

    def _integer(self) -> int:
        zigzag, self._position = thrift.varint(self._data, self._position)
        return (zigzag >> 1) ^ -(zigzag & 1)
