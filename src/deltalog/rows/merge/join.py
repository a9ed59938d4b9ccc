"""Equi-join: find the rows of two sides that have equal keys.

Owns the index: each distinct key of the source has a number, and rows of the target look up the
number of their key. Only key columns are held in memory. -0.0 equals 0.0 and NaN equals NaN, as in
Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.kernels import Array, arrow, compute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_MAX_PLACES: Final = 1 << 29
_WINDOW_PLACES: Final = 1 << 25


class KeyIndex:
    """An index of the keys of one side's rows.

    Args:
        columns: the parts of the key, with one value per row.
        null_safe: for each part, whether NULL equals NULL (`<=>`) or nothing (`=`).
    """

    def __init__(self, columns: Sequence[Array], null_safe: Sequence[bool]) -> None:
        self._steps: list[tuple[Array, Array | None]] = []
        self._ranges: list[_Range | None] = []
        codes: Array = None
        for values, safe in zip(columns, null_safe, strict=True):
            plain = _normal(values)
            distinct = compute.unique(plain)
            if not safe:
                distinct = distinct.drop_null()
            code = _codes(plain, distinct)
            pairs = None
            if codes is not None:
                combined = _combined(codes, code, distinct)
                pairs = compute.unique(combined).drop_null()
                code = _codes(combined, pairs)
            self._steps.append((distinct, pairs))
            self._ranges.append(_Range.of(distinct))
            codes = code
        rows = compute.indices_nonzero(codes.is_valid()).cast(pa.int64())
        groups = codes.drop_null()
        # `unique` numbers keys in the order of their first rows, and so does `value_counts`.
        counts = compute.value_counts(groups)
        self.num_keys: int = len(counts)
        self._rows = rows
        self._lists: Array = None
        if self.num_keys < len(groups):
            order = compute.array_sort_indices(groups)
            ends = compute.cumulative_sum(counts.field("counts"))
            offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
            self._lists = pa.LargeListArray.from_arrays(offsets, rows.take(order))

    def match(self, columns: Sequence[Array]) -> tuple[Array, Array]:
        """Return all pairs of rows with equal keys.

        Args:
            columns: the parts of the other side's keys, with one value per row.

        Returns:
            Row numbers of the other side, ascending, and of the indexed side.
        """
        base, codes = self._look_up(columns)
        positions = compute.indices_nonzero(codes.is_valid()).cast(pa.int64())
        groups = codes.drop_null()
        if base is not None:
            positions = base.take(positions)
        if self._lists is None:
            return positions, self._rows.take(groups)
        found = self._lists.take(groups)
        parents = compute.list_parent_indices(found)
        return positions.take(parents), found.flatten()

    @property
    def is_cheap(self) -> bool:
        """Whether a look-up has no fixed cost, so that small batches need not be joined."""
        return len(self._steps) == 1 and self._ranges[0] is not None and self._ranges[0].is_small

    def _look_up(self, columns: Sequence[Array]) -> tuple[Array | None, Array]:
        """Return the rows that may have a key (None is all), and for each its key's number."""
        base: Array | None = None
        for values, known in zip(columns, self._ranges, strict=True):
            if known is not None:
                base = known.rows(values)
                columns = [column.take(base) for column in columns]
                break
        if self.is_cheap and self._ranges[0] is not None:
            return base, self._ranges[0].codes(columns[0])
        codes: Array = None
        for (distinct, pairs), values in zip(self._steps, columns, strict=True):
            code = _codes(_normal(values), distinct)
            if pairs is not None:
                code = _codes(_combined(codes, code, distinct), pairs)
            codes = code
        return base, codes


class _Range:
    """A direct-address table for integers in a narrow range, many times faster than a hash.

    Args:
        distinct: the integers, none NULL.
        low: the smallest of them.
        high: the greatest.

    Attributes:
        is_small: whether the table holds key numbers, and not only a bit per integer.
    """

    def __init__(self, distinct: Array, low: int, high: int) -> None:
        self._low, self._high = (pa.scalar(end, distinct.type) for end in (low, high))
        self._first = pa.scalar(low, pa.int64())
        places = self._places(distinct)
        self.is_small = high - low < _WINDOW_PLACES
        # In windows, to bound memory: the kernel needs four bytes per place, the result one bit.
        windows = [
            _placed(places, first, min(_WINDOW_PLACES, high - low + 1 - first))
            for first in range(0, high - low + 1, _WINDOW_PLACES)
        ]
        if self.is_small:
            (self._codes,) = windows
        self._bits = pa.concat_arrays([window.is_valid() for window in windows])

    @classmethod
    def of(cls, distinct: Array) -> _Range | None:
        """Return the table; None if the range is too wide or the values are no integers."""
        if not pa.types.is_integer(distinct.type) or not len(distinct) or distinct.null_count:
            return None
        ends = compute.min_max(distinct).as_py()
        if ends["max"] - ends["min"] >= _MAX_PLACES:
            return None
        return cls(distinct, ends["min"], ends["max"])

    def rows(self, values: Array) -> Array:
        """Return the numbers of the rows whose value is in the table."""
        inside = compute.and_(
            compute.greater_equal(values, self._low), compute.less_equal(values, self._high)
        )
        rows = None
        if inside.null_count or inside.true_count < len(values):
            inside = compute.fill_null(inside, pa.scalar(value=False))
            rows = compute.indices_nonzero(inside).cast(pa.int64())
            values = values.filter(inside)
        there = self._bits.take(self._places(values))
        found = compute.indices_nonzero(there).cast(pa.int64())
        return found if rows is None else rows.take(found)

    def codes(self, values: Array) -> Array:
        """Return the key number of each value; all values must be in the table."""
        return self._codes.take(self._places(values))

    def _places(self, values: Array) -> Array:
        return compute.subtract(values.cast(pa.int64()), self._first)


def cross(num_rows: int, num_others: int, *, most: int) -> Iterator[tuple[Array, Array]]:
    """Yield every pair of two sides' rows, at most about `most` at a time."""
    if not num_rows or not num_others:
        return
    step = max(1, most // num_rows)
    for first in range(0, num_others, step):
        count = min(step, num_others - first)
        numbers = arrow.arange(0, num_rows * count)
        positions = compute.divide(numbers, count)
        others = compute.add(compute.subtract(numbers, compute.multiply(positions, count)), first)
        yield positions, others


def _placed(places: Array, first: int, count: int) -> Array:
    """Invert `places` for the range that starts at `first`: index of each place, NULL if none."""
    inside = compute.subtract(places, first)
    near = compute.and_(compute.greater_equal(inside, 0), compute.less(inside, count))
    # Places outside go to an extra last place, which is cut off; filtering would renumber the rest.
    inside = compute.if_else(near, inside, count)
    options = compute.InversePermutationOptions(max_index=count, output_type=pa.int32())
    return compute.call_function("inverse_permutation", [inside], options).slice(0, count)


def _normal(values: Array) -> Array:
    """Return the values with -0.0 as 0.0, as `unique` and `index_in` compare bits."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_floating(values.type):
        return compute.add(values, pa.scalar(0.0, values.type))
    return values


def _codes(values: Array, distinct: Array) -> Array:
    return compute.index_in(values, value_set=distinct).cast(pa.int64())


def _combined(codes: Array, more: Array, distinct: Array) -> Array:
    """Combine two numbers into one; NULL if either is NULL."""
    return compute.add(compute.multiply(codes, max(1, len(distinct))), more)
