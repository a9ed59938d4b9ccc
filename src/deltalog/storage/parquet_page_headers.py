"""The pages of column chunks that are copied, found by their headers.

Nothing that a footer says of them is trusted: pages are where it says, and as many values.

Protocol: none; Apache Parquet's `parquet.thrift` (PageHeader)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from deltalog.errors import DataFileUnreadableError
from deltalog.storage import thrift, thrift_fields
from deltalog.storage.parquet_groups import DAMAGES
from deltalog.storage.parquet_schema import flat_leaves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage.parquet_groups import ByteSource, StoredChunk, StoredGroup
    from deltalog.storage.parquet_schema import SchemaElement

_HEADER_BYTES: Final = 512
_LONGEST_HEADER_BYTES: Final = 1024 * 1024
_DATA_PAGES: Final = {0: 5, 3: 8}  # type of page → field of its header
_INDEX_PAGE, _DICTIONARY_PAGE = 1, 2
_MOST_PAGE_BYTES: Final = 1 << 31  # its length is a number of four bytes
_NUM_VALUES_OF_PAGE: Final = 100  # no field of a page's header itself
_DATA_AT: Final = 9  # of ColumnMetaData


class Page(NamedTuple):
    """A data page.

    Attributes:
        start: of its header.
        num_bytes: with its header.
    """

    start: int
    num_bytes: int


class PageFacts(NamedTuple):
    """A data page, and what its header says of it.

    Attributes:
        page: where it is.
        num_values: NULL and empty ones counted.
        plain_bytes: with its header, before it was compressed.
    """

    page: Page
    num_values: int
    plain_bytes: int


def flat_pages(chunk: StoredChunk, num_rows: int, source: ByteSource) -> list[PageFacts]:
    """The data pages of a column chunk with one value for each row, by their headers.

    Raises and costs as `check_pages`.
    """
    try:
        return _walk_pages(chunk, source, num_rows)
    except DAMAGES as error:
        raise DataFileUnreadableError(f"cannot copy a row group: {error!r}") from error


def check_pages(group: StoredGroup, schema: Sequence[SchemaElement], source: ByteSource) -> Pages:
    """The data pages of each column chunk of a row group, after a look at all page headers.

    Raises:
        DataFileUnreadableError: pages are not where the footer says, or have not as many values.

    Cost: a read and some ten microseconds per page.
    """
    is_flat = flat_leaves(schema)
    try:
        return tuple(
            _pages(chunk, source, group.num_rows if flat else None)
            for chunk, flat in zip(group.chunks, is_flat, strict=True)
        )
    except DAMAGES as error:
        raise DataFileUnreadableError(f"cannot copy a row group: {error!r}") from error


Pages = tuple[tuple[Page, ...], ...]
"""By leaf column."""


def _pages(chunk: StoredChunk, source: ByteSource, num_rows: int | None) -> tuple[Page, ...]:
    return tuple(one.page for one in _walk_pages(chunk, source, num_rows))


def _walk_pages(chunk: StoredChunk, source: ByteSource, num_rows: int | None) -> list[PageFacts]:
    found: list[PageFacts] = []
    position, num_values = chunk.start, 0
    if num_rows is not None and chunk.num_values != num_rows:
        raise ValueError(f"{chunk.num_values} values in {num_rows} rows")
    while position < chunk.end:
        header = _page_header(source, position, chunk.end)
        end = position + header.num_bytes + header.body_bytes
        if end > chunk.end or header.body_bytes < 0:
            raise ValueError(f"a page from {position} to {end} in pages up to {chunk.end}")
        if not 0 <= header.plain_bytes < _MOST_PAGE_BYTES:
            raise ValueError(f"a page of {header.plain_bytes} bytes at {position}")
        if header.kind in _DATA_PAGES:
            num_values += header.num_values
            page = Page(position, end - position)
            found.append(PageFacts(page, header.num_values, header.num_bytes + header.plain_bytes))
        elif header.kind == _DICTIONARY_PAGE and position != chunk.start:
            raise ValueError(f"a dictionary at {position} behind other pages")
        elif header.kind not in {_DICTIONARY_PAGE, _INDEX_PAGE}:
            raise ValueError(f"a page of type {header.kind} at {position}")
        position = end
    if num_values != chunk.num_values:
        raise ValueError(f"expected {chunk.num_values} values, found {num_values}")
    first = thrift_fields.number(chunk.meta, _DATA_AT)
    if found and first not in {found[0].page.start, chunk.start}:
        start = found[0].page.start
        raise ValueError(f"expected the first data page at {first}, found it at {start}")
    return found


class _PageHeader(NamedTuple):
    num_bytes: int
    kind: int
    body_bytes: int
    plain_bytes: int
    num_values: int


def _page_header(source: ByteSource, position: int, end: int) -> _PageHeader:
    for num_bytes in (_HEADER_BYTES, _LONGEST_HEADER_BYTES):
        data = source.read(position, min(end, position + num_bytes))
        try:
            header = _parsed_header(data)
        except LookupError:
            if len(data) < num_bytes:
                raise
        else:
            if header.num_bytes <= len(data):
                return header
    raise ValueError(f"a page header of more than {_LONGEST_HEADER_BYTES} bytes at {position}")


def _parsed_header(data: bytes) -> _PageHeader:
    """The header of a page, of which few fields are read: a file has many pages."""
    numbers: dict[int, int] = {}
    position = number = 0
    while head := data[position]:
        position += 1
        number += head >> 4
        if not head >> 4:
            raise TypeError("fields that are far apart")
        kind = head & 15
        if kind in thrift.INTEGERS:
            numbers[number], position = thrift.integer(data, position)
            continue
        if kind == thrift.STRUCT and number in _DATA_PAGES.values():
            first = data[position]
            if first >> 4 != 1 or first & 15 not in thrift.INTEGERS:
                raise TypeError("a data page without a number of values")
            numbers[_NUM_VALUES_OF_PAGE], _ = thrift.integer(data, position + 1)
        position = thrift.pass_value(data, position, kind)
    num_values = numbers.get(_NUM_VALUES_OF_PAGE, -1)
    return _PageHeader(position + 1, numbers[1], numbers[3], numbers[2], num_values)
