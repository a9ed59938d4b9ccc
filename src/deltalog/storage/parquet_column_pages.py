"""The pages of column chunks that can be replaced, and rows as such pages.

Protocol: none; Apache Parquet's `parquet.thrift`
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltalog.storage import thrift
from deltalog.storage.byte_sources import EncodedBytes
from deltalog.storage.parquet_footer import column_chunks
from deltalog.storage.parquet_groups import extra_range, read_stored
from deltalog.storage.parquet_page_headers import flat_pages
from deltalog.storage.parquet_pages import (
    DICTIONARY_ENCODINGS,
    parse_column_index,
    parse_offset_index,
)
from deltalog.storage.parquet_sink import encode_parquet

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from deltalog.storage.parquet_footer import ColumnChunk
    from deltalog.storage.parquet_groups import ByteSource, StoredChunk
    from deltalog.storage.parquet_pages import Pages

_ENCODINGS: Final = 2  # of ColumnMetaData


class ColumnPages(NamedTuple):
    """A column chunk of which pages can be replaced.

    Attributes:
        source: where it is.
        chunk: what the footer says of it.
        pages: where its pages are, and which rows they hold.
        plain_bytes: of each page, before it was compressed.
        bounds: what is known of the values of each page; None if it is not.
        is_proven: whether checksums show that the pages are what was written.
    """

    source: ByteSource
    chunk: StoredChunk
    pages: Pages
    plain_bytes: Sequence[int]
    bounds: Sequence[ColumnChunk] | None
    is_proven: bool

    @property
    def num_rows(self) -> int:
        """Rows of the row group."""
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
    """The pages of a column chunk; None if they cannot be replaced.

    Args:
        source: with its pages and indexes.
        chunk: of a column with one value for each row.
        known: the same, as the footer's reader says it.
        num_rows: of the row group.
        has_order: whether the footer says which order bounds follow.
        fixed_bytes: the length of every value, if they have one.
        may_be_cut: whether the writer may have cut off long bounds.

    Raises:
        DataFileUnreadableError: pages are not where the footer says, or have not as many values.

    Cost: as `check_pages`.
    """
    place = extra_range(chunk, "offsets")
    if has_dictionary(chunk) or place is None or place[1] > source.size_bytes:
        return None
    pages = parse_offset_index(source.read(*place), known, num_rows)
    found, is_proven = flat_pages(chunk, num_rows, source)
    rows = tuple(accumulate((one.num_values for one in found), initial=0))
    offsets = (*(one.page.start for one in found), chunk.end)
    # An index that leaves out a row of one page would put rows of two columns together.
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
    """The columns of some rows, each as pages; None for one that cannot be so.

    Args:
        rows: one or more, of columns with one value for each row.
        options: as `encode_parquet`'s.
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
    """Whether values of a column chunk may be entries of a dictionary."""
    found = chunk.meta.get(_ENCODINGS)
    if found is None or found.kind not in thrift.LISTS or found.value.kind not in thrift.INTEGERS:
        return True
    return not DICTIONARY_ENCODINGS.isdisjoint(found.value.values)
