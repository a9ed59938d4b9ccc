"""Decoding single pages of plain fixed-width values, which a lookup by row number reads.

Arrow opens a file, plans a read and starts a decoder for each column chunk, which takes longer than
copying the few values. A page of another kind, with NULLs, or with any irregularity is left to
Arrow.

Protocol: none; Apache Parquet's data pages, PLAIN encoding
"""

from __future__ import annotations

import sys
import zlib
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from deltalog._util.kernels import Array
from deltalog.storage.parquet.pages import DamagedPageError, DataPage, read_data_pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalog.storage.parquet.facts import Footer
    from deltalog.storage.parquet.pages import GroupPart, Part, RowRange
    from deltalog.storage.parquet.parts import Segments

_PLAIN: Final = 0
_RLE: Final = 3
_MOST_LEVEL_BYTES: Final = 16
"""The maximum number of bytes of a page's definition levels if no value is NULL."""
_CODECS: Final[Mapping[int | None, Any]] = {
    0: None,
    1: "snappy",
    2: "gzip",
    6: "zstd",
    7: "lz4_raw",
}
_WIDTHS: Final = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
"""The number of bytes of a value, by physical type."""
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
"""Either header, as Arrow accepts both."""
_KINDS: Final = frozenset(
    {pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.timestamp("us")}
)
_MOST_PAGES: Final = 256
"""The maximum number of pages that are decoded one by one; Arrow decodes many pages faster."""


Values: TypeAlias = "tuple[pa.Field[Any], Array]"


def decode_plain(
    groups: Sequence[GroupPart], footer: Footer, segments: Segments, wanted: Sequence[RowRange]
) -> dict[int, Values]:
    """Return the wanted values of those columns of an excerpt that need no reader of Arrow.

    Args:
        groups: the part of each row group of an excerpt.
        footer: the footer of the file, with its stored bytes.
        segments: all bytes that are needed.
        wanted: the numbers of rows in the file, ascending; all must be in the excerpt.

    Returns:
        The number of the column in the excerpt → its field, and its wanted values.

    Raises:
        DamagedPageError: the pages do not match the index.
        pa.ArrowException, OSError: a page cannot be decompressed.

    Cost: about 50 microseconds per page.
    """
    if sys.byteorder != "little":
        return {}
    found: dict[int, Values] = {}
    for number in range(len(groups[0].columns)):
        parts = [group.columns[number] for group in groups]
        field = _plain_field(parts, footer)
        if field is not None:
            first_rows = [group.first_row for group in groups]
            column = zip(first_rows, (part for (part,) in parts), strict=True)
            values = _values(column, field, footer, segments, wanted)
            if values is not None:
                found[number] = field, values
    return found


def _plain_field(parts: Sequence[Sequence[Part]], footer: Footer) -> pa.Field[Any] | None:
    """Return the field of a column whose pages may be decoded one by one, or None.

    Args:
        parts: for each row group, the parts of the column's leaves.
        footer: the footer of the file.
    """
    if any(len(leaves) > 1 or leaves[0].pages is None for leaves in parts):
        return None
    leaf = parts[0][0].leaf
    num_pages = sum(last - first for (part,) in parts for first, last in part.spans())
    names, path = footer.arrow_schema.names, footer.leaves[leaf]
    if num_pages > _MOST_PAGES or len(path) > 1 or names.count(path[0]) != 1:
        return None
    field = footer.arrow_schema.field(path[0])
    is_repeated = footer.metadata.schema.column(leaf).max_repetition_level > 0
    return None if is_repeated or _plain_kind(field.type) is None else field


def _plain_kind(kind: Any) -> Any:
    """Return the type, without a time zone, if its values are stored as Arrow's; else None."""
    plain = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind
    return plain if plain in _KINDS else None


def _values(
    column: Iterable[tuple[int, Part]],
    field: pa.Field[Any],
    footer: Footer,
    segments: Segments,
    wanted: Sequence[RowRange],
) -> Array | None:
    """Return the wanted values of a column, or None if Arrow must decode its pages.

    Args:
        column: for each row group, the number of its first row in the file, and the pages.
        field: the field of the column.
        footer: see `decode_plain`, as the other arguments.
        segments: see above.
        wanted: see above.
    """
    width = field.type.bit_width // 8
    pieces: list[memoryview] = []
    for first_row_of_group, part in column:
        codec_number, leaf = part.chunk.codec, footer.metadata.schema.column(part.leaf)
        if codec_number not in _CODECS or _WIDTHS.get(leaf.physical_type) != width:
            return None
        codec = _CODECS[codec_number]
        is_optional = leaf.max_definition_level > 0
        runs = _within(wanted, first_row_of_group, footer)
        for first_row, page in _pages(part, segments):
            data = _decoded(page, width, codec, is_optional=is_optional)
            if data is None:
                return None
            last_row = first_row + page.num_values
            for start, end in runs:
                low, high = max(start, first_row), min(end, last_row)
                if low < high:
                    pieces.append(data[(low - first_row) * width : (high - first_row) * width])
    joined = pa.py_buffer(b"".join(pieces))
    count = sum(end - start for start, end in wanted)
    if joined.size != count * width:
        raise DamagedPageError(f"expected {count} values of {wanted}, found {joined.size} bytes")
    return pa.Array.from_buffers(field.type, count, [None, joined])


def _within(wanted: Sequence[RowRange], first: int, footer: Footer) -> list[RowRange]:
    """Return the wanted rows of the row group that begins at row `first`, numbered within it."""
    starts = footer.row_group_starts
    end = starts[bisect_right(starts, first)]  # row groups without rows begin at `first`, too
    return [
        (max(start, first) - first, min(stop, end) - first)
        for start, stop in wanted
        if start < end and stop > first
    ]


def _pages(part: Part, segments: Segments) -> list[tuple[int, DataPage]]:
    """Return the pages of a part, each after the number of its first row in the row group."""
    pages, most_bytes = part.pages, part.chunk.uncompressed_bytes
    if pages is None or most_bytes is None:
        raise DamagedPageError("expected single pages of a column chunk")
    found: list[tuple[int, DataPage]] = []
    for first, last in part.spans():
        data = segments.read(pages.offsets[first], pages.offsets[last])
        counts = [end - start for start, end in pairwise(pages.rows[first : last + 1])]
        read = read_data_pages(data, counts, is_repeated=False, most_bytes=most_bytes)
        found += zip(pages.rows[first:last], read, strict=True)
    return found


def _decoded(page: DataPage, width: int, codec: Any, *, is_optional: bool) -> memoryview | None:
    """Return the values of a page, or None if it has NULLs or is not a plain page of this width."""
    num_bytes = page.num_values * width
    if page.encoding != _PLAIN or page.num_nulls:
        return None
    levels, size = page.level_bytes, page.uncompressed_bytes
    if levels is not None:  # a data page of version 2, whose levels are not compressed
        if size - levels != num_bytes:
            return None
        if is_optional and not _all_defined(page.body[:levels], page.num_values):
            return None
        return _decompressed(page.body[levels:], num_bytes, codec if page.is_compressed else None)
    if not num_bytes <= size <= num_bytes + 4 + _MOST_LEVEL_BYTES:
        return None
    view = _decompressed(page.body, size, codec)
    if view is None or not is_optional:
        return view if size == num_bytes else None
    end = 4 + int.from_bytes(view[:4], "little")
    if size - end != num_bytes or page.level_encoding != _RLE:
        return None
    return view[end:] if _all_defined(bytes(view[4:end]), page.num_values) else None


def _decompressed(data: bytes, size: int, codec: Any) -> memoryview | None:
    """Return the decompressed bytes, or None if their number is not `size`.

    `pa.Codec` does not return their number. If it is less than `size`, the end of the buffer has
    arbitrary bytes; only for Zstandard, that is an error.
    """
    if codec is None:
        return memoryview(data) if len(data) == size else None
    if codec == "gzip":
        inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            found = inflate.decompress(data, size + 1)
        except zlib.error as error:
            raise DamagedPageError(f"cannot decompress a page: {error}") from error
        whole = inflate.eof and not inflate.unused_data and len(found) == size
        return memoryview(found) if whole else None
    decoder = pa.Codec(codec)
    if codec != "zstd":
        try:
            decoder.decompress(data, size - 1)
        except (pa.ArrowException, OSError):
            pass  # as expected, because the buffer is too small
        else:
            return None
    return memoryview(decoder.decompress(data, size))


def _all_defined(levels: bytes, num_values: int) -> bool:
    """Return whether definition levels are one run of the level 1, so that no value is NULL."""
    run, shift = 0, 0
    for place, byte in enumerate(levels):
        run |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return run == num_values << 1 and levels[place + 1 :] == b"\x01"
    return False
