from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.log.checksum import DELETED_COUNT_BOUNDARIES, FILE_SIZE_BOUNDARIES, histogram
from tests.support.examples import examples

SIZES = [0, 1, 8191, 8192, 2**20, 2**38, 2**41]


@pytest.mark.protocol("B-19")
def test_the_bins_are_the_references() -> None:
    assert len(FILE_SIZE_BOUNDARIES) == 95
    assert (FILE_SIZE_BOUNDARIES[1], FILE_SIZE_BOUNDARIES[-1]) == (8192, 2**38)
    assert len(DELETED_COUNT_BOUNDARIES) == 10
    assert DELETED_COUNT_BOUNDARIES[-2:] == (10**7, 2**31 - 1)


@given(st.lists(st.sampled_from([*SIZES, None]) | st.integers(0, 2**40)), st.integers(0, 1500))
@settings(max_examples=examples(30))
def test_bins_of_many_and_of_few_are_the_same(values: list[int | None], more: int) -> None:
    column = pa.chunked_array([pa.array(values, pa.int64()), pa.array([5] * more, pa.int64())])
    counts, sums = histogram(column, FILE_SIZE_BOUNDARIES)
    known = [value for value in column.to_pylist() if value is not None]
    assert (sum(counts), sum(sums)) == (len(known), sum(known))
    few = histogram(pa.chunked_array([pa.array(values, pa.int64())]), FILE_SIZE_BOUNDARIES)
    assert counts[1:] == few[0][1:]
    assert sums[1:] == few[1][1:]
    assert counts[0] == few[0][0] + more
