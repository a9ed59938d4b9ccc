"""Ranks: numbers in the order of values, evenly spread."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from deltalog.operations.optimize.cluster import Ranges, ranks_by_sorting, sample_ranges


def batch(values: list[Any], kind: Any = None) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, kind or pa.int64())})


def test_skewed_values_spread_evenly() -> None:
    rows = batch([2 ** min(n // 50, 40) + n for n in range(4000)])
    (ranges,) = sample_ranges([rows], [("v",)], 4000, 18)
    counts = Counter(ranges.ranks(rows).to_pylist())
    assert set(counts) == set(range(1, 18))
    assert max(counts.values()) < 2 * min(counts.values())


@pytest.mark.parametrize("values", [[], [None], [7, 7, None], [3, 1, 2]])
def test_ranks_are_in_order_and_null_is_0(values: list[int | None]) -> None:
    ranges = Ranges.of_sample(("v",), batch(values).column(0), 4096)
    ranks = ranges.ranks(batch([None, 0, 1, 2, 3, 7, 8])).to_pylist()
    assert ranks[0] == 0
    assert ranks == sorted(ranks, key=lambda rank: rank or 0)
    assert all(rank is not None and 0 <= rank < 4096 for rank in ranks)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
def test_ranks_are_the_same_without_arrows_search(kind: Any) -> None:
    bounds = pa.array([2, 4, 4.0, 9]).cast(pa.int64()).cast(kind)
    values = pa.array([4, None, 1, 9, 3]).cast(kind)
    assert ranks_by_sorting(bounds, values).to_pylist() == [3, None, 0, 4, 1]


def test_a_sample_is_taken_over_all_batches() -> None:
    batches = [batch(list(range(start, start + 7))) for start in range(0, 700_000, 7)][:2000]
    (ranges,) = sample_ranges(batches, [("v",)], 14_000 * 256, 1 << 12)
    # Every 13th or so of 14,000 rows.
    assert 900 < len(ranges.bounds) < 1200
