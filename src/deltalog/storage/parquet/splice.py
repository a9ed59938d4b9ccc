"""Parquet files that consist of newly encoded row groups, and of row groups of other files.

The bytes of row groups are copied, and the new footer contains their new positions. As with
`ParquetSink`, the file is either complete or does not exist.

Protocol: none; Apache Parquet's `parquet.thrift`
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import pyarrow as pa

from deltalog.errors import DataFileUnreadableError
from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.byte_sources import EncodedBytes, write_all
from deltalog.storage.parquet.groups import (
    DAMAGES,
    StoredFooter,
    extra_range,
    flat_leaves,
    make_footer,
    moved_group,
    put_spot,
    read_stored,
)
from deltalog.storage.parquet.sink import NewFile, encode_parquet
from deltalog.storage.parquet.thrift import Struct, Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog._util.paths import FileInfo
    from deltalog.storage.parquet.groups import ByteSource, SchemaElement, StoredChunk, StoredGroup
    from deltalog.storage.store import Store

_MAGIC: Final = b"PAR1"
CUTS_NOTHING: Final = ("parquet-cpp-arrow ",)
"""The names of writers that omit long bounds instead of truncating them."""


@dataclass(frozen=True, slots=True)
class GroupsToCopy:
    """Row groups of one file whose pages were checked.

    Args:
        source: the file.
        footer: the footer of the file.
        numbers: the numbers of the row groups, ascending.
        pages: the pages of each row group; None if this process wrote the row group, so that it
            needs no check.
        unproven: row group and leaf column of each column chunk without checksums. Only decoding
            can prove that such a chunk is undamaged.
    """

    source: ByteSource
    footer: StoredFooter
    numbers: tuple[int, ...]
    pages: tuple[Pages | None, ...]
    unproven: tuple[tuple[int, int], ...] = ()

    @property
    def num_rows(self) -> int:
        """Return the number of rows of all row groups."""
        return sum(self.footer.groups[number].num_rows for number in self.numbers)


def checked_groups(
    source: ByteSource, footer: StoredFooter, numbers: Sequence[int]
) -> GroupsToCopy:
    """Return row groups of a file, after checking their pages.

    Raises:
        DataFileUnreadableError: the pages do not match the footer, or are damaged.
    """
    found = [check_pages(footer.groups[n], footer.schema, source) for n in numbers]
    return GroupsToCopy(
        source,
        footer,
        tuple(numbers),
        tuple(tuple(chunk.pages for chunk in chunks) for chunks in found),
        unproven=tuple(
            (number, leaf)
            for number, chunks in zip(numbers, found, strict=True)
            for leaf, chunk in enumerate(chunks)
            if not chunk.is_proven
        ),
    )


def encoded_groups(
    rows: pa.Table, *, row_group_size: int | None = None, **options: Any
) -> GroupsToCopy:
    """Encode rows as row groups; see `encode_parquet`."""
    source = EncodedBytes(encode_parquet(rows, row_group_size=row_group_size, **options))
    footer = _own_footer(source)
    numbers = tuple(range(len(footer.groups)))
    return GroupsToCopy(source, footer, numbers, (None,) * len(numbers))


def empty_footer(schema: pa.Schema, **options: Any) -> StoredFooter:
    """Return the footer of an empty file that this process writes; see `encode_parquet`."""
    return _own_footer(EncodedBytes(encode_parquet(schema.empty_table(), **options)))


def _own_footer(source: EncodedBytes) -> StoredFooter:
    footer = read_stored(source.footer(), source.size_bytes)
    if footer is None:
        raise ValueError("a file of this process is encrypted")
    return footer


class SplicedFile:
    """Writes a data file, row group by row group.

    Args:
        store: the store of the new file.
        path: the decoded path.
        template: the footer of a file with the same schema (see `empty_footer`).

    Attributes:
        size_bytes: the number of bytes written so far.
    """

    def __init__(self, store: Store, path: str, template: StoredFooter) -> None:
        self._file = NewFile(store, path, is_unsought=True)
        self._template = template
        self.size_bytes: int = 0
        self._groups: list[Struct] = []
        # Indexes and Bloom filters, which are written after all row groups, because readers fetch
        # them together with the footer.
        self._later: list[tuple[Struct, str, bytes]] = []
        with self._file.whole_or_gone():
            self._out = self._file.open(for_arrow=False)
            self._write(_MAGIC)

    def append(self, groups: GroupsToCopy) -> None:
        """Append row groups.

        Raises:
            DataFileUnreadableError: the source is shorter than its footer states.
        """
        with self._file.whole_or_gone():
            for number, pages in zip(groups.numbers, groups.pages, strict=True):
                self._append(groups, groups.footer.groups[number], pages)

    def close(self) -> FileInfo:
        """Write indexes and footer, and give the file its final name.

        Raises:
            AlreadyExistsError: a file of this name exists.
        """
        with self._file.whole_or_gone():
            for column, place, data in self._later:
                put_spot(column, place, self.size_bytes, len(data))
                self._write(data)
            footer = make_footer(self._template, self._groups)
            self._write(footer + struct.pack("<I", len(footer)) + _MAGIC)
            return self._file.finish()

    def abandon(self) -> None:
        """Delete the incomplete file."""
        self._file.abandon()

    def _append(self, groups: GroupsToCopy, group: StoredGroup, pages: Pages | None) -> None:
        source, chunks = groups.source, group.chunks
        starts = [0] * len(chunks)
        position = self.size_bytes
        runs: list[tuple[int, int]] = []
        for number in sorted(range(len(chunks)), key=lambda number: chunks[number].start):
            start, end = chunks[number].start, chunks[number].end
            starts[number] = position
            position += end - start
            if runs and runs[-1][1] == start:
                start = runs.pop()[0]
            runs.append((start, end))
        for start, end in runs:
            source.copy(start, end, self._out)
            self.size_bytes += end - start
        fields, columns = moved_group(
            group,
            starts,
            has_orders=groups.footer.has_orders,
            may_be_cut=pages is not None and not groups.footer.created_by.startswith(CUTS_NOTHING),
        )
        for number, (chunk, column) in enumerate(zip(chunks, columns, strict=True)):
            shift = starts[number] - chunk.start
            found = moved_indexes(chunk, None if pages is None else pages[number], source, shift)
            if found.bloom is not None:
                put_spot(column, "bloom", self.size_bytes, len(found.bloom))
                self._write(found.bloom)
            for place, data in (("bounds", found.bounds), ("offsets", found.offsets)):
                if data is not None:
                    self._later.append((column, place, data))
        self._groups.append(fields)

    def _write(self, data: bytes) -> None:
        write_all(self._out, data)
        self.size_bytes += len(data)


# --- Moving the indexes and Bloom filters of column chunks


# The header bytes of Thrift fields. Each contains the difference to the previous field id, and the
# kind of the field. 0 ends a struct.
_FIRST_LIST: Final = bytes([1 << 4 | thrift.LIST])
_PLACE: Final = (1 << 4 | thrift.INT64, 1 << 4 | thrift.INT32, 1 << 4 | thrift.INT64, 0)


class Indexes(NamedTuple):
    """The indexes of a column chunk for its new position.

    Attributes:
        bloom: the Bloom filter.
        bounds: the column index.
        offsets: the offset index with the new positions of the pages.
    """

    bloom: bytes | None = None
    bounds: bytes | None = None
    offsets: bytes | None = None


def moved_indexes(
    chunk: StoredChunk, pages: Sequence[Page] | None, source: ByteSource, shift: int
) -> Indexes:
    """Return the indexes and the Bloom filter of a column chunk for its new position.

    Damaged parts are omitted. Bounds of floating-point numbers are omitted too, because writers
    ignore NaN in bounds.

    Args:
        chunk: the stored column chunk.
        pages: the pages of the chunk; None if its offset index is trusted.
        source: the bytes of the file.
        shift: the distance from the old to the new position.
    """
    bloom = _read_extra(chunk, "bloom", source)
    if bloom is not None and not _is_bloom(bloom):
        bloom = None
    offsets = _read_extra(chunk, "offsets", source)
    moved = None if offsets is None else _moved_offsets(offsets, pages, shift)
    if moved is None:
        return Indexes(bloom)
    bounds = None if chunk.is_floating else _read_extra(chunk, "bounds", source)
    data, num_pages = moved
    if bounds is not None and not _is_column_index(bounds, num_pages):
        bounds = None
    return Indexes(bloom, bounds, data)


def _moved_offsets(
    data: bytes, pages: Sequence[Page] | None, shift: int
) -> tuple[bytes, int] | None:
    """Return the moved offset index and the number of pages; None if the index is damaged."""
    try:
        found, moved = _moved_plainly(data, shift) or _moved_wholly(data, shift)
    except DAMAGES:
        return None
    return None if pages is not None and found != list(pages) else (moved, len(found))


def _moved_plainly(data: bytes, shift: int) -> tuple[list[Page], bytes] | None:
    """Return the pages of an offset index, and the moved index; None if its form is unusual.

    Nearly every offset index contains only three numbers per page. This parser supports only that
    form, and is five times as fast as the general parser.
    """
    length = thrift.list_length(data, 1)
    start = _FIRST_LIST + thrift.list_head(thrift.STRUCT, length)
    if not data.startswith(start):
        return None
    pages: list[Page] = []
    out, position = bytearray(start), len(start)
    for _ in range(length):
        place, at_size = thrift.integer(data, position + 1)
        num_bytes, at_row = thrift.integer(data, at_size + 1)
        end = thrift.integer(data, at_row + 1)[1]
        heads = data[position], data[at_size], data[at_row], data[end]
        if heads != _PLACE or place < 0 or num_bytes < 0:
            return None
        pages.append(Page(place, num_bytes))
        out.append(heads[0])
        out += thrift.encode_integer(place + shift)
        out += data[at_size : end + 1]
        position = end + 1
    return (pages, bytes(out) + b"\0") if data[position:] == b"\0" else None


def _moved_wholly(data: bytes, shift: int) -> tuple[list[Page], bytes]:
    """Return the pages of an offset index of any form, and the moved index with all its fields."""
    index, end = thrift.read_struct(data)
    if end > len(data):
        raise IndexError(f"an offset index ends at {end} of {len(data)} bytes")
    places = thrift.structs(index, 1)
    pages = [Page(thrift.natural(place, 1), thrift.natural(place, 2)) for place in places]
    for place in places:
        place[1] = Value(thrift.INT64, place[1].value + shift)
    return pages, thrift.write_struct(index)


def _is_column_index(data: bytes, num_pages: int) -> bool:
    """Whether the data is a column index with this number of pages; bounds are not checked."""
    lengths: dict[int, int] = {}
    number = position = 0
    try:
        while head := data[position]:
            number += head >> 4
            kind, position = head & 15, position + 1
            if not head >> 4 or (kind in thrift.LISTS and number in lengths):
                return False
            if kind in thrift.LISTS:
                lengths[number] = thrift.list_length(data, position)
                if lengths[number] > len(data):
                    return False
            position = thrift.pass_value(data, position, kind)
    except DAMAGES:
        return False
    return position < len(data) and all(lengths.get(n) == num_pages for n in (1, 2, 3))


def _is_bloom(data: bytes) -> bool:
    try:
        header, end = thrift.read_struct(data)
        return end + thrift.natural(header, 1) == len(data)
    except DAMAGES:
        return False


def _read_extra(chunk: StoredChunk, place: str, source: ByteSource) -> bytes | None:
    spot = extra_range(chunk, place)
    if spot is None or spot[1] > source.size_bytes:
        return None
    return source.read(*spot)


# --- Finding the pages of copied column chunks by their headers


_HEADER_BYTES: Final = 512
_LONGEST_HEADER_BYTES: Final = 1024 * 1024
_DATA_PAGES: Final = {0: 5, 3: 8}  # page type → field of its header in PageHeader
_INDEX_PAGE, _DICTIONARY_PAGE, _NEWER_DATA_PAGE = 1, 2, 3
_MOST_PAGE_BYTES: Final = 1 << 31  # a page is shorter: its length is a signed 32-bit integer
_NUM_VALUES_OF_PAGE: Final = 100  # not in Thrift: for a field of the inner header struct
_CHECKSUM: Final = 4
_MASK: Final = 0xFFFFFFFF
_DATA_AT, _ENCODING_STATISTICS = 9, 13  # fields of ColumnMetaData
_ENCODINGS_OF_LEVELS: Final = frozenset({3, 4})  # RLE and BIT_PACKED
_DICTIONARY_HEADER: Final = 7
_NUM_ENTRIES: Final = 1
_PLAIN_DICTIONARIES: Final = frozenset({0, 2})  # PLAIN and PLAIN_DICTIONARY
_LENGTH: Final = struct.Struct("<I")
_TYPE: Final = 1  # field of ColumnMetaData
_WIDTHS: Final = {1: 4, 2: 8, 3: 12, 4: 4, 5: 8}  # physical type → bytes per value
# Fields of DataPageHeader. In DictionaryPageHeader, the encoding is in the same field.
_ENCODING, _LEVEL_ENCODINGS = 2, (3, 4)
# Fields of DataPageHeaderV2.
_NULLS, _ROWS, _ENCODING_2, _LEVEL_BYTES, _IS_PACKED = 2, 3, 4, (5, 6), 7
_PLAIN, _SNAPPY, _GZIP, _ZSTANDARD = 0, 1, 2, 6  # compression codecs
_CODEC_NAMES: Final[dict[int, Any]] = {_SNAPPY: "snappy", _GZIP: "gzip", _ZSTANDARD: "zstd"}
# The expected kinds of header fields, by field number. A mapping describes an inner struct. A
# negative field number means that the field is optional.
_INT, _LONG = frozenset({thrift.INT32}), frozenset({thrift.INT64})
_TEXTS: Final = frozenset({thrift.BINARY})
_STATISTICS_FORM: Final = {
    **dict.fromkeys((-1, -2, -5, -6), _TEXTS),
    **dict.fromkeys((-3, -4), _LONG),
    **dict.fromkeys((-7, -8), thrift.BOOLEANS),
}
_HEADER_FORM: Final[dict[int, Any]] = dict.fromkeys((1, 2, 3, 4), _INT)
_FORMS: Final[dict[int, dict[int, Any]]] = {
    5: {**dict.fromkeys((1, 2, 3, 4), _INT), -5: _STATISTICS_FORM},
    7: {**dict.fromkeys((1, 2), _INT), -3: thrift.BOOLEANS},
    8: {**dict.fromkeys(range(1, 7), _INT), -7: thrift.BOOLEANS, -8: _STATISTICS_FORM},
}
_MAGICS: Final = {_GZIP: b"\x1f\x8b", _ZSTANDARD: b"\x28\xb5\x2f\xfd"}


class Page(NamedTuple):
    """A data page.

    Attributes:
        start: the position of the page's header.
        num_bytes: the length of the page, including its header.
    """

    start: int
    num_bytes: int


class PageFacts(NamedTuple):
    """A data page, and facts from its header.

    Attributes:
        page: the position of the page.
        num_values: the number of values, including NULLs and empty lists.
        plain_bytes: the uncompressed length, including the header.
    """

    page: Page
    num_values: int
    plain_bytes: int


class ChunkPages(NamedTuple):
    """The data pages of a column chunk.

    Attributes:
        facts: the facts about each page.
        is_proven: whether checksums prove that the pages are undamaged.
    """

    facts: list[PageFacts]
    is_proven: bool

    @property
    def pages(self) -> tuple[Page, ...]:
        """Return the positions of the pages, without facts."""
        return tuple(one.page for one in self.facts)


def flat_pages(chunk: StoredChunk, num_rows: int, source: ByteSource) -> ChunkPages:
    """Find the data pages of a column chunk with one value per row, by their headers.

    See `check_pages` for errors and cost.
    """
    try:
        return _walk_pages(chunk, source, num_rows)
    except DAMAGES as error:
        raise DataFileUnreadableError(f"cannot copy a row group: {error!r}") from error


def check_pages(
    group: StoredGroup, schema: Sequence[SchemaElement], source: ByteSource
) -> tuple[ChunkPages, ...]:
    """Check all page headers of a row group, and return the data pages of each column chunk.

    Raises:
        DataFileUnreadableError: the pages do not match the positions or counts in the footer, or
            their checksums.

    Cost: a read and about ten microseconds per page; a page with a checksum is read completely.
    """
    is_flat = flat_leaves(schema)
    try:
        return tuple(
            _walk_pages(chunk, source, group.num_rows if flat else None)
            for chunk, flat in zip(group.chunks, is_flat, strict=True)
        )
    except DAMAGES as error:
        raise DataFileUnreadableError(f"cannot copy a row group: {error!r}") from error


Pages = tuple[tuple[Page, ...], ...]
"""The data pages of each leaf column of a row group."""


def _walk_pages(chunk: StoredChunk, source: ByteSource, num_rows: int | None) -> ChunkPages:
    found: list[PageFacts] = []
    position, num_values, is_proven = chunk.start, 0, True
    encodings: Counter[tuple[bool, int]] = Counter()
    if num_rows is not None and chunk.num_values != num_rows:
        raise ValueError(f"{chunk.num_values} values in {num_rows} rows")
    while position < chunk.end:
        header = _page_header(source, position, chunk.end)
        end = _end_of_page(header, position, chunk)
        is_proven = _is_proven(header, source, position, chunk) and is_proven
        if is_proven:
            encodings[header.kind in _DATA_PAGES, header.encoding] += 1
        if header.kind in _DATA_PAGES:
            num_values += header.num_values
            page = Page(position, end - position)
            found.append(PageFacts(page, header.num_values, header.num_bytes + header.plain_bytes))
        elif header.kind == _DICTIONARY_PAGE and position != chunk.start:
            raise ValueError(f"a dictionary at {position} after other pages")
        elif header.kind not in {_DICTIONARY_PAGE, _INDEX_PAGE}:
            raise ValueError(f"a page of type {header.kind} at {position}")
        position = end
    if num_values != chunk.num_values:
        raise ValueError(f"expected {chunk.num_values} values, found {num_values}")
    first = thrift.number(chunk.meta, _DATA_AT)
    if found and first not in {found[0].page.start, chunk.start}:
        start = found[0].page.start
        raise ValueError(f"expected the first data page at {first}, found it at {start}")
    return ChunkPages(found, is_proven and encodings == _stated_encodings(chunk))


def _stated_encodings(chunk: StoredChunk) -> Counter[tuple[bool, int]] | None:
    """Return the footer's number of pages by (is data page, encoding); None if missing.

    Versions of data pages are not distinguished, because Arrow's footers do not distinguish
    them.
    """
    if _ENCODING_STATISTICS not in chunk.meta:
        return None
    found: Counter[tuple[bool, int]] = Counter()
    for one in thrift.structs(chunk.meta, _ENCODING_STATISTICS):
        kind, encoding, count = (thrift.natural(one, number) for number in (1, 2, 3))
        found[kind in _DATA_PAGES, encoding] += count
    return found


def _end_of_page(header: _PageHeader, position: int, chunk: StoredChunk) -> int:
    end = position + header.num_bytes + header.body_bytes
    if end > chunk.end or header.body_bytes < 0:
        raise ValueError(f"a page from {position} to {end} in pages up to {chunk.end}")
    if not 0 <= header.plain_bytes < _MOST_PAGE_BYTES:
        raise ValueError(f"a page of {header.plain_bytes} bytes at {position}")
    return end


def _is_proven(header: _PageHeader, source: ByteSource, position: int, chunk: StoredChunk) -> bool:
    """Whether a checksum proves that a page is undamaged; False without a checksum."""
    if header.checksum is None:
        return False
    start = position + header.num_bytes
    body = source.read(start, start + header.body_bytes)
    if crc32(body) != header.checksum & _MASK:
        raise ValueError(f"the page at {position} does not match its checksum")
    return _agrees(header, body, chunk)


class _PageHeader(NamedTuple):
    num_bytes: int
    kind: int
    body_bytes: int
    plain_bytes: int
    num_values: int
    checksum: int | None
    data: bytes

    @property
    def encoding(self) -> int:
        """Return the encoding of the values; -1 if it is missing."""
        number = _ENCODING_2 if self.kind == _NEWER_DATA_PAGE else _ENCODING
        fields, _ = thrift.read_plain(self.data)
        inner = fields.get(_DATA_PAGES.get(self.kind, _DICTIONARY_HEADER))
        found = inner.get(number) if isinstance(inner, dict) else None
        return found if isinstance(found, int) else -1


def _agrees(header: _PageHeader, body: bytes, chunk: StoredChunk) -> bool:
    """Whether a header matches the bytes of its page; the checksum does not include the header.

    Returns False if this cannot be determined.
    """
    found, _ = thrift.read_struct(header.data)
    inner_number = _DATA_PAGES.get(header.kind, _DICTIONARY_HEADER)
    if not _has_form(found, {**_HEADER_FORM, inner_number: _FORMS[inner_number]}):
        return False  # a field is missing, unknown or of a wrong kind
    fields, _ = thrift.read_plain(header.data)
    inner = fields.get(inner_number, {})
    codec, level_bytes = chunk.codec, 0
    if header.kind == _NEWER_DATA_PAGE:
        lengths = [inner.get(number, -1) for number in _LEVEL_BYTES]
        level_bytes = sum(lengths)
        counts = [inner.get(number, -1) for number in (_NULLS, _ROWS)]
        if min(*lengths, *counts) < 0 or max(counts) > header.num_values:
            return False
        if not inner.get(_IS_PACKED, True):
            codec = _PLAIN
    elif header.kind in _DATA_PAGES:
        levels = {inner.get(number) for number in _LEVEL_ENCODINGS}
        if not levels <= _ENCODINGS_OF_LEVELS:
            return False
    is_dictionary = header.kind == _DICTIONARY_PAGE
    if level_bytes > len(body):
        return False
    if not _is_packed_as(codec, body[level_bytes:], header.plain_bytes - level_bytes):
        return False
    if not is_dictionary:
        return True
    is_plain = inner.get(_ENCODING) in _PLAIN_DICTIONARIES
    return is_plain and inner.get(_NUM_ENTRIES) == _num_entries(chunk, body, header.plain_bytes)


def _has_form(found: Struct, form: Mapping[int, Any]) -> bool:
    """Whether a struct has all required fields, and no fields of other numbers or kinds."""
    for number, value in found.items():
        kind = form.get(number, form.get(-number))
        if isinstance(kind, dict):
            if value.kind != thrift.STRUCT or not _has_form(value.value, kind):
                return False
        elif kind is None or value.kind not in kind:
            return False
    return all(number in found for number in form if number > 0)


def _num_entries(chunk: StoredChunk, body: bytes, plain_bytes: int) -> int | None:
    """Return the number of entries of a dictionary; None if it does not follow from its bytes."""
    width = _WIDTHS.get(thrift.number(chunk.meta, _TYPE) or 0)
    if width is not None:
        return plain_bytes // width if plain_bytes % width == 0 else None
    name = _CODEC_NAMES.get(-1 if chunk.codec is None else chunk.codec)
    if not chunk.is_text or (chunk.codec != _PLAIN and name is None):
        return None
    data: Any = body
    if name is not None:
        try:
            data = pa.Codec(name).decompress(body, plain_bytes)
        except (pa.ArrowException, OSError):
            return None
    view, count, position = memoryview(data), 0, 0
    unpack = _LENGTH.unpack_from
    while position + _LENGTH.size <= plain_bytes:
        position += _LENGTH.size + unpack(view, position)[0]
        count += 1
    return count if position == plain_bytes else None


def _is_packed_as(codec: int | None, data: bytes, plain_bytes: int) -> bool:
    """Whether compressed bytes begin with a valid header of their codec and, if stated, size."""
    if codec == _PLAIN:
        return len(data) == plain_bytes
    if codec == _SNAPPY:
        return not data or thrift.varint(data, 0)[0] == plain_bytes
    magic = _MAGICS.get(-1 if codec is None else codec)
    return magic is not None and data.startswith(magic)


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
    """Parse the required fields of a page header."""
    numbers: dict[int, int] = {}
    position = number = 0
    while head := data[position]:
        position += 1
        number += head >> 4
        if not head >> 4:
            raise TypeError("unsupported page header: a Thrift field id in long form")
        kind = head & 15
        if kind in thrift.INTEGERS:
            numbers[number], position = thrift.integer(data, position)
            continue
        if kind == thrift.STRUCT and number in _DATA_PAGES.values():
            first = data[position]
            if first >> 4 != 1 or first & 15 not in thrift.INTEGERS:
                raise TypeError("a data page has no number of values")
            numbers[_NUM_VALUES_OF_PAGE], _ = thrift.integer(data, position + 1)
        position = thrift.pass_value(data, position, kind)
    return _PageHeader(
        num_bytes=position + 1,
        kind=numbers[1],
        body_bytes=numbers[3],
        plain_bytes=numbers[2],
        num_values=numbers.get(_NUM_VALUES_OF_PAGE, -1),
        checksum=numbers.get(_CHECKSUM),
        data=data[: position + 1],
    )
