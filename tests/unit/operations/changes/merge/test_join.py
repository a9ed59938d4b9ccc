"""Rows of two sides that have equal keys."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.operations.changes.merge import pairs as joining
from deltalog.operations.changes.merge.pairs import KeyIndex, cross
from tests.support.examples import examples

NAN = math.nan


def pairs_of(index: KeyIndex, *columns: pa.Array[Any]) -> Counter[tuple[int, int]]:
    found, others = index.match(columns)
    return Counter(zip(found.to_pylist(), others.to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [1, 2, 2, None, 5, -(1 << 63), (1 << 63) - 1]),
        (pa.int32(), [7, 9, 9, None, 12]),
        (pa.int8(), [-128, 127, 0, None]),
        (pa.string(), ["a", "", "a", None, "ä"]),
        (pa.binary(), [b"", b"\0", None]),
        (pa.bool_(), [True, False, None, True]),
        (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None]),
        (pa.decimal128(10, 2), [Decimal("1.00"), Decimal("1.01"), None]),
    ],
    ids=str,
)
@pytest.mark.parametrize("null_safe", [False, True])
def test_keys_of_every_type_find_their_rows(
    kind: pa.DataType, values: list[Any], null_safe: bool
) -> None:
    mine: pa.Array[Any] = pa.array(values, kind)
    index = KeyIndex([mine], [null_safe])
    expected = Counter(
        (left, right)
        for left, one in enumerate(values)
        for right, other in enumerate(values)
        if one == other and (one is not None or null_safe)
    )
    assert pairs_of(index, mine) == expected


def test_zeros_are_equal_and_so_are_nans() -> None:
    index = KeyIndex([pa.array([0.0, NAN])], [False])
    assert pairs_of(index, pa.array([-0.0, NAN, 1.0])) == Counter([(0, 0), (1, 1)])


KEYS = st.none() | st.integers(-3, 3) | st.sampled_from([1 << 40, -(1 << 40)])


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(KEYS, KEYS), max_size=8),
    st.lists(st.tuples(KEYS, KEYS), max_size=8),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([2, 1 << 10, 1 << 25]),
)
def test_keys_of_several_parts_are_equal_part_by_part(
    mine: list[tuple[Any, Any]],
    theirs: list[tuple[Any, Any]],
    safe: tuple[bool, bool],
    window: int,
) -> None:
    columns, others = (
        [pa.array([row[part] for row in side], pa.int64()) for part in range(2)]
        for side in (mine, theirs)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "_WINDOW_PLACES", window)
        found = pairs_of(KeyIndex(columns, list(safe)), *others)
        single = pairs_of(KeyIndex(columns[:1], list(safe[:1])), others[0])

    def same(one: Any, other: Any, *, null_safe: bool) -> bool:
        return one == other and (one is not None or null_safe)

    def expected(parts: int) -> Counter[tuple[int, int]]:
        return Counter(
            (left, right)
            for left, one in enumerate(theirs)
            for right, other in enumerate(mine)
            if all(same(one[n], other[n], null_safe=safe[n]) for n in range(parts))
        )

    assert found == expected(2)
    assert single == expected(1)


@pytest.mark.parametrize("most", [1, 3, 100])
def test_without_keys_every_pair_is_looked_at(most: int) -> None:
    batches = list(cross(3, 4, most=most))
    assert all(len(left) <= max(most, 3) for left, _ in batches)
    found = [
        pair
        for left, right in batches
        for pair in zip(left.to_pylist(), right.to_pylist(), strict=True)
    ]
    assert sorted(found) == [(left, right) for left in range(3) for right in range(4)]
    assert list(cross(0, 4, most=most)) == list(cross(4, 0, most=most)) == []
