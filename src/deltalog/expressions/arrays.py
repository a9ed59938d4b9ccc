"""Functions of arrays as in Spark: set operations, sorting, slices, sequences.

Elements are compared as in `comparing`: NaN equals NaN, and NULL equals NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.clock import MICROS_PER_DAY
from deltalog._util.kernels import Array, Datum, compute
from deltalog.errors import InvalidInputError
from deltalog.expressions import strings
from deltalog.expressions.comparing import identity, sort_key
from deltalog.expressions.rows import as_array, by_row, check_volume, loosened, row_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Pairs = list[tuple[Any, Any]]

_ELEMENT_BYTES: Final = 8
_MAX_INTEGER: Final = (1 << 31) - 1


def list_of(lists: Array, values: Array, parents: Array | None = None) -> Array:
    """Return arrays of new values, with NULL for the rows that are NULL in `lists`.

    Args:
        lists: arrays with as many values in each row as the result, unless `parents` is given.
        values: the values of all rows, ordered by row.
        parents: the row number of each value.
    """
    counts = counts_of(len(lists), parents) if parents is not None else _lengths(lists)
    return pa.ListArray.from_arrays(
        compute.cast(offsets_of(counts), pa.int32()),
        values,
        type=pa.list_(pa.field("element", values.type)),
        mask=compute.is_null(lists),
    )


def offsets_of(counts: Array) -> Array:
    """Return the offset at which each row's values begin, followed by the end of the last row."""
    ends = compute.cumulative_sum(compute.cast(counts, pa.int64()))
    return pa.concat_arrays([pa.array([0], pa.int64()), ends])


def counts_of(rows: int, parents: Array) -> Array:
    """Count the values of each row, given the row number of each value."""
    counted = parents.value_counts()
    places = compute.index_in(
        row_numbers(rows), value_set=compute.cast(counted.field(0), pa.uint64())
    )
    return compute.fill_null(counted.field(1).take(places), 0)


def _lengths(lists: Array) -> Array:
    return compute.fill_null(compute.list_value_length(lists), 0)


def _distinct(values: Iterable[Any], left_out: Iterable[Any] = ()) -> list[Any]:
    """Return the distinct values in order of first occurrence, without the values in `left_out`."""
    seen = set(map(identity, left_out))
    found = []
    for value in values:
        key = identity(value)
        if key not in seen:
            seen.add(key)
            found.append(_with_one_zero(value))
    return found


def _with_one_zero(value: Any) -> Any:
    """Replace -0.0 by 0.0, also in nested values, as Spark does in sets."""
    match value:
        case float():
            return value + 0.0
        case list():
            return [_with_one_zero(part) for part in value]
        case dict():
            return {name: _with_one_zero(part) for name, part in value.items()}
        case _:
            return value


def _intersection(left: list[Any], right: list[Any]) -> list[Any]:
    keys = set(map(identity, right))
    return _distinct(value for value in left if identity(value) in keys)


def _overlap(left: list[Any], right: list[Any]) -> bool | None:
    keys = {identity(value) for value in left if value is not None}
    if any(identity(value) in keys for value in right if value is not None):
        return True
    # The result is unknown, because a NULL might equal any value of the other array.
    return None if left and right and (None in left or None in right) else False


def _join(texts: list[str | None], delimiter: str, null: str | None = None) -> str:
    known = [null if text is None else text for text in texts]
    return delimiter.join(text for text in known if text is not None)


def _position(values: list[Any], wanted: Any) -> int:
    keys = [None if value is None else identity(value) for value in values]
    key = identity(wanted)
    return keys.index(key) + 1 if key in keys else 0


def _remove(values: list[Any], unwanted: Any) -> list[Any]:
    key = identity(unwanted)
    return [value for value in values if value is None or identity(value) != key]


def _sorted_nulls_last(values: list[Any]) -> list[Any]:
    known = [value for value in values if value is not None]
    return sorted(known, key=sort_key) + [None] * (len(values) - len(known))


def _sort(values: list[Any], is_ascending: bool = True) -> list[Any]:  # noqa: FBT001, FBT002  # an argument in SQL
    if is_ascending:
        return sorted(values, key=sort_key)
    # Python preserves the order of equal values, even with `reverse=True`.
    return sorted(values, key=sort_key, reverse=True)


def _least(values: list[Any]) -> Any:
    return min((value for value in values if value is not None), key=sort_key, default=None)


def _greatest(values: list[Any]) -> Any:
    return max((value for value in values if value is not None), key=sort_key, default=None)


def _flatten(lists: list[list[Any] | None]) -> list[Any] | None:
    known = [values for values in lists if values is not None]
    return None if len(known) < len(lists) else list(chain.from_iterable(known))


def _slice(values: list[Any], start: int, count: int) -> list[Any]:
    if start == 0 or count < 0:
        raise InvalidInputError(
            f"slice counts from 1, or from -1 at the end, and needs a length of 0 or more; found "
            f"the position {start} and the length {count}"
        )
    begin = start - 1 if start > 0 else len(values) + start
    if begin < len(values) and begin + count > _MAX_INTEGER:
        # For such a slice, Spark's compiled code returns the rest of the array, but Spark's
        # interpreted code returns an empty array.
        raise InvalidInputError(f"slice from {start} on is too long: {count} elements")
    return values[begin : begin + count] if begin >= 0 else []


def slots(lengths: Array) -> tuple[Array, Array]:
    """Return the row number and the position from 0 of each element, given the arrays' lengths."""
    offsets = offsets_of(lengths)
    lists = pa.LargeListArray.from_arrays(offsets, pa.nulls(offsets[-1].as_py()))
    parents = compute.list_parent_indices(lists)
    numbers = compute.cast(row_numbers(len(parents)), pa.int64())
    return parents, compute.subtract(numbers, offsets.take(parents))


def array_repeat(value: Datum, count: Datum) -> Datum:
    """Repeat a value as an array; NULL if the count is NULL, but not if the value is NULL."""
    rows = max((len(side) for side in (value, count) if not isinstance(side, pa.Scalar)), default=1)
    counts = as_array(count, rows)
    lengths = compute.cast(compute.max_element_wise(compute.fill_null(counts, 0), 0), pa.int64())
    values = as_array(value, rows)
    size = -(-values.nbytes // max(rows, 1))
    check_volume("array_repeat", lengths, unit_bytes=max(size, _ELEMENT_BYTES))
    parents, _ = slots(lengths)
    # Arrow's `take` does not support arrays of type null.
    taken = pa.nulls(len(parents)) if pt.is_null(values.type) else values.take(parents)
    made = list_of(counts, taken, parents)
    return made[0] if isinstance(value, pa.Scalar) and isinstance(count, pa.Scalar) else made


def sequence(start: Datum, stop: Datum, step: Datum | None = None) -> Datum:
    """Return the values from `start` to `stop`, both included; the default step is 1 or one day."""
    sides = [side for side in (start, stop, step) if side is not None]
    rows = max((len(side) for side in sides if not isinstance(side, pa.Scalar)), default=1)
    numbers = [compute.cast(_as_number(as_array(side, rows)), pa.int64()) for side in sides]
    unit = MICROS_PER_DAY if pt.is_timestamp(start.type) else 1
    steps: list[int] = []
    lengths: list[int] = []
    for row in zip(*(side.to_pylist() for side in numbers), strict=True):
        by, many = (0, 0) if None in row else _steps(unit, *row)
        steps.append(by)
        lengths.append(many)
    counts = pa.array(lengths, pa.float64())
    check_volume("sequence", counts, unit_bytes=_ELEMENT_BYTES)
    parents, places = slots(counts)
    moved = compute.multiply(pa.array(steps, pa.int64()).take(parents), places)
    values = compute.add(numbers[0].take(parents), moved)
    made = pa.ListArray.from_arrays(
        compute.cast(offsets_of(counts), pa.int32()),
        _of_number(values, start.type),
        type=pa.list_(pa.field("element", start.type, nullable=False)),
        mask=compute.invert(_all_valid(numbers)),
    )
    return made[0] if all(isinstance(side, pa.Scalar) for side in sides) else made


def _steps(unit: int, first: int, last: int, by: int | None = None) -> tuple[int, int]:
    """Return the step from one value to the next, and the number of values."""
    width = last - first
    by = by if by is not None else unit if width >= 0 else -unit
    if by == 0 and width == 0:
        return 0, 1
    if by == 0 or by * width < 0:
        raise InvalidInputError(f"steps of {by} do not lead from {first} to {last}")
    return by, width // by + 1


def _as_number(values: Array) -> Array:
    return values.cast(pa.int32()) if pt.is_date(values.type) else values


def _of_number(values: Array, arrow_type: Any) -> Array:
    narrow = values.cast(pa.int32()) if pt.is_date(arrow_type) else values
    return narrow.cast(arrow_type)


def _all_valid(sides: list[Array]) -> Array:
    known = compute.is_valid(sides[0])
    for side in sides[1:]:
        known = compute.and_(known, compute.is_valid(side))
    return known


def reverse(value: Datum) -> Datum:
    """Reverse a string or an array. Cost: by row for arrays."""
    if pt.is_list(value.type):
        return by_row(lambda values: values[::-1], value.type, value)
    return strings.reverse(value)


def concat(*parts: Datum) -> Datum:
    """Concatenate strings or arrays; NULL if a part is NULL. Cost: by row for arrays."""
    if parts and pt.is_list(parts[0].type):
        result = loosened(parts[0].type)
        return by_row(lambda *values: list(chain.from_iterable(values)), result, *parts)
    return strings.concat(*parts)


def _zip(*lists: list[Any]) -> list[tuple[Any, ...]]:
    return list(zip_longest(*lists))


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "array_repeat": array_repeat,
    "sequence": sequence,
    "reverse": reverse,
    "concat": concat,
}


# --- Functions of maps


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of all maps of a column.

    Args:
        is_known: for each row, whether its map is not NULL.
        parents: the row of each entry.
        keys: the key of each entry.
        items: the value of each entry.
    """

    is_known: Array
    parents: Array
    keys: Array
    items: Array


def entries(maps: Array) -> Entries:
    """Return the entries of a column of maps, without those of NULL maps."""
    first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    is_known = compute.is_valid(maps)
    places = pa.ListArray.from_arrays(
        compute.subtract(maps.offsets, first),
        row_numbers(last - first),
        mask=compute.is_null(maps),
    )
    kept = compute.list_flatten(places)
    keys, items = (part.slice(first, last - first).take(kept) for part in (maps.keys, maps.items))
    return Entries(is_known, compute.list_parent_indices(places), keys, items)


def map_of(is_known: Array, parents: Array, keys: Array, items: Array) -> Array:
    """Build a column of maps from entries that are ordered by row."""
    offsets = compute.cast(offsets_of(counts_of(len(is_known), parents)), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, items, mask=compute.invert(is_known))


def checked_pairs(pairs: Iterable[tuple[Any, Any]]) -> Pairs:
    """Return the entries of a map after checking their keys.

    Raises:
        InvalidInputError: a key is NULL or repeated (the default of Spark's
            `spark.sql.mapKeyDedupPolicy`).
    """
    found = list(pairs)
    keys = [key for key, _ in found]
    if None in keys or len({identity(key) for key in keys}) < len(keys):
        raise InvalidInputError(f"the keys of a map must be different and not NULL, found {keys}")
    return found


def _from_arrays(keys: list[Any], values: list[Any]) -> Pairs:
    if len(keys) != len(values):
        raise InvalidInputError(
            f"a map needs as many keys as values, found {len(keys)} keys and {len(values)} values"
        )
    return checked_pairs(zip(keys, values, strict=True))


def _from_entries(structs: list[dict[str, Any] | None]) -> Pairs | None:
    known = [tuple(struct.values()) for struct in structs if struct is not None]
    if len(known) < len(structs):
        return None
    return checked_pairs((key, value) for key, value in known)


def _concat(*maps: Pairs) -> Pairs:
    return checked_pairs(pair for pairs in maps for pair in pairs)


_MAP_ROWS: Final[dict[str, Callable[..., Any]]] = {
    "map_from_arrays": _from_arrays,
    "map_from_entries": _from_entries,
    "map_concat": _concat,
    "map_entries": lambda pairs: pairs,
}


ROWS: Final[dict[str, Callable[..., Any]]] = {
    **_MAP_ROWS,
    "array_distinct": _distinct,
    "array_union": lambda left, right: _distinct([*left, *right]),
    "array_intersect": _intersection,
    "array_except": _distinct,
    "arrays_overlap": _overlap,
    "array_join": _join,
    "array_position": _position,
    "array_remove": _remove,
    "array_sort": _sorted_nulls_last,
    "sort_array": _sort,
    "array_min": _least,
    "array_max": _greatest,
    "arrays_zip": _zip,
    "flatten": _flatten,
    "slice": _slice,
}
