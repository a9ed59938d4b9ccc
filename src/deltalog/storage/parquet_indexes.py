"""What stands beside the pages of a column chunk: indexes and Bloom filters, moved with them.

Protocol: none; Apache Parquet's `parquet.thrift` (OffsetIndex, ColumnIndex, BloomFilterHeader)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deltalog.storage import thrift, thrift_fields
from deltalog.storage.parquet_groups import DAMAGES, Page, extra_range
from deltalog.storage.thrift import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage.parquet_groups import ByteSource, StoredChunk


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
        index, end = thrift.read_struct(data)
        places = thrift_fields.structs(index, 1)
        found = [
            Page(thrift_fields.natural(place, 1), thrift_fields.natural(place, 2))
            for place in places
        ]
        if end > len(data) or (pages is not None and found != list(pages)):
            return None
        for place in places:
            place[1] = Value(thrift.INT64, place[1].value + shift)
        return thrift.write_struct(index), len(places)
    except DAMAGES:
        return None


def _is_column_index(data: bytes, num_pages: int) -> bool:
    try:
        index, end = thrift.read_struct(data)
        return end <= len(data) and all(len(index[n].value.values) == num_pages for n in (1, 2, 3))
    except DAMAGES:
        return False


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
