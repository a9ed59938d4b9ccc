"""The pages of a Parquet column chunk: their positions, rows and bounds.

A file's offset index contains the positions of pages; its column index contains the bounds of their
values. Neither is trusted: an index that contradicts itself or the footer is ignored, and page
headers are compared with the index before pages are decoded.

Protocol: none; Apache Parquet's `parquet.thrift` (OffsetIndex, ColumnIndex, PageHeader)
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from itertools import pairwise
from operator import add, lt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.footer import ColumnChunk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.storage.store import ByteRange

RowRange = tuple[int, int]
"""The number of the first row of a range, and the number after its last row."""
_DAMAGE: Final = (struct.error, LookupError, TypeError, ValueError, AttributeError, RecursionError)
# The field ids in Parquet's Thrift structs.
_LOCATIONS = 1
_OFFSET, _PAGE_BYTES, _FIRST_ROW = 1, 2, 3
_LOCATION_KINDS: Final = (thrift.INT64, thrift.INT32, thrift.INT64)
_NULL_PAGES, _MIN_VALUES, _MAX_VALUES, _NULL_COUNTS = 1, 2, 3, 5
_PAGE_TYPE, _UNCOMPRESSED_BYTES, _COMPRESSED_BYTES = 1, 2, 3
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 5, 7, 8
_NUM_VALUES, _ENCODING, _LEVEL_ENCODING = 1, 2, 3
_NUM_NULLS, _NUM_ROWS, _ENCODING_V2, _DEFINITION_BYTES, _REPETITION_BYTES = 2, 3, 4, 5, 6
_IS_COMPRESSED = 7
_RLE: Final = 3
_DATA_TYPE, _DICTIONARY_TYPE, _DATA_TYPE_V2 = 0, 2, 3
DICTIONARY_ENCODINGS: Final = frozenset({2, 8})
"""The encodings of data pages with dictionary values; old writers use 2."""


class DamagedPageError(ValueError):
    """A page does not match the index; the column chunk must be read without the index."""


class Pages(NamedTuple):
    """The contiguous data pages of a column chunk.

    Args:
        start: the position of the chunk in the file. If there is a dictionary page, it is before
            the data pages.
        offsets: the position of each data page, followed by the end of the last page.
        rows: for each page, the number of its first row in the row group; then the number of rows
            of the row group.
    """

    start: int
    offsets: tuple[int, ...]
    rows: tuple[int, ...]

    @property
    def end(self) -> int:
        """Return the end of the chunk."""
        return self.offsets[-1]

    def around(self, rows: RowRange) -> tuple[int, int]:
        """Return the number of the first page with any of these rows, and after the last page."""
        return bisect_right(self.rows, rows[0]) - 1, bisect_left(self.rows, rows[1])


class Part(NamedTuple):
    """The part of a column chunk that is read.

    Args:
        leaf: the number of the leaf column.
        chunk: the description of the chunk in the footer.
        pages: the positions of its pages; None means that all bytes are read.
        rows: the row numbers (within the row group) that are read, as ranges that consist of whole
            pages.
        is_repeated: whether a row may have any number of values.
    """

    leaf: int
    chunk: ColumnChunk
    pages: Pages | None
    rows: Sequence[RowRange]
    is_repeated: bool

    def spans(self) -> list[tuple[int, int]]:
        """Return, for each range of rows, its first page and the page after its last page."""
        return [] if self.pages is None else [self.pages.around(rows) for rows in self.rows]

    def ranges(self) -> list[ByteRange]:
        """Return the byte ranges to read."""
        pages = self.pages
        if pages is None:
            start, length = self.chunk.start or 0, self.chunk.stored_bytes or 0
            return [(start, start + max(0, length))] if start > 0 else [(0, 0)]
        found = [(pages.offsets[first], pages.offsets[last]) for first, last in self.spans()]
        if pages.start < pages.offsets[0]:
            found.insert(0, (pages.start, pages.offsets[0]))
        return found


class GroupPart(NamedTuple):
    """The part of a row group that is read.

    Args:
        first_row: the number of the row group's first row in the file.
        columns: for each top-level column, the parts of its leaves, which all have the same rows.
    """

    first_row: int
    columns: Sequence[Sequence[Part]]


class PageHeader(NamedTuple):
    """The header of a page.

    Args:
        has_dictionary: whether the values are indices of dictionary entries.
        num_values: the number of values, including NULLs.
        uncompressed_bytes: the decompressed size of the page, including its header.
        body: the end of the header in the bytes that were parsed.
        end: the end of the page in these bytes.
    """

    has_dictionary: bool
    num_values: int
    uncompressed_bytes: int
    body: int
    end: int


class DataPage(NamedTuple):
    """A data page before it is decompressed.

    Args:
        body: the stored bytes after the header.
        num_values: the number of values, including NULLs.
        uncompressed_bytes: the decompressed size of the body.
        encoding: the number of the values' encoding.
        level_bytes: the length of the levels, which precede the compressed values; None if the
            levels are compressed with the values (version 1).
        level_encoding: the number of the encoding of the definition levels.
        num_nulls: the number of NULLs; 0 if the header does not contain it (version 1).
        is_compressed: whether the values are compressed, unless the chunk has no codec.
    """

    body: bytes
    num_values: int
    uncompressed_bytes: int
    encoding: int
    level_bytes: int | None
    level_encoding: int
    num_nulls: int
    is_compressed: bool


def parse_offset_index(data: bytes, chunk: ColumnChunk, num_rows: int) -> Pages | None:
    """Return the pages of a column chunk, or None if the index is invalid.

    Args:
        data: the stored index.
        chunk: the footer's facts about the chunk. Dictionary and pages must fill the chunk exactly.
        num_rows: the number of rows of the row group.
    """
    start, length = chunk.start, chunk.stored_bytes
    if start is None or length is None:
        return None
    try:
        starts, sizes, first_rows = _page_locations(data)
        offsets = (*starts, starts[-1] + sizes[-1])
        rows = (*first_rows, num_rows)
        follow = [*map(add, starts, sizes)] == [*offsets[1:]]
        ascends = all(map(lt, rows, rows[1:]))
        fits = 0 < start <= offsets[0] and offsets[-1] == start + length
        is_valid = rows[0] == 0 and ascends and min(sizes) > 0 and follow and fits
    except _DAMAGE:  # for example, a field of a wrong kind
        return None
    return Pages(start, offsets, rows) if is_valid else None


def _page_locations(data: bytes) -> tuple[list[int], list[int], list[int]]:
    """Return the offsets, sizes and first rows of the pages of an offset index."""
    numbers = thrift.read_integers(data, _LOCATION_KINDS)
    if numbers is not None:
        return numbers[::3], numbers[1::3], numbers[2::3]
    locations = thrift.read_plain(data)[0][_LOCATIONS].values
    fields = (_OFFSET, _PAGE_BYTES, _FIRST_ROW)
    starts, sizes, first_rows = ([one[field] for one in locations] for field in fields)
    return starts, sizes, first_rows


def parse_column_index(
    data: bytes, pages: Pages, *, has_order: bool, fixed_bytes: int | None = None
) -> list[ColumnChunk] | None:
    """Return the facts about the values of each page, or None if the index is invalid.

    Args:
        data: the stored index.
        pages: the pages of a column that is not repeated.
        has_order: whether the footer states the order of bounds.
        fixed_bytes: the length of every value, if it is fixed; then bounds of another length are
            ignored.
    """
    try:
        fields = thrift.read_plain(data)[0]
        is_null = _list_of(fields, _NULL_PAGES, bool)
        lows, highs = _list_of(fields, _MIN_VALUES, bytes), _list_of(fields, _MAX_VALUES, bytes)
        counts: list[Any] = [None] * len(is_null)
        if _NULL_COUNTS in fields:
            counts = _list_of(fields, _NULL_COUNTS, int)
        if not len(is_null) == len(lows) == len(highs) == len(counts) == len(pages.rows) - 1:
            return None
    except _DAMAGE:
        return None
    found = []
    for (first, end), only_nulls, low, high, count in zip(
        pairwise(pages.rows), is_null, lows, highs, counts, strict=True
    ):
        if count is not None and (
            not 0 <= count <= end - first or only_nulls > (count == end - first)
        ):
            return None
        if only_nulls:
            found.append(ColumnChunk(null_count=end - first, is_ordered=has_order))
        elif fixed_bytes is not None and not len(low) == len(high) == fixed_bytes:
            found.append(ColumnChunk(count, is_ordered=has_order))
        else:
            found.append(ColumnChunk(count, low, high, has_order))
    return found


def _list_of(fields: dict[int, Any], number: int, kind: type) -> list[Any]:
    values: list[Any] = fields[number].values
    if not all(isinstance(value, kind) for value in values):
        raise TypeError(f"expected a list of {kind.__name__}")
    return values


def aligned(leaves: Sequence[Pages], wanted: Sequence[RowRange]) -> list[RowRange]:
    """Return the smallest row ranges around the wanted rows that are whole pages in all leaves.

    A nested column can be assembled only if its leaves have the same rows.

    Args:
        leaves: the pages of each leaf of a column.
        wanted: the wanted rows of a row group, ascending.

    Returns:
        Ranges of rows in ascending order, with gaps between them.
    """
    found: list[RowRange] = []
    for rows in wanted:
        if found and rows[1] <= found[-1][1]:
            continue
        start, end = _around(leaves, rows)
        while found and start <= found[-1][1]:
            before = found.pop()
            start, end = min(start, before[0]), max(end, before[1])
        found.append((start, end))
    return found


def _around(leaves: Sequence[Pages], rows: RowRange) -> RowRange:
    """Return the smallest range around `rows` that consists of whole pages in every leaf."""
    while True:
        before = rows
        for pages in leaves:
            first, last = pages.around(rows)
            rows = pages.rows[first], pages.rows[last]
        if rows == before:
            return rows


def read_headers(
    data: bytes, num_rows: Sequence[int], *, is_repeated: bool, most_bytes: int
) -> Iterator[PageHeader]:
    """Check the headers of contiguous data pages.

    Args:
        data: the bytes of whole pages, including their headers.
        num_rows: the expected number of rows of each page.
        is_repeated: whether a row may have any number of values.
        most_bytes: the maximum decompressed size of a page.

    Raises:
        DamagedPageError: a header does not match the arguments.
    """
    for _, _, found in _checked(data, num_rows, is_repeated=is_repeated, most_bytes=most_bytes):
        yield found


def read_data_pages(
    data: bytes, num_rows: Sequence[int], *, is_repeated: bool, most_bytes: int
) -> Iterator[DataPage]:
    """Split contiguous data pages, and check their headers; see `read_headers`."""
    start = 0
    for fields, kind, header in _checked(
        data, num_rows, is_repeated=is_repeated, most_bytes=most_bytes
    ):
        is_new = kind == _DATA_TYPE_V2
        levels = None
        if is_new:
            levels = _number(fields, _DEFINITION_BYTES) + _number(fields, _REPETITION_BYTES)
        yield DataPage(
            data[header.body : header.end],
            header.num_values,
            header.uncompressed_bytes - (header.body - start),
            _number(fields, _ENCODING_V2 if is_new else _ENCODING),
            levels,
            _RLE if is_new else _number(fields, _LEVEL_ENCODING),
            _number(fields, _NUM_NULLS) if is_new else 0,
            fields.get(_IS_COMPRESSED, True) is not False,
        )
        start = header.end


def _checked(
    data: bytes, num_rows: Sequence[int], *, is_repeated: bool, most_bytes: int
) -> Iterator[tuple[dict[int, Any], int, PageHeader]]:
    position = 0
    for rows in num_rows:
        header = _data_page(data, position, most_bytes)
        fields, kind, found = header
        is_new = kind == _DATA_TYPE_V2
        count = found.num_values
        if count < rows or (count != rows and not is_repeated):
            raise DamagedPageError(f"expected {rows} rows in a page, found {count} values")
        if is_new and fields.get(_NUM_ROWS) != rows:
            raise DamagedPageError(f"expected {rows} rows in a page, found {fields.get(_NUM_ROWS)}")
        position = found.end
        yield header
    if position != len(data):
        raise DamagedPageError(f"expected pages of {len(data)} bytes, found {position}")


def read_dictionary_header(data: bytes, most_bytes: int) -> PageHeader:
    """Check the header of a dictionary page.

    Args:
        data: the page.
        most_bytes: the maximum decompressed size.

    Raises:
        DamagedPageError: the data is not one whole dictionary page.
    """
    header, details, body = _dictionary_header(data, most_bytes)
    end = body + header[_COMPRESSED_BYTES]
    if end != len(data):
        raise DamagedPageError(f"expected a dictionary of {len(data)} bytes, found {end}")
    return PageHeader(
        has_dictionary=True,
        num_values=_number(details, _NUM_VALUES),
        uncompressed_bytes=body + header[_UNCOMPRESSED_BYTES],
        body=body,
        end=end,
    )


def num_entries(data: bytes) -> int:
    """Return the number of entries of a dictionary page.

    Args:
        data: the start of the dictionary page, with its header.

    Raises:
        DamagedPageError: the data is not a dictionary page.
    """
    return _number(_dictionary_header(data, None)[1], _NUM_VALUES)


def dictionary_bytes(data: bytes) -> int:
    """Return the decompressed size of a column chunk's dictionary; 0 without a dictionary.

    Args:
        data: the start of the chunk's first page, with its header.

    Raises:
        DamagedPageError: the data is not a page header.
    """
    header, _ = _header(data, 0, None)
    return _number(header, _UNCOMPRESSED_BYTES) if header[_PAGE_TYPE] == _DICTIONARY_TYPE else 0


def _dictionary_header(
    data: bytes, most_bytes: int | None
) -> tuple[dict[int, Any], dict[int, Any], int]:
    header, body = _header(data, 0, most_bytes)
    details = header.get(_DICTIONARY_PAGE)
    if header[_PAGE_TYPE] != _DICTIONARY_TYPE or not isinstance(details, dict):
        raise DamagedPageError("expected a dictionary page")
    return header, details, body


def _data_page(
    data: bytes, position: int, most_bytes: int
) -> tuple[dict[int, Any], int, PageHeader]:
    header, body = _header(data, position, most_bytes)
    kind, size = header[_PAGE_TYPE], header[_COMPRESSED_BYTES]
    is_new = kind == _DATA_TYPE_V2
    details = header.get(_DATA_PAGE_V2 if is_new else _DATA_PAGE)
    if kind not in {_DATA_TYPE, _DATA_TYPE_V2} or not isinstance(details, dict):
        raise DamagedPageError(f"expected a data page, found one of type {kind}")
    if body + size > len(data):
        raise DamagedPageError(f"a page ends at byte {body + size}, after its {len(data)} bytes")
    if is_new:
        levels = _number(details, _DEFINITION_BYTES) + _number(details, _REPETITION_BYTES)
        if levels > min(size, header[_UNCOMPRESSED_BYTES]):
            raise DamagedPageError(f"{levels} bytes of levels in a page of {size}")
        if _number(details, _NUM_NULLS) > _number(details, _NUM_VALUES):
            raise DamagedPageError("a page has more NULLs than values")
    encoding = _number(details, _ENCODING_V2 if is_new else _ENCODING)
    found = PageHeader(
        has_dictionary=encoding in DICTIONARY_ENCODINGS,
        num_values=_number(details, _NUM_VALUES),
        uncompressed_bytes=body - position + header[_UNCOMPRESSED_BYTES],
        body=body,
        end=body + size,
    )
    return details, kind, found


def _header(data: bytes, position: int, most_bytes: int | None) -> tuple[dict[int, Any], int]:
    """Return the fields of a page's header, and the end of the header."""
    try:
        header, body = thrift.read_plain(data, position)
    except _DAMAGE as error:
        raise DamagedPageError(f"cannot read the header of a page: {error!r}") from error
    for number in (_PAGE_TYPE, _UNCOMPRESSED_BYTES, _COMPRESSED_BYTES):
        _number(header, number)
    if most_bytes is not None and header[_UNCOMPRESSED_BYTES] > most_bytes:
        raise DamagedPageError(f"a page of {header[_UNCOMPRESSED_BYTES]} of {most_bytes} bytes")
    return header, body


def _number(fields: dict[int, Any], number: int) -> int:
    """Return a field that must be a number of 0 or more."""
    value = fields.get(number)
    if type(value) is not int or value < 0:  # a boolean is an int, too
        raise DamagedPageError(
            f"expected a number of 0 or more in a page's header, found {value!r}"
        )
    return value
