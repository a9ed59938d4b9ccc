"""Which deletes have certain values: the newest of each combination, NULL being one."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog.iceberg.deleted_rows import Keys

PAIRS = st.tuples(st.integers(0, 3) | st.none(), st.sampled_from(["a", "b", "", "é"]) | st.none())


def columns(rows: list[tuple[Any, ...]], kinds: list[pa.DataType]) -> list[Any]:
    return [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]


@given(st.lists(st.tuples(PAIRS, st.integers(1, 9))), st.lists(PAIRS))
def test_the_newest_delete_is_that_of_a_dictionary(
    deletes: list[tuple[tuple[Any, ...], int]], rows: list[tuple[Any, ...]]
) -> None:
    kinds: list[pa.DataType] = [pa.int64(), pa.string()]
    newest: dict[tuple[Any, ...], int] = {}
    for values, number in deletes:
        newest[values] = max(number, newest.get(values, 0))
    keys = Keys(
        columns([values for values, _ in deletes], kinds),
        pa.array([number for _, number in deletes], pa.int64()),
    )
    assert keys.newest(columns(rows, kinds)).to_pylist() == [newest.get(row) for row in rows]
    assert keys.last_number == max(newest.values(), default=0)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False]),
        (pa.int32(), [1, 2]),
        (pa.int64(), [1, 1 << 60]),
        (pa.decimal128(20, 2), [Decimal("1.25"), Decimal("-1.25")]),
        (pa.date32(), [date(1, 1, 1), date(2024, 1, 1)]),
        (pa.timestamp("us"), [0, 1 << 50]),
        (pa.timestamp("us", "UTC"), [0, 1 << 50]),
        (pa.string(), ["", "a"]),
        (pa.binary(), [b"", b"\x00"]),
    ],
    ids=str,
)
def test_every_type_that_can_be_compared_is(kind: Any, values: list[Any]) -> None:
    given_values = pa.array([*values, None], kind)
    keys = Keys([given_values.slice(0, 1)], pa.array([5], pa.int64()))
    assert keys.newest([given_values]).to_pylist() == [5, None, None]
    keys = Keys([given_values.slice(2, 1)], pa.array([5], pa.int64()))
    assert keys.newest([given_values]).to_pylist() == [None, None, 5]
