"""Find the live paths at given ranks, exactly, without sorting all paths in one process.

Owns the two rounds: first, samples of every piece's sorted paths bound the path of each rank; then
only the paths within these bounds come to the driver.

Protocol: Multi-part checkpoint (equal ranges for whoever writes the parts of a version)
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from deltalog.checkpoints.writer import AFTER_ALL_PATHS
from deltalog.kernels import compute

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.snapshot.cut import CutSnapshot

_SAMPLES: Final = 1000


@dataclass(frozen=True, slots=True)
class _Sample:
    """A sample of a piece's sorted paths, including the first and the last.

    Args:
        paths: ascending.
        places: rank of each among the piece's paths.
        count: number of paths of the piece.
    """

    paths: list[str]
    places: list[int]
    count: int

    def fewest_below(self, path: str) -> int:
        """Return the least number of paths of the piece that are smaller."""
        found = bisect_left(self.paths, path)
        return self.places[found - 1] + 1 if found else 0

    def most_below(self, path: str) -> int:
        """Return the greatest number of paths of the piece that may be smaller."""
        found = bisect_left(self.paths, path)
        return self.places[found] if found < len(self.paths) else self.count


@dataclass(frozen=True, slots=True)
class _Bounds:
    """A range of paths from `low` to below `high`; None is unbounded."""

    low: str | None
    high: str | None


class Ask(Protocol):
    """Evaluates a function of every piece of a version by tasks."""

    def __call__(self, look: Callable[[int], Any]) -> list[Any]:
        """Return the results for all pieces."""
        ...


def paths_at(
    ask: Ask, cut: CutSnapshot, places: Sequence[int], num_files: int, *, samples: int = _SAMPLES
) -> list[str]:
    """Return the live paths at given ranks.

    Args:
        ask: evaluates functions of the pieces.
        cut: the version.
        places: the ranks, ascending, from 0.
        num_files: number of live files.
        samples: of a piece; more make the first round longer and the second one shorter.

    Cost: two jobs over the checkpoint's paths; some thousand paths per piece come to the driver.
    """
    if not places or not num_files:
        return [AFTER_ALL_PATHS] * len(places)
    some: list[_Sample] = ask(partial(_sample, cut, samples))
    known = sorted({path for sample in some for path in sample.paths})
    bounds = [_bounds(some, known, place) for place in places]
    found: list[list[tuple[int, list[str]]]] = ask(partial(_within, cut, bounds))
    starts = []
    for number, place in enumerate(places):
        below = sum(piece[number][0] for piece in found)
        inside = sorted(path for piece in found for path in piece[number][1])
        starts.append(inside[place - below])
    return starts


def _bounds(samples: Sequence[_Sample], known: Sequence[str], place: int) -> _Bounds:
    """Return the range in which the path of a rank lies, between known paths."""

    def surely_after(path: str) -> bool:
        return sum(sample.fewest_below(path) for sample in samples) > place

    def maybe_after(path: str) -> bool:
        return sum(sample.most_below(path) for sample in samples) > place

    high = bisect_left(known, 1, key=lambda path: int(surely_after(path)))
    low = bisect_left(known, 1, key=lambda path: int(maybe_after(path)))
    return _Bounds(known[low - 1] if low else None, known[high] if high < len(known) else None)


def _paths(cut: CutSnapshot, number: int) -> Any:
    """Return the sorted paths of a piece."""
    paths: Any = cut.piece(number).files(["path"]).column("path")
    return paths.take(compute.sort_indices(paths))


def _sample(cut: CutSnapshot, samples: int, number: int) -> _Sample:
    paths = _paths(cut, number)
    count = len(paths)
    places = list(range(0, count, max(1, count // samples)))
    if count:
        places.append(count - 1)
    chosen: Any = pa.array(places, pa.int64())
    return _Sample(paths.take(chosen).to_pylist(), places, count)


def _within(
    cut: CutSnapshot, bounds: Sequence[_Bounds], number: int
) -> list[tuple[int, list[str]]]:
    """For each range, count the paths of a piece below it, and return those inside."""
    paths = _paths(cut, number)
    found = []
    for one in bounds:
        below = 0 if one.low is None else compute.sum(compute.less(paths, one.low)).as_py() or 0
        inside = paths.slice(below)
        if one.high is not None:
            inside = inside.filter(compute.less(inside, one.high))
        found.append((below, inside.to_pylist()))
    return found
