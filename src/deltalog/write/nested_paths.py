"""Access to nested columns: paths that must not be NULL, and the values at a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.kernels import Array, pc
from deltalog.schema import ArrayType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.schema import DataType

Path = tuple[str, ...]


def values_at(array: Array, path: Sequence[str]) -> tuple[Array, Array | None]:
    """Return the values at a path below a column, and the row of each.

    A field of a struct that is NULL is NULL. A list or a map that is NULL or empty has no values.

    Args:
        array: of the column.
        path: below the column; `element`, `key` and `value` step into lists and maps.

    Returns:
        The values; and their row numbers, or None if there is one value per row.
    """
    rows: Array | None = None
    for name in path:
        if not pa.types.is_struct(array.type):
            lists = _entries(array) if pa.types.is_map(array.type) else array
            parents = _parents(lists)
            rows = parents if rows is None else rows.take(parents)
            array = lists.flatten()
            if name == "element":
                continue
        array = field_of(array, name)
    return array, rows


def not_null_paths(schema: StructType) -> Iterator[Path]:
    """Yield the paths that must not be NULL: fields, elements, keys and values."""
    for field in schema:
        if not field.nullable:
            yield (field.name,)
        yield from _not_null_below(field.type, (field.name,))


def field_of(array: Array, name: str) -> Array:
    """Return the field of a struct; NULL where the struct is NULL."""
    # By index: Arrow parses a name such as `.x` as a path.
    return pc.struct_field(array, [array.type.get_field_index(name)])


def rows_where(mask: Array, rows: Array | None) -> Array:
    """Return the distinct rows whose values are marked, ascending.

    Args:
        mask: one boolean per value; NULL counts as false.
        rows: of the values, as `values_at` gives them.
    """
    marked: Array = pc.indices_nonzero(pc.fill_null(mask, pa.scalar(value=False)))
    if rows is None:
        return marked
    found = rows.take(marked).unique()
    return found.take(pc.array_sort_indices(found))


def _entries(maps: Array) -> Array:
    """Return maps as lists of structs, without a copy."""
    # `view` would refuse NULL variants, whose two members must be there.
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], ["key", "value"])
    return pa.Array.from_buffers(
        pa.list_(entries.type),
        len(maps),
        maps.buffers()[:2],
        offset=maps.offset,
        children=[entries],
    )


def _parents(lists: Array) -> Array:
    """Return for each value of `lists.flatten()` the index of its list.

    Unlike `flatten`, Arrow's kernel `list_parent_indices` counts values behind a NULL list.
    """
    lengths: Array = pc.fill_null(pc.list_value_length(lists), pa.scalar(0, pa.int32()))
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    total = offsets[-1].as_py()
    parents: Array = pc.list_parent_indices(pa.LargeListArray.from_arrays(offsets, pa.nulls(total)))
    return parents


def _not_null_below(data_type: DataType, path: Path) -> Iterator[Path]:
    match data_type:
        case StructType():
            for inner in not_null_paths(data_type):
                yield (*path, *inner)
        case ArrayType():
            yield from _not_null_part(
                data_type.element_type, (*path, "element"), nullable=data_type.contains_null
            )
        case MapType():
            yield from _not_null_part(data_type.key_type, (*path, "key"), nullable=False)
            yield from _not_null_part(
                data_type.value_type, (*path, "value"), nullable=data_type.value_contains_null
            )
        case _:
            return


def _not_null_part(data_type: DataType, path: Path, *, nullable: bool) -> Iterator[Path]:
    if not nullable:
        yield path
    yield from _not_null_below(data_type, path)
