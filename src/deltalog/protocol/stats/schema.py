"""The statistics of a file: names, columns with statistics, and Arrow schema.

This module defines the names of statistics, and chooses the columns with statistics. All column
names are physical.

A *leaf* of the statistics is a path such as `("maxValues", "a", "b")` or `("numRecords",)`.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.decimals import fit_decimals
from deltalog._util.escaping import path_key
from deltalog._util.kernels import Array, pc
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.collations import collations_of, ruled_collation
from deltalog.schema.columns import leaf_columns
from deltalog.schema.primitives import Bounds, primitive_of_arrow
from deltalog.schema.types import DataType, Field, PrimitiveType, StructType, versioned

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from deltalog.schema.primitives.row import Box

Path = tuple[str, ...]

NUM_RECORDS: Final = "numRecords"
TIGHT_BOUNDS: Final = "tightBounds"
MIN_VALUES: Final = "minValues"
MAX_VALUES: Final = "maxValues"
NULL_COUNT: Final = "nullCount"
STATS_WITH_COLLATION: Final = "statsWithCollation"
# The name of `nullCount` in the protocol's example of a checkpoint, which some writers use, too.
NULL_COUNT_ALIAS: Final = "nullCounts"
DEFAULT_NUM_INDEXED_COLUMNS: Final = 32


def has_bounds(field: Field) -> bool:
    """Return whether statistics have a minimum and a maximum of the column.

    Numbers, times and strings have them. A column with a collation has none, because its strings
    are not ordered by bytes; its bounds are in separate statistics for the collation.
    """
    return not collations_of(field) and bounds_of(field.type) is not None


def leaf_of_bound(kind: str, path: Path, collation: str | None = None) -> Path:
    """Return the leaf with the minimum or the maximum of a column.

    Args:
        kind: `MIN_VALUES` or `MAX_VALUES`.
        path: the path of the column.
        collation: the collation that orders the values; None means the order of bytes.
    """
    if collation is None:
        return (kind, *path)
    return (STATS_WITH_COLLATION, versioned(collation), kind, *path)


def has_bounds_in_parquet(field: Field) -> bool:
    """Return whether a Parquet file's bounds of a column are valid bounds of its values.

    They are also valid for some types for which the protocol does not define bounds in the log,
    because Parquet stores these types as integers.
    """
    kind = field.type
    return has_bounds(field) or (isinstance(kind, PrimitiveType) and kind.primitive.is_ordered)


def box_of(field: Field) -> Callable[[Array], Box | None] | None:
    """Return the function that computes the bounding box of a column's values, or None."""
    return field.type.primitive.codec.box if isinstance(field.type, PrimitiveType) else None


def bounds_of(data_type: DataType) -> Bounds | None:
    """Return how statistics store bounds of the type; None if they have no bounds of it."""
    return data_type.primitive.codec.bounds if isinstance(data_type, PrimitiveType) else None


def bounds_in_arrow(arrow_type: pa.DataType) -> Bounds:
    """Return how statistics store bounds of values with an Arrow type.

    All other statistics are numbers or booleans, which are the same in JSON and Arrow.
    """
    found = primitive_of_arrow(arrow_type)
    return (found[0].codec.bounds if found else None) or Bounds()


def indexed_columns(
    schema: StructType,
    *,
    num_indexed_columns: int = DEFAULT_NUM_INDEXED_COLUMNS,
    columns: Collection[Path] | None = None,
) -> list[tuple[Path, Field]]:
    """Return the leaf columns that get statistics, in the schema's order.

    Args:
        schema: the schema of the data files, without partition columns.
        num_indexed_columns: the number of leading leaves; -1 means all.
        columns: the columns with statistics, instead of a number; a struct means all its leaves.

    Protocol: `delta.dataSkippingNumIndexedCols`, `delta.dataSkippingStatsColumns`
    """
    leaves = list(leaf_columns(schema))
    if columns is not None:
        chosen = {path_key(column) for column in columns}
        return [
            (path, field)
            for path, field in leaves
            if any(path_key(path[:length]) in chosen for length in range(1, len(path) + 1))
        ]
    return leaves if num_indexed_columns < 0 else leaves[:num_indexed_columns]


def stats_schema(columns: Iterable[tuple[Path, Field]], *, tight_bounds: bool = True) -> pa.Schema:
    """Return the Arrow schema of the statistics of some columns, as in checkpoints.

    Args:
        columns: the result of `indexed_columns`.
        tight_bounds: whether the schema includes `tightBounds`.
    """
    leaves: list[tuple[Path, pa.DataType]] = [((NUM_RECORDS,), pa.int64())]
    indexed = list(columns)
    for kind in (MIN_VALUES, MAX_VALUES):
        leaves += [
            ((kind, *path), to_arrow_type(field.type) if has_bounds(field) else pa.string())
            for path, field in indexed
            if has_bounds(field) or box_of(field) is not None
        ]
    leaves += [((NULL_COUNT, *path), pa.int64()) for path, _ in indexed]
    collated = [(path, found) for path, field in indexed if (found := ruled_collation(field))]
    leaves += [
        (leaf_of_bound(kind, path, collation), pa.string())
        for path, collation in collated
        for kind in (MIN_VALUES, MAX_VALUES)
    ]
    if tight_bounds:
        leaves.append(((TIGHT_BOUNDS,), pa.bool_()))
    return schema_of_leaves(leaves)


def schema_of_leaves(leaves: Iterable[tuple[Path, pa.DataType]]) -> pa.Schema:
    """Return the nested schema of these leaves, in the given order."""
    tree: dict[str, Any] = {}
    for path, data_type in leaves:
        branch = tree
        for name in path[:-1]:
            branch = branch.setdefault(name, {})
        branch[path[-1]] = data_type
    return pa.schema(_fields(tree))


def leaves_of_schema(
    schema: Iterable[pa.Field[Any]], path: Path = ()
) -> list[tuple[Path, pa.DataType]]:
    """Return the leaves of a nested schema or struct type, depth first; `path` is their prefix."""
    found: list[tuple[Path, pa.DataType]] = []
    for field in schema:
        here, kind = (*path, field.name), field.type
        found += leaves_of_schema(kind, here) if pt.is_struct(kind) else [(here, kind)]
    return found


def find_leaf(data: pa.RecordBatch | pa.Table, path: Path) -> Array | None:
    """Return a nested column, NULL where a parent is NULL; None if the column does not exist."""
    index = data.schema.get_field_index(path[0])
    found: Array | None = data.column(index) if index >= 0 else None
    for name in path[1:]:
        found = None if found is None else child_of(found, name)
    return found


def child_of(parent: Array, name: str) -> Array | None:
    """Return a field of a struct, NULL where the struct is NULL; None if it does not exist."""
    index = parent.type.get_field_index(name)
    if index < 0:
        return None
    if isinstance(parent, pa.StructArray) and not parent.null_count:
        return parent.field(index)  # faster than `struct_field`
    return pc.struct_field(parent, [index])


def conform_stats(parsed: pa.Array[Any] | pa.ChunkedArray[Any], schema: pa.Schema) -> pa.Table:
    """Return statistics in the requested types, which are the current types of the columns.

    Stored statistics have the type that the column had at the time of the write. Missing
    statistics, and values that are not valid for the requested type, are NULL.

    Args:
        parsed: structs from a checkpoint's `stats_parsed` or from `pyarrow.json`.
        schema: the schema of the requested leaves.
    """
    chunks = parsed.chunks if isinstance(parsed, pa.ChunkedArray) else [parsed]
    tables = [
        pa.table([_statistic(chunk, field) for field in schema], schema=schema)
        for chunk in chunks
        if pt.is_struct(chunk.type)
    ]
    return pa.concat_tables(tables) if chunks else schema.empty_table()


def _statistic(stats: Array, wanted: pa.Field[Any]) -> Array:
    found = child_of(stats, wanted.name)
    alias = child_of(stats, NULL_COUNT_ALIAS) if wanted.name == NULL_COUNT else None
    if found is None:
        found = alias
    elif alias is not None and alias.type == found.type and alias.null_count < len(alias):
        found = _coalesced(found, alias)
    return _in_type(found, wanted.type, len(stats))


def _coalesced(first: Array, second: Array) -> Array:
    if not pt.is_struct(first.type):
        return pc.coalesce(first, second)
    parts = map(_coalesced, first.flatten(), second.flatten())
    return pa.StructArray.from_arrays(list(parts), fields=list(first.type))


def _in_type(found: Array | None, to: Any, count: int) -> Array:
    if found is None:
        return pa.nulls(count, to)
    if pt.is_struct(to) and pt.is_struct(found.type):
        children = [_in_type(child_of(found, part.name), part.type, count) for part in to]
        mask = found.is_null() if found.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(to), mask=mask)
    read = bounds_in_arrow(to).read if pt.is_string(found.type) else None
    return cast_or_null(found, to) if read is None or found.type == to else read(found, to)


def cast_or_null(array: Array, to: pa.DataType) -> Array:
    """Cast values to another type; values that cannot be cast exactly become NULL.

    Cost: one pass if all values can be cast; otherwise values are cast one by one.
    """
    if array.type == to:
        return array
    try:
        if pt.is_decimal(array.type) and pt.is_decimal(to):
            return fit_decimals(array, to)[0]
        return array.cast(to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    encoded = array.dictionary_encode()
    values = [_cast_one(value, to) for value in encoded.dictionary]
    return pa.array(values, to).take(encoded.indices)


def _cast_one(value: pa.Scalar[Any], to: pa.DataType) -> pa.Scalar[Any] | None:
    try:
        return value.cast(to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _fields(tree: dict[str, Any]) -> list[pa.Field[Any]]:
    return [
        pa.field(name, pa.struct(_fields(part)) if isinstance(part, dict) else part)
        for name, part in tree.items()
    ]
