"""What stands beside the pages of a column chunk: indexes and Bloom filters, moved with them.

Protocol: none; Apache Parquet's `parquet.thrift` (OffsetIndex, ColumnIndex, BloomFilterHeader)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from deltalog.storage import thrift, thrift_fields
from deltalog.storage.parquet_groups import DAMAGES, extra_range
from deltalog.storage.parquet_page_headers import Page
from deltalog.storage.thrift import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage.parquet_groups import ByteSource, StoredChunk


# Heads of fields: the distance from the field before, and the kind. 0 ends a struct.
_FIRST_LIST: Final = bytes([1 << 4 | thrift.LIST])
_PLACE: Final = (1 << 4 | thrift.INT64, 1 << 4 | thrift.INT32, 1 << 4 | thrift.INT64, 0)


class Indexes(NamedTuple):
    """What stands beside the pages of a column chunk, as it is in its new place.

    Attributes:
        bloom: the Bloom filter.
        bounds: the column index.
        offsets: the offset index, of the pages' new places.
    """

    bloom: bytes | None = None
    bounds: bytes | None = None
    offsets: bytes | None = None


def moved_indexes(
    chunk: StoredChunk, pages: Sequence[Page] | None, source: ByteSource, shift: int
) -> Indexes:
    """Indexes and Bloom filter of a column chunk; what is damaged is left out.

    Bounds of floating-point numbers are left out, too: writers leave NaN out of them.

    Args:
        chunk: as it is stored.
        pages: that it has; None trusts its offset index.
        source: of the file.
        shift: from the old place of its pages to the new one.
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
    """An offset index of the pages' new places, and their number; None if it is damaged."""
    try:
        found, moved = _moved_plainly(data, shift) or _moved_wholly(data, shift)
    except DAMAGES:
        return None
    return None if pages is not None and found != list(pages) else (moved, len(found))


def _moved_plainly(data: bytes, shift: int) -> tuple[list[Page], bytes] | None:
    """The pages of an offset index, and the same moved; None if it says anything else.

    Nearly every offset index is one of three numbers for each page: a row group has one for each
    column, and making sense of a whole struct takes five times as long.
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
    """As `_moved_plainly`, of any offset index; what else it says stays."""
    index, end = thrift.read_struct(data)
    if end > len(data):
        raise IndexError(f"an offset index ends at {end} of {len(data)} bytes")
    places = thrift_fields.structs(index, 1)
    pages = [
        Page(thrift_fields.natural(place, 1), thrift_fields.natural(place, 2)) for place in places
    ]
    for place in places:
        place[1] = Value(thrift.INT64, place[1].value + shift)
    return pages, thrift.write_struct(index)


def _is_column_index(data: bytes, num_pages: int) -> bool:
    """Whether it is a column index of so many pages; its bounds are not looked at."""
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
        return end + thrift_fields.natural(header, 1) == len(data)
    except DAMAGES:
        return False


def _read_extra(chunk: StoredChunk, place: str, source: ByteSource) -> bytes | None:
    spot = extra_range(chunk, place)
    if spot is None or spot[1] > source.size_bytes:
        return None
    return source.read(*spot)
