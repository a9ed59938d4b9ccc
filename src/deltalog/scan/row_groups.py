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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.expressions import Expression
    from deltalog.schema import StructType
    from deltalog.storage.parquet import ParquetReader

_PARTS: Final = {"minValues": "min", "maxValues": "max", "nullCount": "null_count"}


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

    Cost: no I/O; the footer was read before.
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
    """The footer's bounds of each row group in the form of statistics, as far as it has them."""
    groups = [reader.metadata.row_group(n) for n in range(reader.metadata.num_row_groups)]
    found: list[tuple[tuple[str, ...], pa.Array[Any]]] = []
    for path, kind in leaves_of_schema(schema):
        values: pa.Array[Any] | None = None
        if path == ("numRecords",):
            values = pa.array([group.num_rows for group in groups], kind)
        elif len(path) == 2 and path[0] in _PARTS and path[1] in leaf_of:
            values = _bounds(groups, leaf_of[path[1]], _PARTS[path[0]], kind)
        if values is not None:
            found.append((path, values))
    shown = schema_of_leaves([(path, values.type) for path, values in found])
    by_path = dict(found)
    arrays = [_nested(field, (field.name,), by_path) for field in shown]
    if not arrays:
        rows = pa.Array.from_buffers(pa.struct([]), len(groups), [None], children=[])
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


def _bounds(groups: Sequence[Any], leaf: int, name: str, kind: pa.DataType) -> pa.Array[Any] | None:
    """One statistic of the footer for each row group; None if it does not fit the column's type."""
    values: list[Any] = []
    for group in groups:
        statistics = group.column(leaf).statistics
        if statistics is None:
            values.append(None)
        elif name == "null_count":
            values.append(statistics.null_count if statistics.has_null_count else None)
        else:
            usable = statistics.has_min_max and statistics.physical_type not in {"FLOAT", "DOUBLE"}
            values.append(_bound(statistics, name) if usable else None)
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None


def _bound(statistics: Any, name: str) -> Any:
    """A bound as a Python value; None if Python has no such value (a date after year 9999)."""
    try:
        return getattr(statistics, name)
    except (ValueError, OverflowError):
        return None
