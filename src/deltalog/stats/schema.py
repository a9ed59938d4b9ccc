"""Which statistics there are, and their Arrow schema.

Owns the names of statistics, the columns that have them, and how a few are picked out of all.
All columns are physical: the caller maps names before.

A *leaf* of the statistics is a path such as `("maxValues", "a", "b")` or `("numRecords",)`.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltalog.kernels import Array
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.columns import leaf_columns
from deltalog.schema.types import Field, PrimitiveType, StructType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

Path = tuple[str, ...]

NUM_RECORDS: Final = "numRecords"
TIGHT_BOUNDS: Final = "tightBounds"
MIN_VALUES: Final = "minValues"
MAX_VALUES: Final = "maxValues"
NULL_COUNT: Final = "nullCount"
# The protocol's sample of a checkpoint has it so, and some writers followed.
NULL_COUNT_ALIAS: Final = "nullCounts"
DEFAULT_NUM_INDEXED_COLUMNS: Final = 32

COLLATIONS: Final = "__COLLATIONS"

_UNBOUNDED: Final = frozenset({"boolean", "binary", "void"})


def has_bounds(field: Field) -> bool:
    """Whether the column gets a minimum and a maximum: numbers, dates, times and texts do.

    Texts with a collation do not: it orders them in another way than their bytes.
    """
    if not isinstance(field.type, PrimitiveType) or COLLATIONS in field.metadata:
        return False
    return field.type.type not in _UNBOUNDED


def indexed_columns(
    schema: StructType,
    *,
    num_indexed_columns: int = DEFAULT_NUM_INDEXED_COLUMNS,
    columns: Collection[Path] | None = None,
) -> list[tuple[Path, Field]]:
    """The leaf columns that get statistics, in the schema's order.

    Args:
        schema: of the data files, without partition columns.
        num_indexed_columns: how many leaves from the first on; -1 is all.
        columns: the chosen columns instead; a struct stands for all its leaves.

    Protocol: `delta.dataSkippingNumIndexedCols`, `delta.dataSkippingStatsColumns`
    """
    leaves = list(leaf_columns(schema))
    if columns is not None:
        chosen = {_fold(column) for column in columns}
        return [
            (path, field)
            for path, field in leaves
            if any(_fold(path[:length]) in chosen for length in range(1, len(path) + 1))
        ]
    return leaves if num_indexed_columns < 0 else leaves[:num_indexed_columns]


def stats_schema(columns: Iterable[tuple[Path, Field]], *, tight_bounds: bool = True) -> pa.Schema:
    """The Arrow schema of all statistics of some leaf columns, as checkpoints hold them.

    Args:
        columns: what `indexed_columns` gave.
        tight_bounds: whether there is a column that tells if bounds are extremes of live rows.
    """
    leaves: list[tuple[Path, pa.DataType]] = [((NUM_RECORDS,), pa.int64())]
    indexed = list(columns)
    for kind in (MIN_VALUES, MAX_VALUES):
        leaves += [
            ((kind, *path), to_arrow_type(field.type))
            for path, field in indexed
            if has_bounds(field)
        ]
    leaves += [((NULL_COUNT, *path), pa.int64()) for path, _ in indexed]
    if tight_bounds:
        leaves.append(((TIGHT_BOUNDS,), pa.bool_()))
    return schema_of_leaves(leaves)


def schema_of_leaves(leaves: Iterable[tuple[Path, pa.DataType]]) -> pa.Schema:
    """The nested schema that has these leaves, in the order in which they come."""
    tree: dict[str, Any] = {}
    for path, data_type in leaves:
        branch = tree
        for name in path[:-1]:
            branch = branch.setdefault(name, {})
        branch[path[-1]] = data_type
    return pa.schema(_fields(tree))


def leaves_of_schema(schema: pa.Schema) -> list[tuple[Path, pa.DataType]]:
    """The leaves of a nested schema, depth first."""
    found: list[tuple[Path, pa.DataType]] = []
    for field in schema:
        found += _leaves((field.name,), field.type)
    return found


def project_stats(schema: pa.Schema, leaves: Collection[Path]) -> pa.Schema:
    """The schema restricted to some leaves, in its own order; what it does not have is left out."""
    wanted = set(leaves)
    return schema_of_leaves(leaf for leaf in leaves_of_schema(schema) if leaf[0] in wanted)


def conform_stats(parsed: pa.Array[Any] | pa.ChunkedArray[Any], schema: pa.Schema) -> pa.Table:
    """A checkpoint's `stats_parsed` as the statistics asked for.

    What the checkpoint does not have is NULL, and so is a value that the asked type cannot hold:
    writers keep the type that a column had when its statistics were written.

    Args:
        parsed: the struct column.
        schema: of the leaves that are wanted.
    """
    chunks = parsed.chunks if isinstance(parsed, pa.ChunkedArray) else [parsed]
    if not chunks:
        return schema.empty_table()
    wanted: Sequence[pa.Field[Any]] = list(schema)
    tables = [
        pa.table([_pick(chunk, field) for field in wanted], schema=schema)
        for chunk in chunks
        if pa.types.is_struct(chunk.type)
    ]
    return pa.concat_tables(tables)


def _pick(parent: Array, field: Any) -> Array:
    found = _child(parent, field.name)
    if field.name == NULL_COUNT:
        alias = _child(parent, NULL_COUNT_ALIAS)
        found = alias if found is None else found
    if found is None:
        return pa.nulls(len(parent), field.type)
    if pa.types.is_struct(field.type) and pa.types.is_struct(found.type):
        children = [_pick(found, child) for child in field.type]
        mask = found.is_null() if found.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(field.type), mask=mask)
    return cast_or_null(found, field.type)


def _child(parent: Array, name: str) -> Array | None:
    index = parent.type.get_field_index(name)
    return pc.struct_field(parent, [index]) if index >= 0 else None


def cast_or_null(array: Array, to: pa.DataType) -> Array:
    """The values in another type; NULL where it cannot hold them exactly.

    Cost: one pass if all fit, else one more per value that differs.
    """
    if array.type == to:
        return array
    try:
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


def _fold(path: Path) -> Path:
    return tuple(name.lower() for name in path)


def _fields(tree: dict[str, Any]) -> list[pa.Field[Any]]:
    return [
        pa.field(name, pa.struct(_fields(part)) if isinstance(part, dict) else part)
        for name, part in tree.items()
    ]


def _leaves(path: Path, data_type: pa.DataType) -> list[tuple[Path, pa.DataType]]:
    if not pa.types.is_struct(data_type):
        return [(path, data_type)]
    found: list[tuple[Path, pa.DataType]] = []
    for child in data_type:
        found += _leaves((*path, child.name), child.type)
    return found
