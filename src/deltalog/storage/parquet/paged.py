"""Reading some rows of a Parquet file: only the pages that contain them, if that saves time.

If there is no offset index, or if it does not match the pages, whole column chunks are read, and
the other rows are dropped.

Protocol: none; Apache Parquet's page index
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import groupby
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.storage.parquet.excerpt import PAGED, Excerpt, cut_rows, plan_excerpt
from deltalog.storage.parquet.facts import is_fixed
from deltalog.storage.parquet.pages import (
    DamagedPageError,
    Pages,
    Part,
    RowRange,
    parse_column_index,
    parse_offset_index,
)
from deltalog.storage.parquet.reader import ParquetReader, open_parquet
from deltalog.storage.store import ByteRange, Store, is_local

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.storage.parquet.footer import ColumnChunk
    from deltalog.storage.parquet.parts import Segments

_Key = tuple[int, int, bool]  # row group, leaf, True for the offset index
_REMOTE_GAP_BYTES: Final = 256 * 1024
_LOCAL_GAP_BYTES: Final = 16 * 1024
FEW_GROUPS: Final = 16
"""The maximum number of row groups whose page facts are cached together."""
_MOST_INDEX_BYTES: Final = 16 * 1024 * 1024
_WORTH_WAITING_BYTES: Final = 4 * 1024 * 1024


class PagedReader:
    """Reads rows of a file by their numbers; thread-safe once the index is loaded.

    Args:
        store: the store of the file.
        reader: the reader of the file.
    """

    def __init__(self, store: Store, reader: ParquetReader) -> None:
        self._store = store
        self._reader = reader
        self._is_local = is_local(store)
        self._stored: dict[_Key, tuple[bytes, ColumnChunk]] = {}

    def load_index(
        self, groups: Sequence[int], leaves: Sequence[int], bounded: Sequence[int] = ()
    ) -> None:
        """Load the page index, unless it is faster to read whole column chunks.

        Args:
            groups: the row groups of which some rows will be read.
            leaves: the columns whose pages will be read.
            bounded: the columns whose bounds are requested.

        Raises:
            DataFileUnreadableError: the footer is damaged.

        Cost: one range request; nothing for parts of the index that were loaded or fetched with the
            footer before.
        """
        if not PAGED.is_on:
            return
        footer, starts = self._reader.footer, self._reader.row_group_starts
        big = [group for group in groups if starts[group + 1] - starts[group] >= PAGED.least_rows]
        unknown = [
            (group, leaf, has_pages)
            for group in big
            for leaf in {*leaves, *bounded}
            for has_pages in (True, False)
            if (group, leaf) not in (footer.pages if has_pages else footer.bounds)
            and (has_pages or leaf in bounded)
        ]
        if not unknown:
            return
        chunks = self._reader.column_chunks({*leaves, *bounded})
        places: dict[_Key, ByteRange] = {}
        for group, leaf, has_pages in unknown:
            chunk = chunks[group][leaf]
            place = chunk.offset_index if has_pages else chunk.column_index
            if place is not None and place[1] <= self._reader.size_bytes:
                places[group, leaf, has_pages] = place
            elif has_pages:
                footer.pages[group, leaf] = None
            else:
                footer.bounds[group, leaf] = None
        missing = self._reader.outside_tail(sorted(places.values()))
        if sum(end - start for start, end in missing) > _MOST_INDEX_BYTES:
            return
        if missing and not self._is_local:
            first = bounded or leaves
            stored = sum(chunks[group][leaf].stored_bytes or 0 for group in big for leaf in first)
            if stored < _WORTH_WAITING_BYTES:
                return
        index = self._reader.fetch(missing, max_gap_bytes=_REMOTE_GAP_BYTES)
        for key, place in places.items():
            group, leaf, _ = key
            self._stored[key] = (index.read(*place), chunks[group][leaf])

    def knows(self, groups: Sequence[int], leaves: Sequence[int]) -> bool:
        """Whether there are few row groups, and the bounds of all their pages are loaded."""
        known = self._reader.footer.bounds
        return (
            PAGED.is_on
            and 0 < len(groups) <= FEW_GROUPS
            and len(leaves) > 0
            and all(known.get((group, leaf)) is not None for group in groups for leaf in leaves)
        )

    def bounds(self, group: int, leaf: int) -> tuple[Pages, list[ColumnChunk]] | None:
        """Return the pages of a column chunk and facts about their values; None if not loaded."""
        pages, bounds = self._pages(group, leaf), self._reader.footer.bounds
        if pages is None:
            return None
        if (group, leaf) not in bounds and (stored := self._stored.get((group, leaf, False))):
            self._reader.stored_footer()
            has_order = self._reader.footer.has_column_orders
            column = self._reader.metadata.schema.column(leaf)
            is_fixed = column.physical_type == "FIXED_LEN_BYTE_ARRAY"
            bounds[group, leaf] = parse_column_index(
                stored[0],
                pages,
                has_order=has_order,
                fixed_bytes=column.length if is_fixed else None,
            )
        found = bounds.get((group, leaf))
        return None if found is None else (pages, found)

    def missing_ranges(self, leaves: Sequence[int], wanted: Sequence[RowRange]) -> list[ByteRange]:
        """Return the sorted byte ranges that must be fetched before these rows are read.

        For a local file, the list is empty.

        Args:
            leaves: the numbers of columns, ascending.
            wanted: the numbers of rows in the file, ascending.

        Raises:
            DataFileUnreadableError: the footer is damaged.
        """
        if self._is_local or not leaves or self._reader.footer.whole is not None:
            return []
        excerpt = self._plan(leaves, wanted)
        if excerpt is None:
            return self._reader.missing_ranges(leaves, self._groups(wanted))
        return self._reader.outside_tail(excerpt.ranges())

    def fetch(self, ranges: Sequence[ByteRange]) -> Segments:
        """Fetch ranges of the file; see `ParquetReader.fetch`."""
        gap = _LOCAL_GAP_BYTES if self._is_local else _REMOTE_GAP_BYTES
        return self._reader.fetch(ranges, max_gap_bytes=gap)

    def read(
        self, leaves: Sequence[int], wanted: Sequence[RowRange], segments: Segments | None
    ) -> pa.Table:
        """Read rows of leaf columns by number.

        Args:
            leaves: the numbers of columns, ascending.
            wanted: the numbers of rows in the file, ascending.
            segments: the result of `fetch` for all `missing_ranges`; None fetches them now.

        Raises:
            DataFileMissingError: the file was deleted meanwhile.
            DataFileUnreadableError: the file is damaged.
        """
        excerpt = self._plan(leaves, wanted) if leaves else None
        if excerpt is not None:
            if segments is None:
                segments = self.fetch(self._reader.outside_tail(excerpt.ranges()))
            try:
                self._reader.stored_footer()
                return excerpt.decode(self._reader.footer, segments, wanted)
            except (DamagedPageError, pa.ArrowException, OSError):
                segments = None  # the index may be wrong: read whole column chunks
        groups = self._groups(wanted)
        own = self._own()
        try:
            table = own.read_leaves(leaves, groups, segments)
        finally:
            own.close()
        starts = self._reader.row_group_starts
        return cut_rows(table, [(starts[group], starts[group + 1]) for group in groups], wanted)

    @property
    def is_at_hand(self) -> bool:
        """Whether rows can be read without a request."""
        return self._is_local or self._reader.footer.whole is not None

    def row_bytes(
        self, leaves: Sequence[int], wanted: Sequence[RowRange], segments: Segments | None
    ) -> int:
        """Return the size of a decoded row in bytes; see `read` for the arguments.

        If `segments` is None, strings of remote files count as empty.
        """
        if segments is None and not self.is_at_hand:
            schema = self._reader.metadata.schema
            leaves = [leaf for leaf in leaves if is_fixed(schema.column(leaf))]
        return self._own().row_bytes(leaves, self._groups(wanted), segments)

    def stream(
        self, leaves: Sequence[int], group: int, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a row group in batches, with these leaf columns."""
        own = self._own()
        try:
            yield from own.stream_leaves(leaves, group, batch_rows)
        finally:
            own.close()

    def _own(self) -> ParquetReader:
        """Return another reader of the file, because readers are not thread-safe."""
        return open_parquet(
            self._store,
            self._reader.path,
            size_bytes=self._reader.size_bytes,
            footer=self._reader.footer,
        )

    def _plan(self, leaves: Sequence[int], wanted: Sequence[RowRange]) -> Excerpt | None:
        if not PAGED.is_on or not self._has_pages(leaves, wanted):
            return None
        chunks = self._reader.column_chunks(leaves)
        starts, size = self._reader.row_group_starts, self._reader.size_bytes
        schema = self._reader.metadata.schema

        def whole_part(group: int, leaf: int) -> Part:
            chunk, num_rows = chunks[group][leaf], starts[group + 1] - starts[group]
            is_repeated = schema.column(leaf).max_repetition_level > 0
            return Part(leaf, chunk, self._pages(group, leaf), [(0, num_rows)], is_repeated)

        paths = self._reader.leaves
        columns = [list(column) for _, column in groupby(leaves, lambda leaf: paths[leaf][0])]
        groups = [
            (
                group,
                starts[group],
                [(start - starts[group], end - starts[group]) for start, end in rows],
            )
            for group, rows in self._by_group(wanted)
        ]
        return plan_excerpt(groups, columns, whole_part, len(paths), size)

    def _has_pages(self, leaves: Sequence[int], wanted: Sequence[RowRange]) -> bool:
        """Whether the page positions of at least one of these columns are loaded."""
        return any(
            self._pages(group, leaf) is not None
            for group in self._groups(wanted)
            for leaf in leaves
        )

    def _pages(self, group: int, leaf: int) -> Pages | None:
        known, key = self._reader.footer.pages, (group, leaf)
        if key not in known and (stored := self._stored.get((group, leaf, True))) is not None:
            starts = self._reader.row_group_starts
            pages = parse_offset_index(*stored, starts[group + 1] - starts[group])
            known[key] = pages
            self._reader.footer.num_pages += 1 if pages is None else len(pages.rows)
        return known.get(key)

    def _groups(self, wanted: Sequence[RowRange]) -> list[int]:
        return [group for group, _ in self._by_group(wanted)]

    def _by_group(self, wanted: Sequence[RowRange]) -> list[tuple[int, list[RowRange]]]:
        """Split the wanted rows by row group."""
        starts = self._reader.row_group_starts
        found: list[tuple[int, list[RowRange]]] = []
        for first, end in wanted:
            start = first
            while start < end:
                group = bisect_right(starts, start) - 1
                stop = min(end, starts[group + 1])
                if not found or found[-1][0] != group:
                    found.append((group, []))
                found[-1][1].append((start, stop))
                start = stop
        return found
