"""Pruning inside a file: which row groups, and which of their rows, may match a predicate.

Uses the bounds in the Parquet footer and in its column index like the statistics in the log, by the
same rule: a missing bound keeps the rows. Pages of different columns begin at different rows, so
that the bounds of a page hold for each run of rows that lies in one page of every column. Bounds
of floating-point columns are not used: writers leave NaN out of them, and Spark orders NaN as the
greatest value.

Protocol: none (Parquet column statistics and page index)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.column_mapping import Mode
from deltalog.expressions import columns, conjuncts
from deltalog.expressions.nodes import And
from deltalog.scan.runs import merged
from deltalog.stats import leaves_of_schema, plan_skipping, schema_of_leaves
from deltalog.storage.parquet_bounds import decode_bounds
from deltalog.storage.parquet_excerpt import PAGED
from deltalog.storage.parquet_footer import ColumnChunk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import StructType
    from deltalog.stats.skipping import Skipping
    from deltalog.storage.parquet import ParquetReader
    from deltalog.storage.parquet_paged import PagedReader
    from deltalog.storage.parquet_pages import Pages, Rows

_PARTS: Final = ("minValues", "maxValues", "nullCount")


class FooterPruning:
    """What a file's footer and page index rule out for a predicate.

    Args:
        predicate: resolved; conditions on columns that are not data columns prune nothing.
        data_columns: logical columns that are read from the file.
        leaf_of: index of the file's leaf, for each column that is a leaf there.
        reader: of the file.
    """

    def __init__(
        self,
        predicate: Expression | None,
        data_columns: StructType,
        leaf_of: Mapping[str, int],
        reader: ParquetReader,
    ) -> None:
        self._reader = reader
        self._skipping: Skipping | None = None
        self._leaves: dict[str, int] = {}
        if predicate is None:
            return
        known = set(data_columns.names)
        parts = tuple(
            part for part in conjuncts(predicate) if {path[0] for path in columns(part)} <= known
        )
        self._skipping = plan_skipping(And(parts), _FileFacts(data_columns)) if parts else None
        if self._skipping is not None:
            asked = [path for path, _ in leaves_of_schema(self._skipping.stats_schema)]
            self._leaves = {
                path[1]: leaf_of[path[1]]
                for path in asked
                if len(path) == 2 and path[0] in _PARTS and path[1] in leaf_of
            }

    @property
    def leaves(self) -> list[int]:
        """The columns whose bounds decide."""
        return sorted(self._leaves.values())

    def row_groups(self) -> tuple[int, ...]:
        """Numbers of the row groups that may hold a matching row.

        Cost: local: a read of the footer's bytes. Elsewhere none: they were read before. Some
        microseconds per row group and column of the predicate.
        """
        every = tuple(range(self._reader.metadata.num_row_groups))
        if self._skipping is None:
            return every
        kept_facts, key = self._reader.footer.page_facts, self._key(None)
        if (facts := kept_facts.get(key)) is None:
            rows = list(pairwise(self._reader.row_group_starts))
            counts = [end - start for start, end in rows]
            known = self._reader.column_chunks(self.leaves) if self._leaves else ()
            chunks = {leaf: [group[leaf] for group in known] for leaf in self.leaves}
            facts = kept_facts[key] = rows, self._stats(self._skipping, counts, chunks)
        keep = self._skipping.keep(facts[1]).to_pylist()
        return tuple(group for group, kept in zip(every, keep, strict=True) if kept)

    def rows(self, groups: Sequence[int], paged: PagedReader) -> Sequence[Rows]:
        """The rows of row groups that may match: those of pages whose bounds do not rule it out.

        Args:
            groups: numbers, ascending.
            paged: of the file, its index loaded as far as there is one.

        Cost: some microseconds per page and column of the predicate.
        """
        starts = self._reader.row_group_starts
        every = [(starts[group], starts[group + 1]) for group in groups]
        if self._skipping is None or not self._leaves or not PAGED.is_on:
            return merged(every)
        skipping, kept_facts = self._skipping, self._reader.footer.page_facts
        key = self._key(tuple(groups))
        if (facts := kept_facts.get(key)) is None:
            cells, chunks = self._cells(groups, paged)
            if not cells:
                return merged(every)
            counts = [end - start for start, end in cells]
            facts = cells, self._stats(skipping, counts, chunks)
            if paged.knows(groups, self.leaves):
                kept_facts[key] = facts
        cells, stats = facts
        keep = skipping.keep(stats).to_pylist()
        return merged([cell for cell, kept in zip(cells, keep, strict=True) if kept])

    def _key(self, groups: tuple[int, ...] | None) -> object:
        """What the facts depend on that are kept of pages of row groups; None is the groups."""
        schema = "" if self._skipping is None else str(self._skipping.stats_schema)
        return groups, tuple(self._leaves.items()), schema

    def _cells(
        self, groups: Sequence[int], paged: PagedReader
    ) -> tuple[list[Rows], dict[int, list[ColumnChunk]]]:
        """Runs of rows that lie in one page of each column; none if no pages are known."""
        starts = self._reader.row_group_starts
        cells: list[Rows] = []
        chunks: dict[int, list[ColumnChunk]] = {leaf: [] for leaf in self.leaves}
        is_known = False
        for group in groups:
            found = {leaf: paged.bounds(group, leaf) for leaf in self.leaves}
            edges = {0, starts[group + 1] - starts[group]}
            edges.update(*(known[0].rows for known in found.values() if known is not None))
            inside = list(pairwise(sorted(edges)))
            cells += [(starts[group] + start, starts[group] + end) for start, end in inside]
            for leaf, known in found.items():
                is_known = is_known or known is not None
                chunks[leaf] += _of_cells(inside, known)
        return (cells, chunks) if is_known else ([], chunks)

    def _stats(
        self,
        skipping: Skipping,
        counts: Sequence[int],
        chunks: Mapping[int, Sequence[ColumnChunk]],
    ) -> pa.Table:
        """What is known of runs of rows: how many they are, and what is known of each column."""
        found: list[tuple[tuple[str, ...], pa.Array[Any]]] = []
        for path, kind in leaves_of_schema(skipping.stats_schema):
            values: pa.Array[Any] | None = None
            if path == ("numRecords",):
                values = pa.array(counts, kind)
            elif len(path) == 2 and path[0] in _PARTS and path[1] in self._leaves:
                leaf = self._leaves[path[1]]
                values = _part_of(chunks[leaf], path[0], self._reader, leaf, kind)
            if values is not None:
                found.append((path, values))
        return _stats(found, len(counts))


def _of_cells(
    cells: Sequence[Rows], known: tuple[Pages, Sequence[ColumnChunk]] | None
) -> Iterator[ColumnChunk]:
    """What is known of the rows of each cell, every one of which lies in one page."""
    if known is None:
        yield from [ColumnChunk(is_ordered=True)] * len(cells)
        return
    pages, bounds = known
    for start, end in cells:
        page = pages.around((start, end))[0]
        found, page_rows = bounds[page], pages.rows[page + 1] - pages.rows[page]
        if found.null_count and end - start < page_rows:
            is_null = found.null_count == page_rows
            found = found._replace(null_count=end - start if is_null else None)
        yield found


@dataclass(frozen=True, slots=True)
class _FileFacts:
    """The file's logical columns as the schema of an unpartitioned, unmapped table."""

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    column_mapping_mode: Mode = Mode.NONE


def _stats(found: Sequence[tuple[tuple[str, ...], pa.Array[Any]]], count: int) -> pa.Table:
    """Statistics as a table with a row for each run of rows."""
    shown = schema_of_leaves([(path, values.type) for path, values in found])
    by_path = dict(found)
    arrays = [_nested(field, (field.name,), by_path) for field in shown]
    if not arrays:
        rows = pa.Array.from_buffers(pa.struct([]), count, [None], children=[])
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])  # type: ignore[arg-type]  # a struct array
    return pa.Table.from_arrays(arrays, schema=shown)


def _nested(
    field: pa.Field[Any], path: tuple[str, ...], by_path: Mapping[tuple[str, ...], pa.Array[Any]]
) -> pa.Array[Any]:
    if path in by_path:
        return by_path[path]
    kind: Any = field.type
    children = [_nested(child, (*path, child.name), by_path) for child in kind]
    return pa.StructArray.from_arrays(children, fields=list(kind))


def _part_of(
    chunks: Sequence[ColumnChunk],
    part: str,
    reader: ParquetReader,
    leaf: int,
    kind: pa.DataType,
) -> pa.Array[Any] | None:
    """One statistic of each run of rows; None if the file has no such values of the column."""
    try:
        if part == "nullCount":
            return pa.array([chunk.null_count for chunk in chunks], kind)
        takes_max = part == "maxValues"
        bounds = decode_bounds(
            [chunk.max_value if takes_max else chunk.min_value for chunk in chunks],
            are_ordered=all(chunk.is_ordered for chunk in chunks),
            physical_type=reader.metadata.schema.column(leaf).physical_type,
            arrow_type=reader.arrow_schema.field(reader.leaves[leaf][0]).type,
        )
        return None if bounds is None else bounds.cast(kind)
    except (pa.ArrowException, OverflowError):  # no values of the column's type
        return None
