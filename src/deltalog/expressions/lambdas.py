"""Functions that take lambdas, as in Spark: `transform`, `filter`, `aggregate`, ….

A body is computed for the elements of all arrays at once, as a column. Where Spark stops early
(`exists`) or an element needs the result of the one before (`aggregate`), it is computed for the
first element of every array, then for the second of those that go on, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.expressions.arrays import list_of, slots
from deltalog.expressions.budget import STEPS_OF_CALL, spend
from deltalog.expressions.comparing import identity
from deltalog.expressions.maps import checked_pairs, entries, map_of
from deltalog.expressions.rows import NO, as_array, nulls, row_numbers
from deltalog.kernels import Array, Datum, compute

if TYPE_CHECKING:
    from collections.abc import Callable

    Body = Callable[..., Array]


# Of one round of `aggregate` or `exists`, besides what the body takes.
_CALLS: Final = 10
# Of an element, in bytes and steps: its row, its place, and both again as they are found.
_OF_ELEMENT: Final = 24
# Of a key that Python looks at.
_STEPS_OF_KEY: Final = 100


def transform(rows: int, holder: Datum, body: Body) -> Array:
    """Each element's value of the body, which may take its position too."""
    lists = as_array(holder, rows)
    return list_of(lists, body(*_elements(lists)))


def filter_array(rows: int, holder: Datum, body: Body) -> Array:
    """The elements for which the condition is true."""
    lists = as_array(holder, rows)
    parents, elements, positions = _elements(lists)
    is_kept = compute.fill_null(_as_boolean(body(parents, elements, positions)), NO)
    return list_of(lists, elements.filter(is_kept), parents.filter(is_kept))


def _as_boolean(values: Array) -> Array:
    return compute.cast(values, pa.bool_())


def _elements(lists: Array) -> tuple[Array, Array, Array]:
    """Of each element: its row, its value and its position from 0."""
    many = compute.sum(_lengths(lists)).as_py() or 0
    spend(_OF_ELEMENT * many, _OF_ELEMENT * many)
    parents = compute.list_parent_indices(lists)
    starts = compute.cast(_starts(lists), pa.int64()).take(parents)
    numbers = compute.cast(row_numbers(len(parents)), pa.int64())
    positions = compute.cast(compute.subtract(numbers, starts), pa.int32())
    return parents, compute.list_flatten(lists), positions


def _starts(lists: Array) -> Array:
    """Where the elements of each row begin in `list_flatten`, which leaves out NULL lists."""
    lengths = compute.cast(_lengths(lists), pa.int64())
    return compute.subtract(compute.cumulative_sum(lengths), lengths)


def _lengths(lists: Array) -> Array:
    return compute.fill_null(compute.list_value_length(lists), 0)


def exists(rows: int, holder: Datum, body: Body) -> Array:
    """Whether the condition is true of one element; NULL if not, but it is NULL of one."""
    return _search(rows, holder, body, decisive=True)


def forall(rows: int, holder: Datum, body: Body) -> Array:
    """Whether the condition is true of every element; NULL if so, except where it is NULL."""
    return _search(rows, holder, body, decisive=False)


def _search(rows: int, holder: Datum, body: Body, *, decisive: bool) -> Array:
    lists = as_array(holder, rows)
    elements, starts, lengths = compute.list_flatten(lists), _starts(lists), _lengths(lists)
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
    """The elements folded into a value, from left to right."""
    lists = as_array(holder, rows)
    elements, starts, lengths = compute.list_flatten(lists), _starts(lists), _lengths(lists)
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
    """The values, in the rows of the mask those of `changed`, which has these rows only."""
    counts = compute.cumulative_sum(compute.cast(mask, pa.int64()))
    places = compute.if_else(mask, compute.subtract(counts, 1), pa.scalar(None, pa.int64()))
    return compute.if_else(mask, changed.take(places), compute.cast(values, changed.type))


def zip_with(rows: int, left: Datum, right: Datum, body: Body) -> Array:
    """The body's value of each pair of elements; NULL beside the elements of the longer array."""
    sides = as_array(left, rows), as_array(right, rows)
    known = compute.and_(*map(compute.is_valid, sides))
    lengths = compute.max_element_wise(*map(_lengths, sides))
    lengths = compute.if_else(known, lengths, pa.scalar(0, lengths.type))
    parents, positions = slots(lengths)
    values = [_at(side, parents, positions) for side in sides]
    return list_of(_masked(sides[0], known), body(parents, *values), parents)


def _masked(values: Array, known: Array) -> Array:
    return compute.if_else(known, values, pa.scalar(None, values.type))


def _at(lists: Array, parents: Array, positions: Array) -> Array:
    is_there = compute.less(positions, _lengths(lists).take(parents))
    places = compute.add(_starts(lists).take(parents), compute.cast(positions, pa.int64()))
    places = compute.if_else(is_there, places, pa.scalar(None, pa.int64()))
    return compute.list_flatten(lists).take(places)


def map_filter(rows: int, holder: Datum, body: Body) -> Array:
    """The entries for which the condition is true."""
    found = entries(as_array(holder, rows))
    is_kept = compute.fill_null(_as_boolean(body(found.parents, found.keys, found.items)), NO)
    parts = (part.filter(is_kept) for part in (found.parents, found.keys, found.items))
    return map_of(found.is_known, *parts)


def transform_values(rows: int, holder: Datum, body: Body) -> Array:
    """The map with each value replaced by the body's."""
    found = entries(as_array(holder, rows))
    items = body(found.parents, found.keys, found.items)
    return map_of(found.is_known, found.parents, found.keys, items)


def transform_keys(rows: int, holder: Datum, body: Body) -> Array:
    """The map with each key replaced by the body's value.

    Raises:
        InvalidInputError: a key is NULL or repeated.
    """
    found = entries(as_array(holder, rows))
    keys = body(found.parents, found.keys, found.items)
    made = map_of(found.is_known, found.parents, compute.fill_null(keys, _any(keys)), found.items)
    _check_keys(found.parents, keys)
    return made


def _any(keys: Array) -> Any:
    # NULL is no key for Arrow; `_check_keys` refuses it afterwards with its own message.
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
    """Of each key of both maps, the body's value of the key and both values. Cost: by row."""
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


KERNELS: Final[dict[str, Callable[..., Any]]] = {
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
