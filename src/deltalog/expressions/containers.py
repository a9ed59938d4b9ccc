"""Functions of arrays, maps and structs, as in Spark's ANSI mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.escaping import name_key
from deltalog._util.kernels import Array, Datum, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.expressions.arrays import checked_pairs, entries, list_of, map_of, slots
from deltalog.expressions.comparing import compare, identity
from deltalog.expressions.rows import (
    NO,
    STEPS_OF_CALL,
    as_array,
    by_row,
    loosened,
    nulls,
    on_array,
    row_numbers,
    spend,
)
from deltalog.schema.primitives.moments import value_or_count, values_or_counts

if TYPE_CHECKING:
    from collections.abc import Callable

    Body = Callable[..., Array]


def size(value: Datum) -> Datum:
    """Return the number of elements or entries; NULL for NULL (the legacy mode returns -1)."""
    if pt.is_null(value.type):
        return compute.cast(value, pa.int32())
    return compute.cast(on_array(_lengths, value), pa.int32())


def _lengths(array: Array) -> Array:
    if not pt.is_map(array.type):
        return compute.list_value_length(array)
    lengths = compute.subtract(array.offsets[1:], array.offsets[:-1])
    return compute.if_else(compute.is_valid(array), lengths, pa.scalar(None, lengths.type))


def contains(array: Datum, wanted: Datum) -> Datum:
    """Whether a value is in the array; NULL if it is not found and an element is NULL."""
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
    """Return `holder[key]`: an array's element counted from 0, a map's value, or a struct's field.

    Raises:
        InvalidInputError: an array has no such element. (A missing key of a map returns NULL.)
    """
    if pt.is_struct(holder.type):
        return _field(holder, key.as_py())
    if pt.is_map(holder.type):
        return _entry(holder, key)
    return _element(holder, key, _index_from_zero)


def element_at(holder: Datum, key: Datum) -> Datum:
    """Return the array element counted from 1 (from the end if negative), or the map's value."""
    if pt.is_map(holder.type):
        return _entry(holder, key)
    return _element(holder, key, _index_from_one)


def try_element_at(holder: Datum, key: Datum) -> Datum:
    """Return `element_at`, or NULL where the element does not exist."""
    if pt.is_map(holder.type):
        return _entry(holder, key)
    return _element(holder, key, _index_from_one, is_try=True)


def get(holder: Datum, key: Datum) -> Datum:
    """Return the array element counted from 0, or NULL where it does not exist."""
    return _element(holder, key, _index_from_zero, is_try=True)


def _field(holder: Datum, name: str) -> Datum:
    names = [field.name for field in holder.type]
    for index, known in enumerate(names):
        if name_key(known) == name_key(name):
            return compute.struct_field(holder, [index])
    raise InvalidInputError(f"there is no field {name!r} among {names}")


# In ANSI mode, `[]` and `element_at` raise an error for an index out of range, but `get` and
# `try_element_at` return NULL. The index of the first element is 0 in `[]` and `get`, but 1 in
# `element_at` and `try_element_at`, where a negative index counts from the end.


def _index_from_zero(index: Array, lengths: Array) -> tuple[Array, Array]:
    is_wrong = compute.or_(compute.less(index, 0), compute.greater_equal(index, lengths))
    return index, is_wrong


def _index_from_one(index: Array, lengths: Array) -> tuple[Array, Array]:
    is_wrong = compute.greater(compute.abs(index), lengths)
    if compute.any(pc.and_kleene(compute.equal(index, 0), compute.is_valid(lengths))).as_py():
        raise InvalidInputError("the index of element_at must not be 0: it counts from 1")
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
            "an array has no element with this index: compare the index with size(…) first, or "
            "write get(array, index), which returns NULL instead"
        )
    # `starts` are positions in the result of `list_flatten`, which omits the values of NULL lists.
    ends = compute.cumulative_sum(compute.cast(compute.fill_null(lengths, 0), pa.int64()))
    starts = compute.subtract(ends, compute.fill_null(lengths, 0))
    return compute.list_flatten(lists).take(compute.add(starts, compute.cast(index, pa.int64())))


def _entry(holder: Datum, key: Datum) -> Datum:
    """Return the value of a key in each map. Cost: by row if the key is not constant."""
    if isinstance(key, pa.Scalar) and key.is_valid:
        return on_array(lambda maps: pc.map_lookup(maps, query_key=key, occurrence="last"), holder)

    def look_up(pairs: list[tuple[Any, Any]], wanted: Any) -> Any:
        return dict(pairs).get(wanted)

    return by_row(look_up, holder.type.item_type, holder, key)


def make_array(*values: Datum) -> Datum:
    """Return an array of the values of each row."""
    if not values:
        return pa.scalar([], pa.list_(pa.field("element", pa.null())))
    rows = max((len(value) for value in values if not isinstance(value, pa.Scalar)), default=None)
    # The types of the arguments may differ in the nullability of nested fields. In the result, all
    # fields are nullable.
    element = pa.field("element", loosened(values[0].type))
    if rows is None:
        return pa.scalar([value_or_count(value) for value in values], pa.list_(element))
    columns = [as_array(value, rows).cast(element.type) for value in values]
    flat = pa.concat_arrays(columns)
    # `flat` contains the values column by column, but the result needs them row by row. Position n
    # of the result belongs to the row n // len(values).
    slots = row_numbers(len(flat))
    row = compute.divide(slots, len(values))
    column = compute.subtract(slots, compute.multiply(row, len(values)))
    order = compute.add(compute.multiply(column, rows), row)
    offsets = compute.multiply(row_numbers(rows + 1), len(values))
    found = pa.ListArray.from_arrays(compute.cast(offsets, pa.int32()), flat.take(order))
    return found.cast(pa.list_(element))


def make_map(*values: Datum) -> Datum:
    """Return a map of alternating keys and values. Cost: by row.

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
    # Refuse duplicate keys, as Spark does by default (`spark.sql.mapKeyDedupPolicy`).
    keys = row[::2]
    if None in keys or len({identity(key) for key in keys}) < len(keys):
        raise InvalidInputError(f"the keys of a map must be different and not NULL, found {keys}")
    return list(zip(keys, row[1::2], strict=True))


def make_struct(*values: Datum) -> Datum:
    """Return a struct of alternating names (constants) and values."""
    names = [name.as_py() for name in values[::2]]
    return pc.make_struct(*values[1::2], field_names=names)


def map_keys(value: Datum) -> Datum:
    """Return the keys of each map."""
    return on_array(lambda maps: _entries(maps, maps.keys, maps.type.key_field), value)


def map_values(value: Datum) -> Datum:
    """Return the values of each map, in the order of its keys."""
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


# --- Functions that accept lambdas: `transform`, `filter`, `aggregate`, …


# The cost of one iteration of `aggregate` or `exists`, without the lambda's body, in kernel calls.
_CALLS: Final = 10
# The number of bytes of an element's row number and position, including temporary copies.
_OF_ELEMENT: Final = 24
# The number of steps of comparing one key in Python.
_STEPS_OF_KEY: Final = 100


def transform(rows: int, holder: Datum, body: Body) -> Array:
    """Replace each element by the body's value; the body may use the element's position."""
    lists = as_array(holder, rows)
    return list_of(lists, body(*_elements(lists)))


def filter_array(rows: int, holder: Datum, body: Body) -> Array:
    """Return the elements for which the condition is true."""
    lists = as_array(holder, rows)
    parents, elements, positions = _elements(lists)
    is_kept = compute.fill_null(_as_boolean(body(parents, elements, positions)), NO)
    return list_of(lists, elements.filter(is_kept), parents.filter(is_kept))


def _as_boolean(values: Array) -> Array:
    return compute.cast(values, pa.bool_())


def _elements(lists: Array) -> tuple[Array, Array, Array]:
    """Return the row, the value and the position from 0 of each element."""
    many = compute.sum(_lengths_of_lambdas(lists)).as_py() or 0
    spend(_OF_ELEMENT * many, _OF_ELEMENT * many)
    parents = compute.list_parent_indices(lists)
    starts = compute.cast(_starts(lists), pa.int64()).take(parents)
    numbers = compute.cast(row_numbers(len(parents)), pa.int64())
    positions = compute.cast(compute.subtract(numbers, starts), pa.int32())
    return parents, compute.list_flatten(lists), positions


def _starts(lists: Array) -> Array:
    """Return where each row's elements begin in the result of `list_flatten`."""
    lengths = compute.cast(_lengths_of_lambdas(lists), pa.int64())
    return compute.subtract(compute.cumulative_sum(lengths), lengths)


def _lengths_of_lambdas(lists: Array) -> Array:
    return compute.fill_null(compute.list_value_length(lists), 0)


def exists(rows: int, holder: Datum, body: Body) -> Array:
    """Whether the condition is true for any element; if none is true, NULL if one is NULL."""
    return _search(rows, holder, body, decisive=True)


def forall(rows: int, holder: Datum, body: Body) -> Array:
    """Whether the condition is true for all elements; if none is false, NULL if one is NULL."""
    return _search(rows, holder, body, decisive=False)


def _search(rows: int, holder: Datum, body: Body, *, decisive: bool) -> Array:
    lists = as_array(holder, rows)
    elements, starts, lengths = (
        compute.list_flatten(lists),
        _starts(lists),
        _lengths_of_lambdas(lists),
    )
    no = pa.scalar(NO)
    is_decided, is_open = as_array(no, rows), as_array(no, rows)
    for place in range(compute.max(lengths).as_py() or 0):
        spend(steps=_CALLS * STEPS_OF_CALL + rows)
        is_next = compute.and_(compute.greater(lengths, place), compute.invert(is_decided))
        members = compute.indices_nonzero(is_next)
        found = _as_boolean(body(members, elements.take(compute.add(starts.take(members), place))))
        is_hit = compute.fill_null(compute.equal(found, decisive), NO)
        is_decided = compute.or_(is_decided, _spread(members.filter(is_hit), rows))
        is_open = compute.or_(is_open, _spread(members.filter(compute.is_null(found)), rows))
    answer = compute.if_else(is_decided, pa.scalar(decisive), pa.scalar(not decisive))
    is_unknown = compute.and_(is_open, compute.invert(is_decided))
    is_unknown = compute.or_(is_unknown, compute.is_null(lists))
    return compute.if_else(is_unknown, pa.scalar(None, pa.bool_()), answer)


def _spread(members: Array, rows: int) -> Array:
    return compute.is_in(row_numbers(rows), value_set=members)


def aggregate(
    rows: int, holder: Datum, zero: Datum, merge: Body, finish: Body | None = None
) -> Array:
    """Fold the elements into one value, from left to right."""
    lists = as_array(holder, rows)
    elements, starts, lengths = (
        compute.list_flatten(lists),
        _starts(lists),
        _lengths_of_lambdas(lists),
    )
    found = as_array(zero, rows)
    for place in range(compute.max(lengths).as_py() or 0):
        spend(steps=_CALLS * STEPS_OF_CALL + rows)
        is_next = compute.greater(lengths, place)
        members = compute.indices_nonzero(is_next)
        taken = elements.take(compute.add(starts.take(members), place))
        found = _with(found, is_next, merge(members, found.take(members), taken))
    known = compute.is_valid(lists)
    members = compute.indices_nonzero(known)
    last = found.take(members)
    if finish is not None:
        last = finish(members, last)
    return _with(nulls(rows, last.type), known, last)


def _with(values: Array, mask: Array, changed: Array) -> Array:
    """Return `values` with the rows of the mask replaced by `changed`, one value per such row."""
    counts = compute.cumulative_sum(compute.cast(mask, pa.int64()))
    places = compute.if_else(mask, compute.subtract(counts, 1), pa.scalar(None, pa.int64()))
    return compute.if_else(mask, changed.take(places), compute.cast(values, changed.type))


def zip_with(rows: int, left: Datum, right: Datum, body: Body) -> Array:
    """Return the body's value for each pair of elements; the shorter array is filled with NULL."""
    sides = as_array(left, rows), as_array(right, rows)
    known = compute.and_(*map(compute.is_valid, sides))
    lengths = compute.max_element_wise(*map(_lengths_of_lambdas, sides))
    lengths = compute.if_else(known, lengths, pa.scalar(0, lengths.type))
    parents, positions = slots(lengths)
    values = [_at(side, parents, positions) for side in sides]
    return list_of(_masked(sides[0], known), body(parents, *values), parents)


def _masked(values: Array, known: Array) -> Array:
    return compute.if_else(known, values, pa.scalar(None, values.type))


def _at(lists: Array, parents: Array, positions: Array) -> Array:
    is_there = compute.less(positions, _lengths_of_lambdas(lists).take(parents))
    places = compute.add(_starts(lists).take(parents), compute.cast(positions, pa.int64()))
    places = compute.if_else(is_there, places, pa.scalar(None, pa.int64()))
    return compute.list_flatten(lists).take(places)


def map_filter(rows: int, holder: Datum, body: Body) -> Array:
    """Return the entries for which the condition is true."""
    found = entries(as_array(holder, rows))
    is_kept = compute.fill_null(_as_boolean(body(found.parents, found.keys, found.items)), NO)
    parts = (part.filter(is_kept) for part in (found.parents, found.keys, found.items))
    return map_of(found.is_known, *parts)


def transform_values(rows: int, holder: Datum, body: Body) -> Array:
    """Return the map with each value replaced by the body's value."""
    found = entries(as_array(holder, rows))
    items = body(found.parents, found.keys, found.items)
    return map_of(found.is_known, found.parents, found.keys, items)


def transform_keys(rows: int, holder: Datum, body: Body) -> Array:
    """Return the map with each key replaced by the body's value.

    Raises:
        InvalidInputError: a key is NULL or repeated.
    """
    found = entries(as_array(holder, rows))
    keys = body(found.parents, found.keys, found.items)
    made = map_of(found.is_known, found.parents, compute.fill_null(keys, _any(keys)), found.items)
    _check_keys(found.parents, keys)
    return made


def _any(keys: Array) -> Any:
    # Return a valid key as a placeholder for NULL keys, because Arrow does not accept NULL keys.
    # `_check_keys` refuses the NULL keys later.
    known = keys.drop_null()
    return known[0] if len(known) else pa.scalar(0, pa.int8()).cast(keys.type, safe=False)


def _check_keys(parents: Array, keys: Array) -> None:
    spend(steps=_STEPS_OF_KEY * len(keys))
    by_parent: dict[int, list[tuple[Any, Any]]] = {}
    for parent, key in zip(parents.to_pylist(), keys.to_pylist(), strict=True):
        by_parent.setdefault(parent, []).append((key, None))
    for pairs in by_parent.values():
        checked_pairs(pairs)


def map_zip_with(rows: int, left: Datum, right: Datum, body: Body) -> Array:
    """Return a map of all keys in either map; the body combines both values. Cost: by row."""
    sides = as_array(left, rows), as_array(right, rows)
    known = compute.and_(*map(compute.is_valid, sides))
    first, second = (entries(_masked(side, known)) for side in sides)
    spend(steps=_STEPS_OF_KEY * (len(first.keys) + len(second.keys)))
    places: dict[tuple[int, Any], list[int | None]] = {}
    for side, found in enumerate((first, second)):
        pairs = zip(found.parents.to_pylist(), found.keys.to_pylist(), strict=True)
        for place, (parent, key) in enumerate(pairs):
            slots = places.setdefault((parent, identity(key)), [None, None])
            slots[side] = place if slots[side] is None else slots[side]
    order = sorted(places, key=lambda found: found[0])
    taken = [pa.array([places[key][side] for key in order], pa.int64()) for side in (0, 1)]
    parents = pa.array([parent for parent, _ in order], pa.int64())
    keys = compute.coalesce(first.keys.take(taken[0]), second.keys.take(taken[1]))
    items = body(parents, keys, first.items.take(taken[0]), second.items.take(taken[1]))
    return map_of(known, parents, keys, items)


LAMBDAS: Final[dict[str, Callable[..., Any]]] = {
    "transform": transform,
    "filter": filter_array,
    "exists": exists,
    "forall": forall,
    "aggregate": aggregate,
    "zip_with": zip_with,
    "map_filter": map_filter,
    "transform_values": transform_values,
    "transform_keys": transform_keys,
    "map_zip_with": map_zip_with,
}
