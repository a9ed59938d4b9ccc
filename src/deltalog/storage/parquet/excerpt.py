"""Excerpts of Parquet files: selected pages with a new footer, which Arrow decodes.

Arrow can only read whole column chunks. An excerpt is a small Parquet file in memory. Its column
chunks contain unchanged copies of the dictionary and the selected pages. Pages of different columns
begin at different rows, so the rows that are not wanted are then cut from each decoded column.

Protocol: none; Apache Parquet's `parquet.thrift` (FileMetaData, RowGroup, ColumnChunk)
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq  # noqa: TID251  # allowed in this package

from deltalog.storage.parquet import thrift
from deltalog.storage.parquet.facts import MOST_DECODED_BYTES, ChunkDetails, Described
from deltalog.storage.parquet.pages import (
    DamagedPageError,
    GroupPart,
    PageHeader,
    Part,
    RowRange,
    aligned,
    read_dictionary_header,
    read_headers,
)
from deltalog.storage.parquet.parts import (
    as_texts,
    guarded,
    open_file,
    read_groups,
    read_side_by_side,
)
from deltalog.storage.parquet.plain_pages import decode_plain
from deltalog.storage.store import ByteRange, Store, native_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.storage.parquet.facts import Footer
    from deltalog.storage.parquet.parts import Segments

    ChooseLeaves = Callable[[Any, pa.Schema], Sequence[int] | None]

_MAGIC: Final = b"PAR1"
# Strings are decoded as a dictionary only if at most this share of the decoded values is wanted,
# because then only the wanted values are converted to strings.
_FEW_OF_DICTIONARY: Final = 0.25
# In addition, the dictionary must have at most this number of entries per decoded value, because
# decoding an entry takes Arrow twice as long as decoding a plain value.
_SMALL_DICTIONARY: Final = 0.5
_THREADED_BYTES: Final = 4 * 1024 * 1024
_FILE_OFFSET = 2  # field of ColumnChunk
_UNWANTED: Final = thrift.write_struct({_FILE_OFFSET: thrift.Value(thrift.INT64, 0)})


@dataclass(slots=True)
class PagedReading:
    """Settings for reading single pages instead of whole column chunks; tests change them.

    Args:
        is_on: whether to read pages at all.
        least_rows: the minimum number of rows of a row group whose pages are read.
        most_share: the maximum share of a column chunk's rows that are on the pages to read. If the
            share is greater, the whole column chunk is read.
    """

    is_on: bool = True
    least_rows: int = 4096
    most_share: float = 0.8


PAGED: Final = PagedReading()


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Selected pages of a file.

    Args:
        groups: the part of each row group.
        num_leaves: the number of leaf columns of the file.
    """

    groups: Sequence[GroupPart]
    num_leaves: int

    def ranges(self) -> list[ByteRange]:
        """Return the byte ranges to read, sorted."""
        return sorted(
            place
            for group in self.groups
            for column in group.columns
            for part in column
            for place in part.ranges()
        )

    def decode(self, footer: Footer, segments: Segments, wanted: Sequence[RowRange]) -> pa.Table:
        """Return the wanted rows.

        Args:
            footer: the footer of the file, with its stored bytes.
            segments: all bytes that are needed.
            wanted: the numbers of rows in the file, ascending; all must be in the excerpt.

        Raises:
            DamagedPageError: the pages do not match the index.
            pa.ArrowException: the pages cannot be decoded.
        """
        known: dict[int, Any] = decode_plain(self.groups, footer, segments, wanted)
        count = len(self.groups[0].columns)
        left = [number for number in range(count) if number not in known]
        if left:
            groups = [
                GroupPart(group.first_row, [group.columns[number] for number in left])
                for group in self.groups
            ]
            rest = Excerpt(groups, self.num_leaves)
            known |= zip(left, rest._decode(footer, segments, wanted), strict=True)
        columns = [known[number] for number in range(count)]
        schema = pa.schema([field for field, _ in columns])
        schema = schema.with_metadata(footer.arrow_schema.metadata)
        return pa.Table.from_arrays([values for _, values in columns], schema=schema)

    def _decode(self, footer: Footer, segments: Segments, wanted: Sequence[RowRange]) -> list[Any]:
        """Return the field and the wanted values of each column, which Arrow decodes."""
        texts = footer.texts
        data, num_bytes, encoded = self._file(footer.described, segments)
        num_rows = sum(end - start for start, end in wanted)
        dictionaries = [
            texts[leaf]
            for leaf, (num_decoded, num_entries) in encoded.items()
            if leaf in texts
            and num_rows <= _FEW_OF_DICTIONARY * num_decoded
            and num_entries <= _SMALL_DICTIONARY * num_decoded
        ]

        def opened() -> pq.ParquetFile:
            return open_file(pa.BufferReader(data), texts=dictionaries)

        groups = range(len(self.groups))
        found: dict[int, Any] = {}
        with opened() as file:
            for rows, numbers in self._by_rows().items():
                parts = [
                    (str(number), part.leaf)
                    for number in numbers
                    for part in self.groups[0].columns[number]
                ]
                tops, leaves = [top for top, _ in parts], [leaf for _, leaf in parts]
                if num_bytes > _THREADED_BYTES:
                    read = read_side_by_side(opened, groups, leaves, tops, [1] * len(leaves))
                else:
                    read = read_groups(file, groups, leaves)
                if read.num_columns != len(numbers):
                    raise DamagedPageError(
                        f"expected {len(numbers)} columns, found {read.num_columns}"
                    )
                cut = [_cut(values, rows, wanted) for values in read.columns]
                table = pa.Table.from_arrays(cut, schema=read.schema)
                shown = as_texts(
                    table, [name for name in dictionaries if name in table.schema.names]
                )
                decoded: list[Any] = shown.columns
                found |= zip(numbers, zip(shown.schema, decoded, strict=True), strict=True)
        return [found[number] for number in range(len(found))]

    def _by_rows(self) -> dict[tuple[RowRange, ...], list[int]]:
        """Return the numbers of the columns by the rows on their pages.

        Arrow reads only columns with the same number of rows into one table.
        """
        found: dict[tuple[RowRange, ...], list[int]] = {}
        for number in range(len(self.groups[0].columns)):
            rows = tuple(
                (group.first_row + start, group.first_row + end)
                for group in self.groups
                for start, end in group.columns[number][0].rows
            )
            found.setdefault(rows, []).append(number)
        return found

    def _file(
        self, footer: Described, segments: Segments
    ) -> tuple[bytes, int, dict[int, tuple[int, int]]]:
        """Return a Parquet file of the excerpt, its decoded size, and its dictionary columns.

        Dictionary columns have only values in a dictionary. For each of them, the result contains
        the number of values and the number of entries.
        """
        before, after = footer.frame
        out, position, num_bytes = [_MAGIC], len(_MAGIC), 0
        encoded: dict[int, tuple[int, int]] = {}
        plain: set[int] = set()
        groups: list[bytes] = []
        all_rows = 0
        for group in self.groups:
            chunks = [_UNWANTED] * self.num_leaves
            num_rows = 0
            for column in group.columns:
                for part in column:
                    stored = _chunk(part, footer, segments, position)
                    out += stored.pieces
                    position += stored.num_bytes
                    num_bytes += stored.uncompressed_bytes
                    chunks[part.leaf] = stored.description
                    if stored.num_entries is not None:
                        values, entries = encoded.get(part.leaf, (0, 0))
                        values += sum(end - start for start, end in part.rows)
                        encoded[part.leaf] = values, entries + stored.num_entries
                    else:
                        plain.add(part.leaf)
                num_rows = max(num_rows, sum(end - start for start, end in column[0].rows))
            groups.append(_group(chunks, num_rows, position))
            all_rows += num_rows
        described = b"".join([before, b"\x16", _varint(all_rows), b"\x19", _structs(groups), after])
        out += [described, struct.pack("<I", len(described)), _MAGIC]
        for leaf in plain:
            encoded.pop(leaf, None)
        return b"".join(out), num_bytes, encoded


def plan_excerpt(
    groups: Sequence[tuple[int, int, Sequence[RowRange]]],
    columns: Sequence[Sequence[int]],
    whole_part: Callable[[int, int], Part],
    num_leaves: int,
    size_bytes: int,
) -> Excerpt | None:
    """Choose the pages to read; return None if reading whole column chunks is about as fast.

    Args:
        groups: for each row group to read, its number, the number of its first row in the file, and
            the wanted rows (numbers within the row group).
        columns: the leaves of each top-level column.
        whole_part: returns a part with all rows of a row group and a leaf.
        num_leaves: the number of leaf columns of the file.
        size_bytes: the length of the file.
    """
    planned = [
        GroupPart(
            first_row,
            [
                _fewest_pages([whole_part(group, leaf) for leaf in leaves], rows)
                for leaves in columns
            ],
        )
        for group, first_row, rows in groups
    ]
    parts = [part for group in planned for column in group.columns for part in column]
    if all(part.pages is None for part in parts):
        return None
    fits = all(end <= size_bytes for part in parts for _, end in part.ranges())
    return Excerpt(planned, num_leaves) if fits else None


def _fewest_pages(parts: list[Part], wanted: Sequence[RowRange]) -> list[Part]:
    """Reduce the parts of a column to the pages with wanted rows, if that saves enough bytes."""
    pages = [part.pages for part in parts if part.pages is not None]
    ((_, num_rows),) = parts[0].rows
    if len(pages) == len(parts) and num_rows >= PAGED.least_rows:
        rows = aligned(pages, wanted)
        if sum(end - start for start, end in rows) <= PAGED.most_share * num_rows:
            return [part._replace(rows=rows) for part in parts]
    return [part._replace(pages=None) for part in parts]


class _StoredChunk(NamedTuple):
    pieces: list[bytes]
    num_bytes: int
    uncompressed_bytes: int
    description: bytes
    num_entries: int | None  # in the dictionary; None if some values are plain


def _chunk(part: Part, footer: Described, segments: Segments, position: int) -> _StoredChunk:
    """Make a column chunk of the excerpt.

    Args:
        part: the part of the original chunk.
        footer: the footer of the original file.
        segments: the bytes of the part.
        position: the position of the new chunk in the excerpt.
    """
    details = footer.details(part.chunk.details_at)
    pages = part.pages
    if pages is None:
        ((start, end),) = part.ranges()
        moved = position - start
        return _stored(
            [segments.read(start, end)],
            details._replace(
                data_pages=details.data_pages + moved,
                dictionary=details.dictionary + moved if details.dictionary > 0 else 0,
            ),
            None,
        )
    pieces: list[bytes] = []
    headers: list[PageHeader] = []
    for first, last in part.spans():
        data = segments.read(pages.offsets[first], pages.offsets[last])
        counts = [end - start for start, end in pairwise(pages.rows[first : last + 1])]
        headers += read_headers(
            data,
            counts,
            is_repeated=part.is_repeated,
            most_bytes=details.uncompressed_bytes,
        )
        pieces.append(data)
    num_values = sum(header.num_values for header in headers)
    size = sum(header.uncompressed_bytes for header in headers)
    dictionary, num_entries = 0, None
    if any(header.has_dictionary for header in headers):
        pieces.insert(0, segments.read(pages.start, pages.offsets[0]))
        dictionary = position
        position += len(pieces[0])
        entries = read_dictionary_header(pieces[0], details.uncompressed_bytes)
        size += entries.uncompressed_bytes
        if all(header.has_dictionary for header in headers):
            num_entries = entries.num_values
    return _stored(
        pieces,
        details._replace(
            num_values=num_values,
            uncompressed_bytes=size,
            data_pages=position,
            dictionary=dictionary,
        ),
        num_entries,
    )


def _stored(pieces: list[bytes], details: ChunkDetails, num_entries: int | None) -> _StoredChunk:
    """Return a column chunk with its description, in which Arrow reads only fields 2 and 3."""
    num_bytes = sum(map(len, pieces))
    parts = [
        b"\x26\x00\x1c",
        details.start,
        b"\x16",
        _varint(details.num_values),
        b"\x16",
        _varint(details.uncompressed_bytes),
        b"\x16",
        _varint(num_bytes),
        b"\x26",
        _varint(details.data_pages),
    ]
    if details.dictionary:
        parts += [b"\x26", _varint(details.dictionary)]
    description = b"".join([*parts, b"\x00\x00"])
    return _StoredChunk(pieces, num_bytes, details.uncompressed_bytes, description, num_entries)


def _group(chunks: Sequence[bytes], num_rows: int, num_bytes: int) -> bytes:
    """Encode a row group; field 2 is its number of bytes, field 3 its number of rows."""
    rows, size = _varint(num_rows), _varint(num_bytes)
    return b"".join([b"\x19", _structs(chunks), b"\x16", size, b"\x16", rows, b"\x00"])


def _structs(structs: Sequence[bytes]) -> bytes:
    """Encode a list of structs."""
    length = len(structs)
    if length < 15:
        return b"".join([bytes([length << 4 | thrift.STRUCT]), *structs])
    head = bytearray([15 << 4 | thrift.STRUCT])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return b"".join([bytes(head), *structs])


def _varint(number: int) -> bytes:
    """Encode a non-negative number as a value of a struct."""
    out = bytearray()
    number <<= 1
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def cut_rows(table: pa.Table, rows: Sequence[RowRange], wanted: Sequence[RowRange]) -> pa.Table:
    """Return the wanted rows of a table.

    Args:
        table: the table, whose columns all have the same rows.
        rows: the ranges of row numbers (in the file) that the table contains, ascending.
        wanted: the ranges of row numbers to return, ascending.
    """
    if sum(end - start for start, end in wanted) == table.num_rows:
        return table
    if not table.num_columns:
        return pa.table({"_": pa.nulls(sum(end - start for start, end in wanted))}).select([])
    columns = [_cut(column, rows, wanted) for column in table.columns]
    return pa.table(columns, schema=table.schema)


def _cut(
    values: pa.ChunkedArray[Any], rows: Sequence[RowRange], wanted: Sequence[RowRange]
) -> pa.ChunkedArray[Any]:
    """Return the values of the wanted rows."""
    if len(values) != sum(end - start for start, end in rows):
        raise DamagedPageError(f"expected {rows} rows, found {len(values)} values")
    if list(rows) == list(wanted):
        return values
    chunks: list[pa.Array[Any]] = []
    wanted_runs = iter(wanted)
    run = next(wanted_runs, None)
    offset = 0
    for start, end in rows:
        while run is not None and run[0] < end:
            low, high = max(run[0], start), min(run[1], end)
            chunks += values.slice(offset + low - start, high - low).chunks
            if run[1] > end:
                break
            run = next(wanted_runs, None)
        offset += end - start
    found = pa.chunked_array(chunks, values.type)
    if len(found) != sum(end - start for start, end in wanted):
        raise DamagedPageError(f"expected the rows {wanted} among {rows}")
    return found


# --- Reading small local Parquet files whole


# The maximum size of a file that is read whole. One read is faster than a read per column chunk.
_MOST_BYTES: Final = 512 * 1024
# If the decompressed size is more than this multiple of the stored size, dictionary entries may be
# long.
_USUAL_RATIO: Final = 20
# Files with this number of rows are not read whole, because `repeated_texts` may save time.
_MOST_ROWS: Final = 16_384


def small_bytes(store: Store, path: str) -> bytes | None:
    """Return the content of a small local file; None if the file is not local or not small.

    Args:
        store: the store of the file.
        path: the decoded path.

    Raises:
        DataFileMissingError: the file does not exist.

    Cost: one open and one read. A larger file is not read, even if the log contains a wrong size.
    """
    native = native_path(store, path)
    return None if native is None else guarded(store, path, lambda: _bytes(native))


class KnownSchema:
    """A thread-safe cache of the last file's Arrow schema, which the next file often has, too.

    Arrow derives a schema from the leaf columns, the groups above them, and the footer's key-value
    metadata. For schemas without groups, comparing these inputs takes a third of the time of
    deriving and comparing schemas.
    """

    def __init__(self) -> None:
        self._last: tuple[Any, Any, pa.Schema] | None = None

    def of(self, reader: Any, metadata: Any) -> pa.Schema:
        """Return the Arrow schema of an open file; files with equal schemas share one object."""
        texts, leaves, last = metadata.metadata, metadata.schema, self._last
        is_flat = all(len(path) == 1 for path in reader.column_paths)
        if is_flat and last is not None and last[0] == texts and last[1].equals(leaves):
            return last[2]
        schema: pa.Schema = reader.schema_arrow
        if is_flat:
            self._last = texts, leaves, schema
        return schema


def decode_small(
    store: Store, path: str, data: bytes, choose: ChooseLeaves, known: KnownSchema
) -> pa.Table | None:
    """Decode some columns of a small file.

    Args:
        store: the store of the file, for error messages.
        path: the path, for error messages.
        data: the whole file.
        choose: returns the numbers of the leaf columns to read, ascending, or None to read nothing.
            Its arguments are the footer's metadata and its Arrow schema.
        known: the schema cache, shared with other files.

    Returns:
        The columns, see `ParquetReader.read_leaves`. None if `choose` returns None, if the file has
        many rows, or if its rows may be large.

    Raises:
        DataFileUnreadableError: the file is not a Parquet file, or is damaged.
    """
    return guarded(store, path, lambda: _decode(data, choose, known))


def _decode(data: bytes, choose: ChooseLeaves, known: KnownSchema) -> pa.Table | None:
    # Use the inner reader of `pq.ParquetFile`, because creating a ParquetFile takes as long as
    # reading a column.
    reader: Any = pq.ParquetReader()
    # Do not pre-buffer, because the data is already in memory.
    reader.open(
        pa.BufferReader(data),
        pre_buffer=False,
        coerce_int96_timestamp_unit="us",
        arrow_extensions_enabled=True,  # as in `pq.ParquetFile`
    )
    metadata = reader.metadata
    groups = range(metadata.num_row_groups)
    num_rows = num_bytes = 0
    for group in groups:
        described = metadata.row_group(group)
        num_rows += described.num_rows
        num_bytes += described.total_byte_size
    is_dense = num_bytes > _USUAL_RATIO * len(data)
    if num_rows >= _MOST_ROWS or (is_dense and num_rows * num_bytes > MOST_DECODED_BYTES):
        return None
    leaves = choose(metadata, known.of(reader, metadata))
    if leaves is None:
        return None
    if not leaves:
        return pa.table({"_": pa.nulls(num_rows)}).select([])
    found: pa.Table = reader.read_row_groups(groups, column_indices=leaves, use_threads=False)
    # In a damaged file, columns may have different numbers of rows, which Arrow does not check.
    found.validate()
    if found.num_rows != num_rows:
        raise pa.ArrowInvalid(f"expected {num_rows} rows, found {found.num_rows}")
    return found


def _bytes(native: str) -> bytes | None:
    file = os.open(native, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        size = os.fstat(file).st_size
        if size > _MOST_BYTES:
            return None
        data = os.read(file, size)
        while len(data) < size and (more := os.read(file, size - len(data))):
            data += more  # some file systems return less than requested
        return data
    finally:
        os.close(file)
