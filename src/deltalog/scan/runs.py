"""Runs of physical rows: which rows of a file are read, and where those are that are kept.

A run is the number of its first row and of the one behind its last. Runs are ascending and do not
overlap. Rows that are near to each other are one run: what lies between is on the same page.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.kernels import arrow, compute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltalog.deletion_vectors import DeletionBitmap
    from deltalog.storage.parquet_pages import RowRange

_GAP_ROWS: Final = 1024
_MOST_RUNS: Final = 512


def merged(runs: Iterable[RowRange]) -> list[RowRange]:
    """Ascending runs of rows, those that touch made one."""
    found: list[RowRange] = []
    for start, end in runs:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        elif start < end:
            found.append((start, end))
    return found


def positions(runs: Sequence[RowRange]) -> pa.Array[Any]:
    """The numbers of the rows, ascending."""
    parts = [arrow.arange(start, end) for start, end in runs]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def within_groups(runs: Iterable[RowRange], starts: Sequence[int]) -> Iterator[RowRange]:
    """The runs, cut where row groups begin.

    Args:
        runs: to cut.
        starts: each row group's first row, and the number of rows.
    """
    for first, end in runs:
        start = first
        while start < end:
            stop = min(end, starts[bisect_right(starts, start)])
            yield start, stop
            start = stop


def live_runs(
    runs: Sequence[RowRange], marked: DeletionBitmap, *, only_deleted: bool
) -> Sequence[RowRange]:
    """The runs without long parts that a deletion vector leaves out.

    Args:
        runs: that may match.
        marked: by the vector.
        only_deleted: whether the marked rows are wanted, instead of the others.
    """
    if not runs:
        return runs
    first, end = runs[0][0], runs[-1][1]
    num_marked = marked.count_between(first, end)
    if only_deleted and not num_marked:
        return []
    if not only_deleted and num_marked < _GAP_ROWS:
        return runs
    marks = marked.between(first, end).to_arrow()
    starts, ends = _near(marks, _GAP_ROWS if only_deleted else 1)
    if not only_deleted:  # only a long part that is gone saves something
        is_long = compute.greater_equal(compute.subtract(ends, starts), _GAP_ROWS)
        starts, ends = starts.filter(is_long), ends.filter(is_long)
    if len(starts) > _MOST_RUNS:
        return runs
    wanted = _pairs(starts, ends)
    if not only_deleted:
        edges = [first, *(edge for run in wanted for edge in run), end]
        wanted = list(zip(edges[::2], edges[1::2], strict=True))
    return _common(runs, wanted)


def hits(
    runs: Sequence[RowRange], mask: pa.BooleanArray, starts: Sequence[int]
) -> tuple[Sequence[RowRange], pa.BooleanArray]:
    """The runs around the kept rows, and a mask over their rows.

    Args:
        runs: that were read.
        mask: which of their rows are kept, at least one.
        starts: each row group's first row, and the number of rows.
    """
    places = _near_places(mask)
    if places is None:  # they are everywhere: leave out row groups
        cut = list(within_groups(runs, starts))
        ends = list(accumulate(end - start for start, end in cut))
        every = zip([0, *ends[:-1]], ends, strict=True)
        places = [place for place in every if mask.slice(place[0], _length(place)).true_count]
    offsets = [0, *accumulate(map(_length, runs))]
    found: list[RowRange] = []
    parts: list[pa.BooleanArray] = []
    for place in within_groups(places, offsets):
        number = bisect_right(offsets, place[0]) - 1
        shift = runs[number][0] - offsets[number]
        found.append((place[0] + shift, place[1] + shift))
        parts.append(mask.slice(place[0], _length(place)))
    return merged(found), parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _near_places(mask: pa.BooleanArray) -> list[RowRange] | None:
    """Runs of places that are true or near to such; None if they are nearly all of the mask."""
    if mask.true_count > len(mask) // 2:
        return None
    kept: Any = compute.indices_nonzero(mask)
    starts, ends = _near(kept, _GAP_ROWS)
    if len(starts) > _MOST_RUNS:
        return None
    return _pairs(starts, ends)


def _near(numbers: pa.Array[Any], gap: int) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """First numbers, and ends, of runs of ascending numbers between which gaps are short."""
    count = len(numbers)
    steps = compute.subtract(numbers.slice(1), numbers.slice(0, max(0, count - 1)))
    lasts = compute.indices_nonzero(compute.greater(steps, gap))
    firsts = numbers.take(compute.add(lasts, 1))
    ends = compute.add(pa.concat_arrays([numbers.take(lasts), numbers.slice(count - 1)]), 1)
    return pa.concat_arrays([numbers.slice(0, 1), firsts]), ends


def _pairs(starts: pa.Array[Any], ends: pa.Array[Any]) -> list[RowRange]:
    bounds: list[list[Any]] = [starts.to_pylist(), ends.to_pylist()]
    return list(zip(*bounds, strict=True))


def _common(some: Sequence[RowRange], others: Sequence[RowRange]) -> list[RowRange]:
    """The rows that both have."""
    found: list[RowRange] = []
    position = 0
    for start, end in some:
        while position < len(others) and others[position][1] <= start:
            position += 1
        at = position
        while at < len(others) and others[at][0] < end:
            found.append((max(start, others[at][0]), min(end, others[at][1])))
            at += 1
    return merged(found)


def _length(run: RowRange) -> int:
    return run[1] - run[0]
