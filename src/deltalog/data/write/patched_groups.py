"""Removing rows from row groups while decoding and encoding as few pages as possible.

This module chooses these pages, and computes the statistics of the remaining rows. Pages without
removed rows are copied. Some columns are decoded and encoded completely, because their pages cannot
be replaced: columns with a dictionary, which may have entries of removed rows; nested columns; and
columns without an offset index.

Protocol: Data Files, Per-file Statistics
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.data.write.copied_stats import are_bounds_enough, check_decoding
from deltalog.errors import InternalError
from deltalog.protocol.deletion_vectors import DeletionBitmap, keep_mask
from deltalog.protocol.stats.schema import find_leaf
from deltalog.storage.parquet.excerpt import Excerpt
from deltalog.storage.parquet.groups import extra_range
from deltalog.storage.parquet.pages import DamagedPageError, GroupPart, Part, RowRange
from deltalog.storage.parquet.parts import Leaf, Segments, leaf_columns
from deltalog.storage.parquet.patch import (
    EncodedLeaf,
    PagedLeaf,
    Run,
    column_pages,
    encoded_pages,
    has_dictionary,
    patched_group,
)
from deltalog.storage.parquet.splice import CUTS_NOTHING, GroupsToCopy, encoded_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.protocol.stats.collect import StatsCollector
    from deltalog.storage.parquet.groups import (
        ByteSource,
        StoredChunk,
        StoredFooter,
        StoredGroup,
    )
    from deltalog.storage.parquet.patch import ColumnPages, PatchedLeaf
    from deltalog.storage.parquet.reader import ParquetReader

_BLOCK_ROWS: Final = 5_000  # about the number of rows of a page


@dataclass(slots=True)
class Patching:
    """The conditions under which pages are replaced instead of whole row groups; tests change them.

    Args:
        is_on: whether to replace pages at all.
        least_rows: minimum number of rows of a row group.
        most_rows: maximum number of rows of a row group, which limits the memory for its columns.
        most_share: maximum share of rows that are on pages to replace. If the share is greater, all
            pages are decoded.
        most_bytes: maximum size of the columns that are decoded completely.
    """

    is_on: bool = True
    least_rows: int = 16_384
    most_rows: int = 1 << 24
    most_share: float = 0.5
    most_bytes: int = 64 * 1024 * 1024


PATCHING: Final = Patching()


def is_worth_patching(gone: DeletionBitmap, rows: RowRange) -> bool:
    """Return whether only few pages of a row group have removed rows.

    Args:
        gone: the numbers of the removed rows in the file.
        rows: the rows of the row group.

    Cost: some microseconds for each 5,000 rows; no file is read.
    """
    start, end = rows
    if not PATCHING.is_on or not PATCHING.least_rows <= end - start <= PATCHING.most_rows:
        return False
    if gone.count_between(start, end) > PATCHING.most_share * (end - start):
        return False
    blocks = [(at, min(end, at + _BLOCK_ROWS)) for at in range(start, end, _BLOCK_ROWS)]
    num_hit = sum(gone.count_between(*block) > 0 for block in blocks)
    return num_hit <= PATCHING.most_share * len(blocks)


def are_pages_apart(group: StoredGroup, schema: pa.Schema, *, created_by: str, codec: int) -> bool:
    """Return whether most bytes of a row group are in columns whose pages can be replaced.

    The other columns are decoded completely in memory.

    Args:
        group: the row group.
        schema: the file's schema.
        created_by: the writer that the file's footer states.
        codec: number of the compression codec of new pages.
    """
    apart = whole = 0
    for leaf, chunk in zip(leaf_columns(schema), group.chunks, strict=True):
        has_index = extra_range(chunk, "offsets") is not None
        has_index = has_index and (
            chunk.is_floating
            or (extra_range(chunk, "bounds") is not None and _are_bounds_whole(chunk, created_by))
        )
        is_plain = chunk.codec == codec and not has_dictionary(chunk)
        if len(leaf.parts) == 1 and has_index and is_plain:
            apart += chunk.plain_bytes
        else:
            whole += chunk.plain_bytes
    return whole <= min(apart, PATCHING.most_bytes)


def _are_bounds_whole(chunk: StoredChunk, created_by: str) -> bool:
    """Whether the bounds of pages are exact.

    If a file of deltalog contains copied strings of a writer that truncates bounds, the flags in
    the footer do not say that they are exact.
    """
    return not chunk.is_text or (chunk.are_bounds_exact and created_by.startswith(CUTS_NOTHING))


class GroupPatch:
    """A row group without its removed rows.

    Args:
        reader: a reader of the file; only for this thread.
        source: the bytes of the file.
        footer: the footer of the file.
        number: the number of the row group.
        gone: the numbers of the removed rows in the file.
        schema: the schema of the file, with the types of the table.
        options: options for encoding pages; see `encode_parquet`.
        segments: the fetched column chunks of the row group; None fetches the chunks to decode.
    """

    def __init__(
        self,
        reader: ParquetReader,
        source: ByteSource,
        footer: StoredFooter,
        number: int,
        *,
        gone: DeletionBitmap,
        schema: pa.Schema,
        options: Mapping[str, Any],
        segments: Segments | None = None,
    ) -> None:
        self._reader = reader
        self._source = source
        self._footer = footer
        self._number = number
        self._gone = gone
        self._schema = schema
        self._options = options
        self._segments = segments
        self._group = footer.groups[number]
        self._first_row = reader.row_group_starts[number]
        self._leaves: list[Leaf] = list(leaf_columns(schema))
        self.num_rows: int = self._group.num_rows - gone.count_between(
            self._first_row, self._first_row + self._group.num_rows
        )

    def encode(self, stats: StatsCollector) -> GroupsToCopy:
        """Decode and encode the necessary pages, and collect the statistics of the remaining rows.

        Args:
            stats: the collector.

        Raises:
            DataFileUnreadableError: a page or a column is damaged.

        Cost: decodes and encodes the pages with removed rows, and the columns whose pages cannot be
            replaced; decodes columns with unknown bounds, and columns without checksums.
        """
        paged = self._paged_leaves()
        whole = {leaf.parts[0] for n, leaf in enumerate(self._leaves) if n not in paged}
        known = self._known_stats(stats, paged)
        columns = list(enumerate(stats.columns()))
        roots = whole | {path[0] for number, (path, _) in columns if number not in known}
        wanted = [n for n, leaf in enumerate(self._leaves) if leaf.parts[0] in roots]
        table = self._left(self._reader.read_leaves(wanted, [self._number], self._segments), 0)
        unproven = [n for n, leaf in paged.items() if not leaf.is_proven and n not in wanted]
        rows = self._group.num_rows
        check_decoding(self._reader, self._number, sorted(unproven), rows, self._segments)
        for number, (path, _) in columns:
            if number in known:
                bounds, null_count = known[number]
                stats.update_column(number, bounds, null_count=null_count)
            elif (values := find_leaf(table, path)) is not None:
                for chunk in values.chunks:
                    stats.update_column(number, chunk)
        stats.count_rows(self.num_rows)
        encoded = self._encoded(table.select([n for n in table.column_names if n in whole]))
        leaves: list[PatchedLeaf] = [
            paged[number] if number in paged else next(encoded)
            for number in range(len(self._leaves))
        ]
        return patched_group(self._footer, self._group, leaves, self.num_rows)

    def _known_stats(
        self, stats: StatsCollector, paged: Mapping[int, PagedLeaf]
    ) -> dict[int, tuple[pa.Array[Any], int]]:
        """Return, by column number, the smallest and largest value, and the number of NULLs."""
        found: dict[int, tuple[pa.Array[Any], int]] = {}
        leaf_of = {self._leaves[number].parts: leaf for number, leaf in paged.items()}
        for number, (path, field) in enumerate(stats.columns()):
            leaf = leaf_of.get(path)
            if leaf is None or leaf.null_count is None:
                continue
            if not are_bounds_enough(stats, number, field):
                continue
            if not stats.has_bounds(number):
                found[number] = pa.array([], leaf.arrow_type), leaf.null_count
            elif leaf.bounds is not None:
                found[number] = leaf.bounds.values, leaf.null_count
        return found

    def _paged_leaves(self) -> dict[int, PagedLeaf]:
        """Return the leaf columns whose pages are replaced."""
        by_rows: dict[tuple[RowRange, ...], dict[int, tuple[ColumnPages, list[RowRange]]]] = {}
        chunks = self._reader.column_chunks()[self._number]
        for number, leaf in enumerate(self._leaves):
            if len(leaf.parts) > 1:
                continue
            column = self._reader.metadata.schema.column(number)
            is_fixed = column.physical_type == "FIXED_LEN_BYTE_ARRAY"
            chunk = self._group.chunks[number]
            pages = column_pages(
                self._source,
                chunk,
                chunks[number],
                self._group.num_rows,
                has_order=self._footer.has_orders,
                fixed_bytes=column.length if is_fixed else None,
                may_be_cut=not _are_bounds_whole(chunk, self._footer.created_by),
            )
            if pages is None or (pages.bounds is None and not chunk.is_floating):
                continue
            spans = list(self._hit(pages))
            rows = tuple((pages.pages.rows[first], pages.pages.rows[end]) for first, end in spans)
            cost = sum(end - start + _BLOCK_ROWS for start, end in rows) - _BLOCK_ROWS
            if cost <= PATCHING.most_share * self._group.num_rows:
                by_rows.setdefault(rows, {})[number] = pages, spans
        found: dict[int, PagedLeaf] = {}
        for rows, columns in by_rows.items():
            found.update(self._replaced(rows, columns))
        return found

    def _hit(self, pages: ColumnPages) -> Iterator[RowRange]:
        """Yield ranges of adjacent pages that have removed rows."""
        first: int | None = None
        for number, (start, end) in enumerate(pairwise(pages.pages.rows)):
            is_hit = self._gone.count_between(self._first_row + start, self._first_row + end) > 0
            if is_hit and first is None:
                first = number
            elif not is_hit and first is not None:
                yield first, number
                first = None
        if first is not None:
            yield first, len(pages.pages.rows) - 1

    def _replaced(
        self,
        rows: Sequence[RowRange],
        columns: Mapping[int, tuple[ColumnPages, Sequence[RowRange]]],
    ) -> Iterator[tuple[int, PagedLeaf]]:
        """Decode pages that begin at the same rows in all columns; encode the remaining rows."""
        table = self._decoded(rows, {number: pages for number, (pages, _) in columns.items()})
        if table is None:
            return
        new: list[list[ColumnPages | None]] = []
        num_gone = [0] * len(columns)
        at = 0
        for start, end in rows:
            before = table.slice(at, end - start)
            after = self._left(before, start)
            at += end - start
            for place, (one, other) in enumerate(zip(before.columns, after.columns, strict=True)):
                num_gone[place] += one.null_count - other.null_count
            is_empty = not after.num_rows
            new.append([None] * len(columns) if is_empty else encoded_pages(after, **self._options))
            if not is_empty and not all(
                _continues(pages, one)
                for (pages, _), one in zip(columns.values(), new[-1], strict=True)
            ):
                return
        for place, (number, (pages, spans)) in enumerate(columns.items()):
            leaf = PagedLeaf(
                pages,
                [Run(*span, one[place]) for span, one in zip(spans, new, strict=True)],
                num_gone[place],
                physical_type=self._reader.metadata.schema.column(number).physical_type,
                arrow_type=self._leaves[number].type,
            )
            # A column whose bounds would be lost is encoded again completely, because readers need
            # its bounds.
            if leaf.bounds is not None or pages.chunk.is_floating:
                yield number, leaf

    def _decoded(
        self, rows: Sequence[RowRange], columns: Mapping[int, ColumnPages]
    ) -> pa.Table | None:
        """Decode some rows of columns; None if pages are damaged, so that a full read raises."""
        chunks = self._reader.column_chunks()[self._number]
        parts = [
            [Part(number, chunks[number], pages.pages, rows, is_repeated=False)]
            for number, pages in columns.items()
        ]
        excerpt = Excerpt([GroupPart(self._first_row, parts)], len(self._leaves))
        wanted = [(self._first_row + start, self._first_row + end) for start, end in rows]
        try:
            segments = self._segments or self._reader.fetch(excerpt.ranges())
            self._reader.stored_footer()
            return excerpt.decode(self._reader.footer, segments, wanted)
        except (DamagedPageError, pa.ArrowException, OSError):
            return None

    def _left(self, table: pa.Table, first_row: int) -> pa.Table:
        """Return the remaining rows of `table`, which begins at the row `first_row`."""
        mask = keep_mask(self._gone, self._first_row + first_row, table.num_rows)
        return table if mask is None else table.filter(mask)

    def _encoded(self, table: pa.Table) -> Iterator[EncodedLeaf]:
        """Yield completely encoded columns; a column has a dictionary if the old column has one."""
        if not table.num_columns:
            return
        dictionaries = [
            leaf.path
            for leaf, chunk in zip(self._leaves, self._group.chunks, strict=True)
            if leaf.parts[0] in table.column_names and has_dictionary(chunk)
        ]
        options = {**self._options, "use_dictionary": dictionaries or False}
        groups = encoded_groups(table, row_group_size=table.num_rows, **options)
        if len(groups.numbers) != 1:
            raise InternalError(f"{table.num_rows} rows make {len(groups.numbers)} row groups")
        for number in range(len(groups.footer.groups[0].chunks)):
            yield EncodedLeaf(groups, number)


def _continues(old: ColumnPages, new: ColumnPages | None) -> bool:
    """Whether the new pages can be in the same column chunk as the old pages."""
    return new is not None and new.chunk.codec == old.chunk.codec
