"""Histograms of a version checksum: file sizes, and rows deleted by deletion vectors.

Owns the bins. A histogram is computed once over all files, and then updated by each commit.

Protocol: Version Checksum File (File Size Histogram Schema, Deleted Record Counts Histogram)
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.kernels import compute

if TYPE_CHECKING:
    from collections.abc import Sequence


_KIB: Final = 1 << 10
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_FEW: Final = 1000

# Delta Spark's bins: narrow around the usual target file sizes.
FILE_SIZE_BOUNDARIES: Final = (
    0,
    *(8 * _KIB << step for step in range(10)),
    *range(8 * _MIB, 40 * _MIB, 4 * _MIB),
    *range(40 * _MIB, 120 * _MIB, 8 * _MIB),
    *range(120 * _MIB, 144 * _MIB, 4 * _MIB),
    *range(144 * _MIB, 576 * _MIB, 16 * _MIB),
    576 * _MIB,
    *range(640 * _MIB, 1024 * _MIB, 64 * _MIB),
    *range(1024 * _MIB, 1408 * _MIB, 64 * _MIB),
    *range(1408 * _MIB, 2048 * _MIB, 128 * _MIB),
    *range(2048 * _MIB, 4096 * _MIB, 256 * _MIB),
    *(4 * _GIB << step for step in range(7)),
)
DELETED_COUNT_BOUNDARIES: Final = (0, *(10**power for power in range(8)), 2**31 - 1)


def histogram(values: pa.ChunkedArray[Any], boundaries: Sequence[int]) -> tuple[list[int], ...]:
    """The number of values in each bin, and their sum; a bin ends where the next one starts.

    Args:
        values: integers; NULLs are ignored.
        boundaries: the start of each bin, ascending.

    Returns:
        The counts and the sums.

    Cost: some vectorised kernels per bin.
    """
    if len(values) <= _FEW:
        return _histogram_of_few(
            [value for value in values.to_pylist() if value is not None], boundaries
        )
    above: list[tuple[int, int]] = []
    rest: Any = values.drop_null()
    for start in boundaries:  # the values at or above each start, which shrink from bin to bin
        rest = rest.filter(compute.greater_equal(rest, start))
        above.append((len(rest), compute.sum(rest).as_py() or 0))
    above.append((0, 0))
    return (
        [here[0] - further[0] for here, further in pairwise(above)],
        [here[1] - further[1] for here, further in pairwise(above)],
    )


def _histogram_of_few(
    values: Sequence[int], boundaries: Sequence[int]
) -> tuple[list[int], list[int]]:
    counts, sums = [0] * len(boundaries), [0] * len(boundaries)
    for value in values:
        place = bisect_right(boundaries, value) - 1
        if place >= 0:
            counts[place] += 1
            sums[place] += value
    return counts, sums
