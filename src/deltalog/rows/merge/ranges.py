"""Search the source's ranges that a value of the table lies in, instead of comparing every pair.

Owns the search: the values are compared with few ranges, and sorted for many, as the values in a
range then stand together. Ranges have both their ends here: whether an end belongs to its range is
decided by who compares the pairs that were found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NamedTuple

import pyarrow as pa

from deltalog.kernels import Array, arrow, compute

_FEW: Final = 16
"""So many ranges are compared with all values sooner than the values are sorted."""
_DENSE: Final = 4
"""Where one of so many pairs is in a range, looking at every pair is as quick."""
_LEAST: Final = 32
"""So few values are compared with all ranges sooner than these are sorted."""


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
        self._num_rows = len(ends[0])
        self._rows: Array = rows
        self._lows: Array | None = None if lows is None else lows.take(rows)
        self._highs: Array | None = None if highs is None else highs.take(rows)

    def match(self, values: Array) -> tuple[Array, Array] | None:
        """Return all pairs of a value and a range around it.

        Args:
            values: of the other side, one per row.

        Returns:
            Row numbers of the other side, ascending, and of the ranges' side. None if so many pairs
            are there that looking at every pair is as quick.

        Cost: the values are compared with few ranges that are near, or else sorted with the lower
        ends of all that are, and with the upper ends, at each call. Memory for the pairs.
        """
        if self._is_cheap_to_cross(len(values)):
            return None
        near, members = self._members(values)
        if self._is_dense(members.num_pairs, len(values)):
            return None
        pairs = members.pairs()
        by_row = compute.array_sort_indices(pairs.rows)  # stable: ranges stay ascending
        return pairs.rows.take(by_row), self._rows.take(near).take(pairs.ranges.take(by_row))

    def edges(self, values: Array, most: int) -> list[int] | None:
        """Return where to cut values, so that no part of several has more than `most` pairs.

        None if looking at every pair is as quick.
        """
        waiting, stops = [(0, len(values))], []
        while waiting:
            start, stop = waiting.pop()
            count = stop - start
            if self._is_cheap_to_cross(count):
                step = max(1, most // self._num_rows)
                stops += [*range(start + step, stop, step), stop]
                continue
            num_pairs = 0
            if count > 1 and count * len(self._rows) > most:
                num_pairs = self._members(values.slice(start, count))[1].num_pairs
            if count == len(values) and self._is_dense(num_pairs, count):
                return None
            if num_pairs > most:
                middle = start + count // 2
                waiting += [(middle, stop), (start, middle)]
            else:
                stops.append(stop)
        return stops[:-1]

    def _is_cheap_to_cross(self, num_values: int) -> bool:
        return num_values < _LEAST and len(self._rows) > _FEW

    def _is_dense(self, num_pairs: int, num_values: int) -> bool:
        return num_pairs * _DENSE > num_values * self._num_rows

    def _members(self, values: Array) -> tuple[Array, _Members]:
        """Return the numbers of the ranges that are near, and which values are in them."""
        near = self._near(values)
        if len(near) <= _FEW:
            return near, self._compared(values, near)
        return near, self._sorted(values, near)

    def _compared(self, values: Array, near: Array) -> _Members:
        """Compare the values with each of few ranges."""
        rows: list[Array] = [pa.array([], pa.int64())]
        for number in near.to_pylist():
            tests: list[Array] = []
            if self._lows is not None:
                tests.append(compute.greater_equal(values, self._lows[number]))
            if self._highs is not None:
                tests.append(compute.less_equal(values, self._highs[number]))
            rows.append(compute.indices_nonzero(reduce(compute.and_, tests)).cast(pa.int64()))
        counts: Array = pa.array(map(len, rows[1:]), pa.int64())
        starts = compute.subtract(compute.cumulative_sum(counts), counts)
        return _Members(pa.concat_arrays(rows), starts, counts)

    def _sorted(self, values: Array, near: Array) -> _Members:
        """Sort the values: those in a range stand together."""
        order: Array = None
        starts: Array = pa.repeat(0, len(near))
        counts: Array = starts  # there is one end at least
        if self._lows is not None:
            order, starts = _ranked(values, self._lows.take(near), with_equal=False)
            counts = compute.subtract(len(values) - values.null_count, starts)
        if self._highs is not None:
            order, stops = _ranked(values, self._highs.take(near), with_equal=True)
            counts = compute.subtract(stops, starts)
        return _Members(order, starts, counts)

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


class _Pairs(NamedTuple):
    """The row number of the value of each pair, and the number of its range, ascending."""

    rows: Array
    ranges: Array


@dataclass(frozen=True, slots=True)
class _Members:
    """Which values are in which ranges.

    Args:
        order: row numbers of values; those of each range stand together.
        starts: where in the order those of each range start.
        counts: how many these are.
    """

    order: Array
    starts: Array
    counts: Array

    @property
    def num_pairs(self) -> int:
        """How many pairs of a value and a range around it there are; they are not made for it."""
        return compute.sum(self.counts).as_py() or 0

    def pairs(self) -> _Pairs:
        """Return these pairs."""
        stops = compute.cumulative_sum(self.counts)
        offsets: Any = pa.concat_arrays([pa.array([0], pa.int64()), stops])
        numbers: Array = arrow.arange(0, self.num_pairs)
        ranges = compute.list_parent_indices(pa.LargeListArray.from_arrays(offsets, numbers))
        shifts = compute.subtract(self.starts, offsets.slice(0, len(stops)))
        return _Pairs(self.order.take(compute.add(numbers, shifts.take(ranges))), ranges)


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
