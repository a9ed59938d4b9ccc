"""Functions of arrays, maps and structs, as in Spark's ANSI mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.errors import InvalidInputError
from deltalog.expressions.comparing import compare, identity
from deltalog.expressions.rows import (
    NO,
    as_array,
    by_row,
    loosened,
    on_array,
    row_numbers,
)
from deltalog.kernels import Array, Datum, compute, pc
from deltalog.schema.primitives.moments import value_or_count, values_or_counts

if TYPE_CHECKING:
    from collections.abc import Callable


def size(value: Datum) -> Datum:
    """The number of elements or entries; NULL of NULL (in ANSI mode; the legacy result is -1)."""
    if pt.is_null(value.type):
        return compute.cast(value, pa.int32())
    return compute.cast(on_array(_lengths, value), pa.int32())


def _lengths(array: Array) -> Array:
    if not pt.is_map(array.type):
        return compute.list_value_length(array)
    lengths = compute.subtract(array.offsets[1:], array.offsets[:-1])
    return compute.if_else(compute.is_valid(array), lengths, pa.scalar(None, lengths.type))


def contains(array: Datum, wanted: Datum) -> Datum:
    """Whether a value is in the array; NULL if it is not, but an element is NULL."""
    if isinstance(array, pa.Scalar) and isinstance(wanted, pa.Scalar):
        return contains(as_array(array, 1), wanted)[0]
    lists = as_array(array, 0 if isinstance(wanted, pa.Scalar) else len(wanted))
    parents, elements = compute.list_parent_indices(lists), compute.list_flatten(lists)
    value = wanted if isinstance(wanted, pa.Scalar) else wanted.take(parents)
    found = compare("=", elements, value)
    is_hit = _rows_with(parents.filter(compute.fill_null(found, NO)), len(lists))
    is_open = _rows_with(parents.filter(compute.is_null(elements)), len(lists))
    is_known = compute.and_(compute.is_valid(lists), as_array(compute.is_valid(wanted), len(lists)))
    is_known = compute.and_(is_known, compute.or_(is_hit, compute.invert(is_open)))
    return compute.if_else(is_known, is_hit, pa.scalar(None, pa.bool_()))


def _rows_with(parents: Array, rows: int) -> Array:
    return compute.is_in(row_numbers(rows), value_set=compute.cast(parents, pa.uint64()))


def item(holder: Datum, key: Datum) -> Datum:
    """`holder[key]`: an element counted from 0, the value of a key, or a field.

    Raises:
        InvalidInputError: an array has no such element. (A missing key of a map is NULL.)
    """
    if pt.is_struct(holder.type):
        return _field(holder, key.as_py())
    if pt.is_map(holder.type):
        return _entry(holder, key)
    return _element(holder, key, _index_from_zero)


def element_at(holder: Datum, key: Datum) -> Datum:
    """An element counted from 1, or from the end if negative, or the value of a key."""
    if pt.is_map(holder.type):
        return _entry(holder, key)
    return _element(holder, key, _index_from_one)


def try_element_at(holder: Datum, key: Datum) -> Datum:
    """`element_at`, with NULL where there is no such element."""
    if pt.is_map(holder.type):
        return _entry(holder, key)
    return _element(holder, key, _index_from_one, is_try=True)


def get(holder: Datum, key: Datum) -> Datum:
    """An element counted from 0, NULL where there is none."""
    return _element(holder, key, _index_from_zero, is_try=True)


def _field(holder: Datum, name: str) -> Datum:
    names = [field.name for field in holder.type]
    for index, known in enumerate(names):
        if known.lower() == name.lower():
            return compute.struct_field(holder, [index])
    raise InvalidInputError(f"there is no field {name!r} among {names}")


# In ANSI mode an index out of range is an error for `[]` and element_at; `get` and try_element_at
# give NULL. `[]` and `get` count from 0, the others from 1, or from -1 at the end.


def _index_from_zero(index: Array, lengths: Array) -> tuple[Array, Array]:
    is_wrong = compute.or_(compute.less(index, 0), compute.greater_equal(index, lengths))
    return index, is_wrong


def _index_from_one(index: Array, lengths: Array) -> tuple[Array, Array]:
    is_wrong = compute.greater(compute.abs(index), lengths)
    if compute.any(pc.and_kleene(compute.equal(index, 0), compute.is_valid(lengths))).as_py():
        raise InvalidInputError("element_at counts from 1, or from -1 at the end; 0 is neither")
    found = compute.if_else(
        compute.greater(index, 0), compute.subtract(index, 1), compute.add(lengths, index)
    )
    return found, is_wrong


def _element(
    holder: Datum,
    key: Datum,
    locate: Callable[[Array, Array], tuple[Array, Array]],
    *,
    is_try: bool = False,
) -> Datum:
    if isinstance(holder, pa.Scalar) and isinstance(key, pa.Scalar):
        return _element(as_array(holder, 1), key, locate, is_try=is_try)[0]
    rows = len(key) if isinstance(holder, pa.Scalar) else len(holder)
    lists = as_array(holder, rows)
    lengths = compute.list_value_length(lists)
    index, is_wrong = locate(compute.cast(as_array(key, rows), lengths.type), lengths)
    is_there = compute.fill_null(compute.invert(is_wrong), NO)
    index = compute.if_else(is_there, index, pa.scalar(None, index.type))
    if not is_try and compute.any(is_wrong).as_py():
        raise InvalidInputError(
            "an array has no such element: compare the index with size(…) first"
        )
    # Positions in `list_flatten`, which leaves out NULL lists; their offsets may not be empty.
    ends = compute.cumulative_sum(compute.cast(compute.fill_null(lengths, 0), pa.int64()))
    starts = compute.subtract(ends, compute.fill_null(lengths, 0))
    return compute.list_flatten(lists).take(compute.add(starts, compute.cast(index, pa.int64())))


def _entry(holder: Datum, key: Datum) -> Datum:
    """The value of a key in each map. Cost: by row if the key is not constant."""
    if isinstance(key, pa.Scalar) and key.is_valid:
        return on_array(lambda maps: pc.map_lookup(maps, query_key=key, occurrence="last"), holder)

    def look_up(pairs: list[tuple[Any, Any]], wanted: Any) -> Any:
        return dict(pairs).get(wanted)

    return by_row(look_up, holder.type.item_type, holder, key)


def make_array(*values: Datum) -> Datum:
    """An array of the values of each row."""
    if not values:
        return pa.scalar([], pa.list_(pa.field("element", pa.null())))
    rows = max((len(value) for value in values if not isinstance(value, pa.Scalar)), default=None)
    # The parts may differ in whether their own parts can be NULL; those of the result can be.
    element = pa.field("element", loosened(values[0].type))
    if rows is None:
        return pa.scalar([value_or_count(value) for value in values], pa.list_(element))
    columns = [as_array(value, rows).cast(element.type) for value in values]
    flat = pa.concat_arrays(columns)
    # From column by column to row by row: slot n of the result belongs to row n // width.
    slots = row_numbers(len(flat))
    row = compute.divide(slots, len(values))
    column = compute.subtract(slots, compute.multiply(row, len(values)))
    order = compute.add(compute.multiply(column, rows), row)
    offsets = compute.multiply(row_numbers(rows + 1), len(values))
    found = pa.ListArray.from_arrays(compute.cast(offsets, pa.int32()), flat.take(order))
    return found.cast(pa.list_(element))


def make_map(*values: Datum) -> Datum:
    """A map of alternating keys and values. Cost: by row.

    Raises:
        InvalidInputError: a key is NULL or repeated.
    """
    if not values:
        return pa.scalar([], pa.map_(pa.null(), pa.null()))
    result = pa.map_(values[0].type, values[1].type)
    rows = max((len(value) for value in values if not isinstance(value, pa.Scalar)), default=None)
    columns = [values_or_counts(as_array(value, rows or 1)) for value in values]
    maps = [_pairs(row) for row in zip(*columns, strict=True)]
    return pa.scalar(maps[0], result) if rows is None else pa.array(maps, result)


def _pairs(row: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    # Spark's default for duplicate keys is an error (spark.sql.mapKeyDedupPolicy).
    keys = row[::2]
    if None in keys or len({identity(key) for key in keys}) < len(keys):
        raise InvalidInputError(f"the keys of a map are different and not NULL, found {keys}")
    return list(zip(keys, row[1::2], strict=True))


def make_struct(*values: Datum) -> Datum:
    """A struct of alternating names (constants) and values."""
    names = [name.as_py() for name in values[::2]]
    return pc.make_struct(*values[1::2], field_names=names)


def map_keys(value: Datum) -> Datum:
    """The keys of each map."""
    return on_array(lambda maps: _entries(maps, maps.keys, maps.type.key_field), value)


def map_values(value: Datum) -> Datum:
    """The values of each map, in the order of its keys."""
    return on_array(lambda maps: _entries(maps, maps.items, maps.type.item_field), value)


def _entries(maps: Array, values: Array, field: Any) -> Array:
    nullable = pa.field("element", field.type, field.nullable)
    offsets = compute.subtract(maps.offsets, maps.offsets[0])
    first = maps.offsets[0].as_py()
    flat = values.slice(first, maps.offsets[-1].as_py() - first)
    return pa.ListArray.from_arrays(offsets, flat, mask=compute.is_null(maps)).cast(
        pa.list_(nullable)
    )


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "size": size,
    "array_contains": contains,
    "[]": item,
    "element_at": element_at,
    "try_element_at": try_element_at,
    "get": get,
    "array": make_array,
    "map": make_map,
    "named_struct": make_struct,
    "map_keys": map_keys,
    "map_values": map_values,
}
