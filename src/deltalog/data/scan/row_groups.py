"""Pruning within a file: finding the row groups, and rows in them, that may match a predicate.

`may_hold_matches` prunes row groups of a checkpoint instead.

Bounds in the Parquet footer and column index are used like statistics in the log: if a bound is
missing, rows may match. Pages of different columns begin at different rows. So rows are divided
into ranges, each of which is within one page of every column. Bounds of floating-point columns are
not used, because writers exclude NaN from bounds, and NaN is the greatest value in Spark.

Protocol: none (Parquet column statistics and page index)
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.small_arrays import small_array
from deltalog.data.scan.task import merged
from deltalog.expressions import columns, conjuncts
from deltalog.expressions.nodes import And
from deltalog.protocol.column_mapping import Mode, physical_name
from deltalog.protocol.stats.schema import (
    MAX_VALUES,
    MIN_VALUES,
    conform_stats,
    has_bounds_in_parquet,
    leaves_of_schema,
    schema_of_leaves,
)
from deltalog.protocol.stats.skipping import Skipping, plan_skipping
from deltalog.schema import StructType, find_field, to_arrow_type
from deltalog.storage.parquet.excerpt import PAGED
from deltalog.storage.parquet.paged import FEW_GROUPS, PagedReader
from deltalog.storage.parquet.pages import Pages, RowRange
from deltalog.storage.parquet.parts import decode_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.log.snapshot.splits import PartialCheckpoint
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.storage.parquet.footer import ColumnChunk
    from deltalog.storage.parquet.reader import ParquetReader

_PARTS: Final = ("minValues", "maxValues", "nullCount")


class FooterPruning:
    """Pruning of a file by its footer and page index.

    Args:
        predicate: a resolved condition; only its conditions on data columns are used.
        data_columns: the logical columns to read from the file.
        leaf_of: for each logical column that is a single leaf in the file, the number of the leaf.
        reader: the file's reader.
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
        self._left: tuple[tuple[int, ...], list[RowRange]] = (), []
        if predicate is None:
            return
        # Cache the plans, because most files have the same columns, and planning a long IN list is
        # slow.
        plans: dict[StructType, Skipping | None] = predicate.fact("plans of files", dict)
        if data_columns not in plans:
            plans[data_columns] = _plan(predicate, data_columns)
        self._skipping = plans[data_columns]
        if self._skipping is not None:
            asked = [path for path, _ in leaves_of_schema(self._skipping.stats_schema)]
            self._leaves = {
                path[1]: leaf_of[path[1]]
                for path in asked
                if len(path) == 2 and path[0] in _PARTS and path[1] in leaf_of
            }

    @property
    def leaves(self) -> list[int]:
        """Return the leaves of the file whose bounds are used."""
        return sorted(self._leaves.values())

    def row_groups(self, paged: PagedReader) -> tuple[int, ...]:
        """Return the numbers of the row groups that may have a matching row.

        Args:
            paged: a reader of the file; if it has loaded page bounds, they are used here.

        Cost: for a local file, one read of the footer; for a remote file, no request. Some
            microseconds per row group and column of the predicate.
        """
        every = tuple(range(self._reader.metadata.num_row_groups))
        if self._skipping is None:
            return every
        known: tuple[int, ...] = ()
        if self._leaves and len(every) <= FEW_GROUPS:
            known = tuple(group for group in every if paged.knows([group], self.leaves))
        self._left = known, self._judge(self._skipping, every, known, paged)
        return tuple(dict.fromkeys(map(self._group_of, self._left[1])))

    def rows(self, groups: Sequence[int], paged: PagedReader) -> Sequence[RowRange]:
        """Return the rows of some row groups that may match, by the bounds of their pages.

        Args:
            groups: numbers of row groups, ascending.
            paged: a reader of the file that has loaded the page index, if there is one.

        Cost: some microseconds per page and column of the predicate, unless `row_groups` has
            already used these pages.
        """
        starts = self._reader.row_group_starts
        every = [(starts[group], starts[group + 1]) for group in groups]
        if self._skipping is None or not self._leaves or not PAGED.is_on:
            return merged(every)
        judged, left = self._left
        if set(groups) <= set(judged):
            return merged(cell for cell in left if self._group_of(cell) in groups)
        known = tuple(
            group for group in groups if any(paged.bounds(group, leaf) for leaf in self.leaves)
        )
        if not known:
            return merged(every)
        return merged(self._judge(self._skipping, groups, known, paged))

    def _group_of(self, cell: RowRange) -> int:
        return bisect_right(self._reader.row_group_starts, cell[0]) - 1

    def _judge(
        self, skipping: Skipping, groups: Sequence[int], known: tuple[int, ...], paged: PagedReader
    ) -> list[RowRange]:
        """Return the row ranges that may match; each range is within one page of every column.

        Args:
            skipping: the plan for the predicate.
            groups: numbers of row groups, ascending.
            known: the row groups whose page bounds are used; for the others, the footer is used.
            paged: a reader of the file.
        """
        kept_facts = self._reader.footer.page_facts
        key = (tuple(groups), known, tuple(self._leaves.items()), str(skipping.stats_schema))
        if (facts := kept_facts.get(key)) is None:
            cells, chunks = self._cells(groups, known, paged)
            counts = [end - start for start, end in cells]
            facts = cells, self._stats(skipping, counts, chunks)
            if not known or paged.knows(known, self.leaves):
                kept_facts[key] = facts
        cells, stats = facts
        keep = skipping.keep(stats).to_pylist()
        return [cell for cell, kept in zip(cells, keep, strict=True) if kept]

    def _cells(
        self, groups: Sequence[int], known: tuple[int, ...], paged: PagedReader
    ) -> tuple[list[RowRange], dict[int, list[ColumnChunk]]]:
        """Return row ranges that are within one page of every column, and their statistics."""
        starts, leaves = self._reader.row_group_starts, self.leaves
        of_groups = self._reader.column_chunks(leaves) if leaves else ()
        groups = [group for group in groups if starts[group] < starts[group + 1]]
        if not known:
            cells = [(starts[group], starts[group + 1]) for group in groups]
            return cells, {leaf: [of_groups[group][leaf] for group in groups] for leaf in leaves}
        cells = []
        chunks: dict[int, list[ColumnChunk]] = {leaf: [] for leaf in leaves}
        for group in groups:
            num_rows = starts[group + 1] - starts[group]
            found: dict[int, tuple[Pages, Sequence[ColumnChunk]]] = {}
            for leaf in leaves:
                of_pages = paged.bounds(group, leaf) if group in known else None
                found[leaf] = of_pages or (
                    Pages(0, (0, 0), (0, num_rows)),
                    [of_groups[group][leaf]],
                )
            edges = {0, num_rows}.union(*(pages.rows for pages, _ in found.values()))
            inside = list(pairwise(sorted(edges)))
            cells += [(starts[group] + start, starts[group] + end) for start, end in inside]
            for leaf, (pages, bounds) in found.items():
                chunks[leaf] += _of_cells(inside, pages, bounds)
        return cells, chunks

    def _stats(
        self,
        skipping: Skipping,
        counts: Sequence[int],
        chunks: Mapping[int, Sequence[ColumnChunk]],
    ) -> pa.Table:
        """Return the statistics of row ranges: number of rows, and bounds of each column."""
        found: list[tuple[tuple[str, ...], pa.Array[Any]]] = []
        for path, kind in leaves_of_schema(skipping.stats_schema):
            values: pa.Array[Any] | None = None
            if path == ("numRecords",):
                values = small_array(counts, kind)
            elif len(path) == 2 and path[0] in _PARTS and path[1] in self._leaves:
                leaf = self._leaves[path[1]]
                values = _part_of(chunks[leaf], path[0], self._reader, leaf, kind)
            if values is not None:
                found.append((path, values))
        return _stats(found, len(counts))


def _plan(predicate: Expression, data_columns: StructType) -> Skipping | None:
    """Return a plan for skipping rows of a file, from the conditions on these columns only."""
    known = set(data_columns.names)
    parts = tuple(
        part for part in conjuncts(predicate) if {path[0] for path in columns(part)} <= known
    )
    if not parts:
        return None
    return plan_skipping(And(parts), _FileFacts(data_columns), is_bounded=has_bounds_in_parquet)


def _of_cells(
    cells: Sequence[RowRange], pages: Pages, bounds: Sequence[ColumnChunk]
) -> Iterator[ColumnChunk]:
    """Yield the statistics of each cell: those of the page that contains it."""
    for start, end in cells:
        page = pages.around((start, end))[0]
        found, page_rows = bounds[page], pages.rows[page + 1] - pages.rows[page]
        if found.null_count and end - start < page_rows:
            is_null = found.null_count == page_rows
            found = found._replace(null_count=end - start if is_null else None)
        yield found


@dataclass(frozen=True, slots=True)
class _FileFacts:
    """The logical columns of a file, as the schema of a table without partitions and mapping."""

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    column_mapping_mode: Mode = Mode.NONE


def _stats(found: Sequence[tuple[tuple[str, ...], pa.Array[Any]]], count: int) -> pa.Table:
    """Return statistics as a table with one row per row range."""
    shown = schema_of_leaves([(path, values.type) for path, values in found])
    by_path = dict(found)
    arrays = [_nested(field, (field.name,), by_path) for field in shown]
    if not arrays:
        rows = pa.Array.from_buffers(pa.struct([]), count, [None], children=[])
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])  # type: ignore[arg-type]  # `rows` is a struct array
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
    """Return one statistic of each row range; None if the file lacks it for the column."""
    try:
        if part == "nullCount":
            return small_array([chunk.null_count for chunk in chunks], kind)
        takes_max = part == "maxValues"
        bounds = decode_bounds(
            [chunk.max_value if takes_max else chunk.min_value for chunk in chunks],
            are_ordered=all(chunk.is_ordered for chunk in chunks),
            physical_type=reader.metadata.schema.column(leaf).physical_type,
            arrow_type=reader.arrow_schema.field(reader.leaves[leaf][0]).type,
        )
        return None if bounds is None else bounds.cast(kind)
    except (pa.ArrowException, OverflowError):  # the bounds may not have the column's type
        return None


# --- Skipping row groups of a checkpoint


_PLACES: Final = {MIN_VALUES: 0, MAX_VALUES: 1}


def may_hold_matches(
    predicate: Expression, configuration: TableConfiguration, groups: Sequence[PartialCheckpoint]
) -> list[bool]:
    """Return, for each row group, whether a file in it may have rows for which `predicate` is true.

    Args:
        predicate: a condition, resolved against the table's schema.
        configuration: the table's configuration.
        groups: parts of a checkpoint that have one row group each.

    Cost: reads the footers that were not read yet.
    """
    columns = _Columns(configuration.schema, configuration.column_mapping_mode)
    skipping = plan_skipping(predicate, columns)
    if skipping is None:
        return [True] * len(groups)
    from deltalog.protocol.stats.parse import nest  # noqa: PLC0415  # imports pyarrow.json

    sources = _sources(skipping.stats_schema, configuration)
    kept = []
    for group in groups:
        bounds = group.bounds(list(dict.fromkeys(sources.values()))) if sources else {}
        known = [
            (path, pa.chunked_array([bounds[leaf].slice(_PLACES[path[0]], 1)]))
            for path, leaf in sources.items()
            if leaf in bounds
        ]
        if not known:
            kept.append(True)
            continue
        stats = conform_stats(nest(known).to_struct_array(), skipping.stats_schema)
        kept.append(bool(skipping.keep(stats)[0].as_py()))
    return kept


@dataclass(frozen=True, slots=True)
class _Columns:
    """The table's columns; none is exact, because a row group has several partition values."""

    schema: StructType
    column_mapping_mode: Mode
    partition_columns: tuple[str, ...] = ()


def _sources(
    schema: pa.Schema, configuration: TableConfiguration
) -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Return the checkpoint's leaf column for each minimum and maximum of a column."""
    mode = configuration.column_mapping_mode
    partitions = {}
    for name in configuration.partition_columns:
        field = find_field(configuration.schema, (name,))
        partitions[physical_name(field, mode)] = to_arrow_type(field.type)
    found = {}
    for path, _ in leaves_of_schema(schema):
        if path[0] not in _PLACES:
            continue
        if path[1] not in partitions:
            found[path] = ("add", "stats_parsed", *path)
        elif _is_read_alike(partitions[path[1]]):
            found[path] = ("add", "partitionValues_parsed", path[1])
    return found


def _is_read_alike(kind: Any) -> bool:
    """Whether all writers parse strings of this type equally, unlike times without a zone."""
    return pt.is_integer(kind) or pt.is_date(kind) or pt.is_decimal(kind) or pt.is_string(kind)
