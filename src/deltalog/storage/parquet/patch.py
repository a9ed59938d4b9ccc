"""Row groups with some replaced pages, for another file.

If a column chunk has one value per row and no dictionary, its unchanged pages are copied, and new
pages replace the others. Any other column chunk is encoded completely. Pages, dictionaries, bounds
and Bloom filters contain no value of a removed row.

Protocol: none; Apache Parquet's `parquet.thrift`
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa

from deltalog._util.kernels import compute
from deltalog.errors import InternalError
from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.byte_sources import EncodedBytes
from deltalog.storage.parquet.footer import ColumnChunk, column_chunks
from deltalog.storage.parquet.groups import (
    StoredChunk,
    StoredFooter,
    StoredGroup,
    extra_range,
    moved_group,
    put_spot,
    read_stored,
)
from deltalog.storage.parquet.pages import (
    DICTIONARY_ENCODINGS,
    parse_column_index,
    parse_offset_index,
)
from deltalog.storage.parquet.parts import decode_bounds
from deltalog.storage.parquet.sink import encode_parquet
from deltalog.storage.parquet.splice import GroupsToCopy, flat_pages, moved_indexes
from deltalog.storage.parquet.thrift import Struct, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage.parquet.groups import ByteSource
    from deltalog.storage.parquet.pages import Pages

_FIRST_BYTE: Final = 4  # the first position after the magic bytes
# Fields of RowGroup.
_PLAIN_GROUP_BYTES, _GROUP_ROWS = 2, 3
# Fields of ColumnChunk.
_CHUNK_START, _META = 2, 3
# Fields of ColumnMetaData.
_ENCODINGS, _NUM_VALUES, _PLAIN_BYTES, _STORED_BYTES, _DATA_AT, _STATISTICS = 2, 5, 6, 7, 9, 12
# The fields of ColumnMetaData to copy: type, encodings, path, codec, key-value metadata.
_KEPT: Final = frozenset({1, 2, 3, 4, 8})
# Fields of Statistics.
_NULL_COUNT, _MAX, _MIN, _MAX_IS_EXACT, _MIN_IS_EXACT = 3, 5, 6, 7, 8
# Fields of ColumnIndex.
_NULL_PAGES, _LOWS, _HIGHS, _ORDER, _NULL_COUNTS = 1, 2, 3, 4, 5
_UNORDERED: Final = 0


class BytePiece(NamedTuple):
    """A range of bytes of a source."""

    source: ByteSource
    start: int
    end: int


class Run(NamedTuple):
    """Consecutive pages that are replaced.

    Attributes:
        first: the number of the first page.
        end: the number after the last page.
        new: the new pages; None means that the old pages are removed.
    """

    first: int
    end: int
    new: ColumnPages | None


class ChunkBounds(NamedTuple):
    """The smallest and the greatest value of a column chunk.

    Attributes:
        low: the stored bytes of the smallest value.
        high: the stored bytes of the greatest value.
        values: the decoded smallest and greatest value.
    """

    low: bytes
    high: bytes
    values: pa.Array[Any]


class PatchedLeaf(Protocol):
    """A column chunk that is written to another file."""

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        ...

    def pieces(self) -> Sequence[BytePiece]:
        """Return the bytes of the pages, in order."""
        ...

    def placed(self, start: int) -> tuple[Struct, bytes | None, bytes | None]:
        """Return fields, column index and offset index, for pages that begin at `start`."""
        ...


@dataclass(frozen=True, slots=True)
class EncodedLeaf:
    """A column chunk that was encoded completely.

    Args:
        groups: the encoded file, which has one row group.
        number: the number of the column.
    """

    groups: GroupsToCopy
    number: int

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return self.groups.num_rows

    def pieces(self) -> Sequence[BytePiece]:
        """Return the bytes of all pages of the chunk."""
        return [BytePiece(self.groups.source, self._chunk.start, self._chunk.end)]

    def placed(self, start: int) -> tuple[Struct, bytes | None, bytes | None]:
        """See `PatchedLeaf.placed`."""
        chunk = self._chunk
        _, (column,) = moved_group(StoredGroup({}, 0, (chunk,)), [start], has_orders=True)
        found = moved_indexes(chunk, None, self.groups.source, start - chunk.start)
        return column, found.bounds, found.offsets

    @property
    def _chunk(self) -> StoredChunk:
        return self.groups.footer.groups[0].chunks[self.number]


class PagedLeaf:
    """A column chunk with some replaced pages.

    Args:
        old: the old column chunk.
        runs: the pages to replace, ascending.
        num_nulls_gone: the number of NULLs on the pages to replace.
        physical_type: Parquet's name of the physical type.
        arrow_type: the Arrow type of the values.

    Attributes:
        num_rows: the new number of rows.
        null_count: the new number of NULLs; None if the old footer lacks the number.
        bounds: the bounds of the chunk, derived from the bounds of its pages; None if unknown.
        arrow_type: the Arrow type of the values.
        is_proven: whether checksums prove that the old pages are undamaged.
    """

    def __init__(
        self,
        old: ColumnPages,
        runs: Sequence[Run],
        num_nulls_gone: int,
        *,
        physical_type: str,
        arrow_type: pa.DataType,
    ) -> None:
        self._old = old
        self.arrow_type: pa.DataType = arrow_type
        self.is_proven: bool = old.is_proven
        # Each part is a range of pages: column chunk, number of the first page, number after the
        # last page.
        parts: list[tuple[ColumnPages, int, int]] = []
        position = 0
        for first, end, new in runs:
            parts.append((old, position, first))
            if new is not None:
                parts.append((new, 0, len(new.plain_bytes)))
            position = end
        parts.append((old, position, len(old.plain_bytes)))
        self._parts = [part for part in parts if part[1] < part[2]]
        counts = [
            after - before
            for column, first, end in self._parts
            for before, after in pairwise(column.pages.rows[first : end + 1])
        ]
        self.num_rows: int = sum(counts)
        count = old.chunk.null_count
        left = -1 if count is None else count - num_nulls_gone
        self.null_count: int | None = left if 0 <= left <= self.num_rows else None
        self._page_bounds = self._known_bounds(counts)
        self.bounds: ChunkBounds | None = self._bounds(physical_type, arrow_type)

    def _known_bounds(self, counts: Sequence[int]) -> list[ColumnChunk] | None:
        """Return the facts about the values of each page; None if they are missing for a page."""
        found: list[ColumnChunk] = []
        for column, first, end in self._parts:
            if column.bounds is None:
                return None
            found += column.bounds[first:end]
        for one, count in zip(found, counts, strict=True):
            has_none = one.min_value is None or one.max_value is None
            if not one.is_ordered or (has_none and one.null_count != count):
                return None
        return found

    def _bounds(self, physical_type: str, arrow_type: pa.DataType) -> ChunkBounds | None:
        stored = [(one.min_value, one.max_value) for one in self._page_bounds or ()]
        lows = [low for low, high in stored if low is not None and high is not None]
        highs = [high for low, high in stored if low is not None and high is not None]
        if not lows:
            return None
        found = decode_bounds(
            [*lows, *highs], are_ordered=True, physical_type=physical_type, arrow_type=arrow_type
        )
        if found is None or found.null_count:
            return None
        smallest, greatest = found.slice(0, len(lows)), found.slice(len(lows))
        low = compute.index(smallest, compute.min(smallest)).as_py()
        high = compute.index(greatest, compute.max(greatest)).as_py()
        values: pa.Array[Any] = pa.concat_arrays([smallest.slice(low, 1), greatest.slice(high, 1)])
        return ChunkBounds(lows[low], highs[high], values)

    def pieces(self) -> Sequence[BytePiece]:
        """Return the bytes of the old and new pages, in order."""
        return [
            BytePiece(column.source, column.pages.offsets[first], column.pages.offsets[end])
            for column, first, end in self._parts
        ]

    def placed(self, start: int) -> tuple[Struct, bytes | None, bytes | None]:
        """See `PatchedLeaf.placed`."""
        chunk, parts = self._old.chunk, self._parts
        plain = sum(sum(column.plain_bytes[first:end]) for column, first, end in parts)
        stored = sum(piece.end - piece.start for piece in self.pieces())
        meta = {key: value for key, value in chunk.meta.items() if key in _KEPT}
        meta[_ENCODINGS] = self._encodings()
        numbers = {
            _NUM_VALUES: self.num_rows,
            _PLAIN_BYTES: plain,
            _STORED_BYTES: stored,
            _DATA_AT: start,
        }
        meta.update({key: Value(thrift.INT64, number) for key, number in numbers.items()})
        if statistics := self._statistics():
            meta[_STATISTICS] = Value(thrift.STRUCT, statistics)
        column = {_CHUNK_START: Value(thrift.INT64, 0), _META: Value(thrift.STRUCT, meta)}
        return column, self._column_index(), self._offset_index(start)

    def _encodings(self) -> Value:
        found: dict[int, None] = {}
        for column, _, _ in self._parts:
            found.update(dict.fromkeys(column.chunk.meta[_ENCODINGS].value.values))
        return Value(thrift.LIST, thrift.Elements(thrift.INT32, list(found)))

    def _statistics(self) -> Struct:
        fields: Struct = {}
        if self.null_count is not None:
            fields[_NULL_COUNT] = Value(thrift.INT64, self.null_count)
        if self.bounds is not None:
            fields[_MAX] = Value(thrift.BINARY, self.bounds.high)
            fields[_MIN] = Value(thrift.BINARY, self.bounds.low)
            exact = {_MAX_IS_EXACT, _MIN_IS_EXACT} & self._old.chunk.statistics.keys()
            fields.update(dict.fromkeys(exact, Value(thrift.TRUE, True)))  # noqa: FBT003
        return fields

    def _column_index(self) -> bytes | None:
        """Return the column index; None if the bounds of a page are unknown."""
        pages = self._page_bounds
        if pages is None or self.bounds is None:
            return None
        fields: Struct = {
            _NULL_PAGES: _list(thrift.TRUE, [one.min_value is None for one in pages]),
            _LOWS: _list(thrift.BINARY, [one.min_value or b"" for one in pages]),
            _HIGHS: _list(thrift.BINARY, [one.max_value or b"" for one in pages]),
            _ORDER: Value(thrift.INT32, _UNORDERED),
        }
        counts = [one.null_count for one in pages]
        if None not in counts:
            fields[_NULL_COUNTS] = _list(thrift.INT64, counts)
        return thrift.write_struct(fields)

    def _offset_index(self, start: int) -> bytes:
        places: list[Struct] = []
        row = 0
        for column, first, end in self._parts:
            offsets, rows = column.pages.offsets, column.pages.rows
            for number in range(first, end):
                size = offsets[number + 1] - offsets[number]
                places.append(
                    {
                        1: Value(thrift.INT64, start),
                        2: Value(thrift.INT32, size),
                        3: Value(thrift.INT64, row),
                    }
                )
                start += size
                row += rows[number + 1] - rows[number]
        return thrift.write_struct({1: _list(thrift.STRUCT, places)})


def patched_group(
    footer: StoredFooter, group: StoredGroup, leaves: Sequence[PatchedLeaf], num_rows: int
) -> GroupsToCopy:
    """Return a row group that consists of the given column chunks.

    Args:
        footer: the footer of the old file.
        group: the old row group.
        leaves: the column chunks, in the order of the schema.
        num_rows: the new number of rows.

    Raises:
        InternalError: a column chunk does not have `num_rows` rows.
    """
    if any(leaf.num_rows != num_rows for leaf in leaves):
        found = [leaf.num_rows for leaf in leaves]
        raise InternalError(f"columns of {found} rows in a row group of {num_rows}")
    source = PatchedBytes()
    source.add_bytes(bytes(_FIRST_BYTE))
    chunks: list[StoredChunk] = []
    later: list[tuple[Struct, str, bytes]] = []
    for leaf in leaves:
        start = source.size_bytes
        column, bounds, offsets = leaf.placed(start)
        for piece in leaf.pieces():
            source.add(piece)
        chunks.append(StoredChunk(column, start, source.size_bytes, _num_values(column)))
        indexes = (("bounds", bounds), ("offsets", offsets))
        later += [(column, place, data) for place, data in indexes if data is not None]
    for column, place, data in later:
        put_spot(column, place, source.size_bytes, len(data))
        source.add_bytes(data)
    plain = sum(thrift.natural(chunk.meta, _PLAIN_BYTES) for chunk in chunks)
    fields = {
        **group.fields,
        _PLAIN_GROUP_BYTES: Value(thrift.INT64, plain),
        _GROUP_ROWS: Value(thrift.INT64, num_rows),
    }
    patched = StoredFooter(
        fields=footer.fields,
        groups=(StoredGroup(fields, num_rows, tuple(chunks)),),
        schema=footer.schema,
        created_by=footer.created_by,
        has_orders=footer.has_orders,
    )
    return GroupsToCopy(source, patched, (0,), (None,))


def _num_values(column: Struct) -> int:
    """Return the number of values of a column chunk."""
    return thrift.natural(thrift.struct(column, _META), _NUM_VALUES)


def _list(kind: int, values: list[Any]) -> Value:
    return Value(thrift.LIST, thrift.Elements(kind, values))


class PatchedBytes:
    """A `ByteSource` that concatenates byte ranges of several sources."""

    def __init__(self) -> None:
        self._pieces: list[BytePiece] = []
        self._starts: list[int] = []
        self.size_bytes: int = 0

    def add(self, piece: BytePiece) -> None:
        """Append a byte range of a source."""
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.source is piece.source and last.end == piece.start:
            self._pieces[-1] = last._replace(end=piece.end)
        else:
            self._starts.append(self.size_bytes)
            self._pieces.append(piece)
        self.size_bytes += piece.end - piece.start

    def add_bytes(self, data: bytes) -> None:
        """Append bytes."""
        self.add(BytePiece(EncodedBytes(pa.py_buffer(data)), 0, len(data)))

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`."""
        return b"".join(one.source.read(one.start, one.end) for one in self._between(start, end))

    def copy(self, start: int, end: int, out: Any) -> None:
        """Append the bytes from `start` to `end` to a file that is open for writing."""
        for one in self._between(start, end):
            one.source.copy(one.start, one.end, out)

    def _between(self, start: int, end: int) -> list[BytePiece]:
        found: list[BytePiece] = []
        number = max(0, bisect_right(self._starts, start) - 1)
        for begin, piece in zip(self._starts[number:], self._pieces[number:], strict=True):
            if begin >= end:
                break
            shift = piece.start - begin
            found.append(
                BytePiece(
                    piece.source, max(start + shift, piece.start), min(end + shift, piece.end)
                )
            )
        return found


# --- Finding pages that can be replaced, and encoding rows as such pages


_ENCODINGS_PARQUET_COLUMN_PAGES: Final = 2  # field of ColumnMetaData


class ColumnPages(NamedTuple):
    """A column chunk whose pages can be replaced.

    Attributes:
        source: the bytes of the file.
        chunk: the stored column chunk.
        pages: the positions and rows of its pages.
        plain_bytes: the uncompressed size of each page.
        bounds: the facts about the values of each page; None if unknown.
        is_proven: whether checksums prove that the pages are undamaged.
    """

    source: ByteSource
    chunk: StoredChunk
    pages: Pages
    plain_bytes: Sequence[int]
    bounds: Sequence[ColumnChunk] | None
    is_proven: bool

    @property
    def num_rows(self) -> int:
        """Return the number of rows of the row group."""
        return self.pages.rows[-1]


def column_pages(
    source: ByteSource,
    chunk: StoredChunk,
    known: ColumnChunk,
    num_rows: int,
    *,
    has_order: bool,
    fixed_bytes: int | None,
    may_be_cut: bool,
) -> ColumnPages | None:
    """Return the pages of a column chunk; None if pages of this chunk cannot be replaced.

    Args:
        source: the bytes of the file, which include its pages and indexes.
        chunk: the chunk of a column with one value for each row.
        known: the facts about this chunk from `footer.column_chunks`.
        num_rows: the number of rows of the row group.
        has_order: whether the footer states the order of bounds.
        fixed_bytes: the length of every value, if it is fixed.
        may_be_cut: whether the writer may have truncated long bounds.

    Raises:
        DataFileUnreadableError: the pages do not match the positions or counts in the footer.

    Cost: see `check_pages`.
    """
    place = extra_range(chunk, "offsets")
    if has_dictionary(chunk) or place is None or place[1] > source.size_bytes:
        return None
    pages = parse_offset_index(source.read(*place), known, num_rows)
    found, is_proven = flat_pages(chunk, num_rows, source)
    rows = tuple(accumulate((one.num_values for one in found), initial=0))
    offsets = (*(one.page.start for one in found), chunk.end)
    # If the row numbers in the index were wrong, the patched row group would combine values of
    # different rows.
    if pages is None or rows != pages.rows or offsets != pages.offsets or offsets[0] != chunk.start:
        return None
    bounds, is_usable = None, not chunk.is_floating and not may_be_cut
    place = extra_range(chunk, "bounds")
    if is_usable and place is not None and place[1] <= source.size_bytes:
        bounds = parse_column_index(
            source.read(*place), pages, has_order=has_order, fixed_bytes=fixed_bytes
        )
    plain_bytes = [one.plain_bytes for one in found]
    return ColumnPages(source, chunk, pages, plain_bytes, bounds, is_proven)


def encoded_pages(rows: pa.Table, **options: Any) -> list[ColumnPages | None]:
    """Encode some rows; return the pages of each column, or None if they cannot replace pages.

    Args:
        rows: at least one row; each column must have one value per row.
        options: the options of `encode_parquet`.
    """
    options["use_dictionary"] = False
    source = EncodedBytes(encode_parquet(rows, row_group_size=rows.num_rows, **options))
    footer = read_stored(source.footer(), source.size_bytes)
    if footer is None:
        raise ValueError("a file of this process is encrypted")
    (group,), (known,) = footer.groups, column_chunks(source.footer())
    return [
        column_pages(
            source,
            chunk,
            one,
            rows.num_rows,
            has_order=footer.has_orders,
            fixed_bytes=element.length,
            may_be_cut=False,
        )
        for chunk, one, element in zip(group.chunks, known, footer.schema, strict=True)
    ]


def has_dictionary(chunk: StoredChunk) -> bool:
    """Whether a column chunk may have a dictionary."""
    found = chunk.meta.get(_ENCODINGS_PARQUET_COLUMN_PAGES)
    if found is None or found.kind not in thrift.LISTS or found.value.kind not in thrift.INTEGERS:
        return True
    return not DICTIONARY_ENCODINGS.isdisjoint(found.value.values)
