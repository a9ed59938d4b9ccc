"""Search the source's ranges that a value of the table lies in, instead of comparing every pair.

Owns the search: values are sorted once, and the values in a range then stand together. Ranges have
both their ends here: whether an end belongs to its range is decided by who compares the pairs that
were found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog.kernels import Array, arrow, compute

if TYPE_CHECKING:
    from collections.abc import Iterator

_FEW: Final = 16
"""So many ranges are compared with all values sooner than the values are sorted."""


class RangeIndex:
    """Ranges of one side's rows; a range that a NULL or its other end leaves empty holds nothing.

    Args:
        lows: the least value of each row's range; None if ranges have no least value.
        highs: the greatest value of each; None as above, but not both.
    """

    def __init__(self, lows: Array | None, highs: Array | None) -> None:
        ends = [each for each in (lows, highs) if each is not None]
        holds = compute.is_valid(ends[0])
        if lows is not None and highs is not None:
            holds = compute.less_equal(lows, highs)
        rows = compute.indices_nonzero(holds).cast(pa.int64())
        self._rows: Array = rows
        self._lows: Array | None = None if lows is None else lows.take(rows)
        self._highs: Array | None = None if highs is None else highs.take(rows)

    def num_pairs(self, values: Array) -> int:
        """Return how many pairs of a value and a range around it there are.

        Cost: that of `match`, without memory for the pairs.
        """
        near = self._near(values)
        if len(near) <= _FEW:
            return sum(inside.true_count for inside in self._each(values, near))
        return compute.sum(self._search(values, near).counts).as_py() or 0

    def match(self, values: Array) -> tuple[Array, Array]:
        """Return all pairs of a value and a range around it.

        Args:
            values: of the other side, one per row.

        Returns:
            Row numbers of the other side, ascending, and of the ranges' side.

        Cost: the values are compared with few ranges that are near, or else sorted with the lower
        ends of all that are, and with the upper ends. Memory for the pairs.
        """
        near = self._near(values)
        if len(near) <= _FEW:
            lists = [compute.indices_nonzero(inside) for inside in self._each(values, near)]
            positions: Array = pa.concat_arrays([pa.array([], pa.uint64()), *lists])
            counts: Array = pa.array([len(each) for each in lists], pa.int64())
            ranges = _repeated(counts).ranges
        else:
            found = self._search(values, near)
            pairs = _repeated(found.counts)
            ranges = pairs.ranges
            places = compute.add(pairs.numbers, found.starts.take(ranges))
            positions = found.order.take(places)
        by_position = compute.array_sort_indices(positions)  # stable: ranges stay ascending
        rows = self._rows.take(near)
        return positions.take(by_position).cast(pa.int64()), rows.take(ranges.take(by_position))

    def edges(self, values: Array, most: int) -> list[int]:
        """Return where to cut values, so that no part of several has more than `most` pairs."""
        waiting, stops = [(0, len(values))], []
        while waiting:
            start, stop = waiting.pop()
            count = stop - start
            is_long = count > 1 and count * len(self._rows) > most
            if is_long and self.num_pairs(values.slice(start, count)) > most:
                middle = start + count // 2
                waiting += [(middle, stop), (start, middle)]
            else:
                stops.append(stop)
        return stops[:-1]

    def _each(self, values: Array, near: Array) -> Iterator[pa.BooleanArray]:
        """Yield which values are in each of some ranges."""
        for number in near.to_pylist():
            tests: list[Array] = []
            if self._lows is not None:
                tests.append(compute.greater_equal(values, self._lows[number]))
            if self._highs is not None:
                tests.append(compute.less_equal(values, self._highs[number]))
            yield reduce(compute.and_, tests)

    def _search(self, values: Array, near: Array) -> _Sorted:
        order: Array = None
        starts: Array = pa.repeat(0, len(near))
        counts: Array = starts  # there is one end at least
        if self._lows is not None:
            order, starts = _ranked(values, self._lows.take(near), with_equal=False)
            counts = compute.subtract(len(values) - values.null_count, starts)
        if self._highs is not None:
            order, stops = _ranked(values, self._highs.take(near), with_equal=True)
            counts = compute.subtract(stops, starts)
        return _Sorted(order, starts, counts)

    def _near(self, values: Array) -> Array:
        """Return the numbers of the ranges that reach between the least and the greatest value."""
        ends = compute.min_max(values)
        reaches: Array = pa.repeat(pa.scalar(value=True), len(self._rows))
        if self._lows is not None:
            reaches = compute.less_equal(self._lows, ends["max"])
        if self._highs is not None:
            enough = compute.greater_equal(self._highs, ends["min"])
            reaches = compute.and_(reaches, enough)
        return compute.indices_nonzero(reaches)


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Which values are in which ranges.

    Args:
        order: the values' numbers, sorted by the values; NULL values come last.
        starts: where in the order the values of each range start.
        counts: how many these are.
    """

    order: Array
    starts: Array
    counts: Array


class _Pairs(NamedTuple):
    """Of each pair, the number of its range, and its own number among the pairs of that."""

    ranges: Array
    numbers: Array


def _repeated(counts: Array) -> _Pairs:
    """Return the pairs of ranges that have so many each."""
    stops = compute.cumulative_sum(counts)
    offsets: Any = pa.concat_arrays([pa.array([0], pa.int64()), stops])
    numbers: Array = arrow.arange(0, offsets[-1].as_py())
    ranges = compute.list_parent_indices(pa.LargeListArray.from_arrays(offsets, numbers))
    return _Pairs(ranges, compute.subtract(numbers, offsets.take(ranges)))


def _ranked(values: Array, ends: Array, *, with_equal: bool) -> tuple[Array, Array]:
    """Return the order of the values, and how many of them are less than each end.

    Args:
        values: in any order.
        ends: none of them NULL.
        with_equal: count values that equal an end, too.
    """
    # The sort is stable: which of two equal ones comes first is decided by which stands first.
    parts = [values, ends] if with_equal else [ends, values]
    order = compute.array_sort_indices(pa.concat_arrays(parts)).cast(pa.int64())
    count = len(parts[0])
    is_first = compute.less(order, count)
    is_end = compute.invert(is_first) if with_equal else is_first
    is_value = compute.invert(is_end)
    before = compute.cumulative_sum(is_value.cast(pa.int64())).filter(is_end)
    numbers = order.filter(is_end)  # of the ends, as far as they are behind the first ones
    of_values = order.filter(is_value)
    if not with_equal:
        of_values = compute.subtract(of_values, count)
    return of_values, before.take(compute.array_sort_indices(numbers))
