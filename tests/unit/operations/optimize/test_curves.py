"""Curves: every cell once, neighbours close."""

from __future__ import annotations

import itertools
from typing import Literal

import pyarrow as pa
import pytest

from deltalog.operations.optimize.cluster import bits_for, curve_keys

SHAPES = [(1, 4), (2, 1), (2, 5), (3, 3), (4, 3), (5, 2)]


def path(curve: Literal["zorder", "hilbert"], count: int, bits: int) -> list[tuple[int, ...]]:
    """The cells in the order of the curve."""
    cells = list(itertools.product(range(1 << bits), repeat=count))
    ranks = [pa.array([cell[axis] for cell in cells], pa.int64()) for axis in range(count)]
    keys = curve_keys(ranks, bits, curve).to_pylist()
    assert sorted(keys, key=lambda key: key or 0) == list(range(1 << bits * count))
    return [cell for _, cell in sorted(zip(keys, cells, strict=True))]


@pytest.mark.parametrize(("count", "bits"), SHAPES)
def test_hilberts_curve_never_jumps(count: int, bits: int) -> None:
    cells = path("hilbert", count, bits)
    for before, after in itertools.pairwise(cells):
        assert sum(abs(a - b) for a, b in zip(before, after, strict=True)) == 1


@pytest.mark.parametrize(("count", "bits"), SHAPES)
def test_the_z_curve_interleaves_bits(count: int, bits: int) -> None:
    for key, cell in enumerate(path("zorder", count, bits)):
        digits = f"{key:0{bits * count}b}"
        assert [int(digits[axis::count], 2) for axis in range(count)] == list(cell)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 62])
def test_keys_fit_into_64_bits(count: int) -> None:
    bits = bits_for(count)
    top = pa.array([(1 << bits) - 1], pa.int64())
    for curve in ("zorder",) if count > 4 else ("zorder", "hilbert"):
        (key,) = curve_keys([top] * count, bits, curve).to_pylist()  # type: ignore[arg-type]
        assert key is not None
        assert 0 <= key < 1 << 62
