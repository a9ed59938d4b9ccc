"""Row group pruning: which row groups of a file may hold a matching row.

Uses the bounds in the Parquet footer like the statistics in the log, by the same rule: a missing
bound keeps the row group. Bounds of floating-point columns are not used: writers leave NaN out of
them, and Spark orders NaN as the greatest value.

Protocol: none (Parquet column statistics)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.column_mapping import Mode
from deltalog.expressions import columns, conjuncts
from deltalog.expressions.nodes import And
from deltalog.stats import leaves_of_schema, plan_skipping, schema_of_leaves
from deltalog.storage.parquet_bounds import decode_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import StructType
    from deltalog.storage.parquet import ParquetReader
    from deltalog.storage.parquet_footer import ColumnChunk

_PARTS: Final = ("minValues", "maxValues", "nullCount")


def surviving_row_groups(
    predicate: Expression | None,
    data_columns: StructType,
    leaf_of: Mapping[str, int],
    reader: ParquetReader,
) -> tuple[int, ...]:
    """Numbers of the row groups that may hold a matching row.

    Args:
        predicate: resolved; conditions on columns that are not data columns prune nothing.
        data_columns: logical columns that are read from the file.
        leaf_of: index of the file's leaf, for each column that is a leaf there.
        reader: of the file.

    Cost: local: a read of the footer's bytes. Elsewhere none: they were read before. Some
    microseconds per row group and column of the predicate.
    """
    every = tuple(range(reader.metadata.num_row_groups))
    if predicate is None:
        return every
    known = set(data_columns.names)
    parts = tuple(
        part for part in conjuncts(predicate) if {path[0] for path in columns(part)} <= known
    )
    if not parts:
        return every
    skipping = plan_skipping(And(parts), _RowGroupFacts(data_columns))
    if skipping is None:
        return every
    keep = skipping.keep(_footer_stats(reader, skipping.stats_schema, leaf_of))
    return tuple(group for group, kept in zip(every, keep.to_pylist(), strict=True) if kept)


@dataclass(frozen=True, slots=True)
class _RowGroupFacts:
    """The file's logical columns as the schema of an unpartitioned, unmapped table."""

    schema: StructType
    partition_columns: tuple[str, ...] = ()
    column_mapping_mode: Mode = Mode.NONE


def _footer_stats(reader: ParquetReader, schema: pa.Schema, leaf_of: Mapping[str, int]) -> pa.Table:
    """The bounds of each row group as statistics; those that a footer can't give are left out."""
    metadata = reader.metadata
    asked = list(leaves_of_schema(schema))
    known = {
        path: leaf_of[path[1]]
        for path, _ in asked
        if len(path) == 2 and path[0] in _PARTS and path[1] in leaf_of
    }
    groups = reader.column_chunks(known.values()) if known else []
    found: list[tuple[tuple[str, ...], pa.Array[Any]]] = []
    for path, kind in asked:
        values: pa.Array[Any] | None = None
        if path == ("numRecords",):
            counts = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
            values = pa.array(counts, kind)
        elif path in known:
            chunks = [group[known[path]] for group in groups]
            values = _part_of(chunks, path[0], reader, known[path], kind)
        if values is not None:
            found.append((path, values))
    shown = schema_of_leaves([(path, values.type) for path, values in found])
    by_path = dict(found)
    arrays = [_nested(field, (field.name,), by_path) for field in shown]
    if not arrays:
        rows = pa.Array.from_buffers(pa.struct([]), metadata.num_row_groups, [None], children=[])
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
    """One statistic of each row group; None if the footer has no such values of the column."""
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
