"""Ranges of the source that values of the table lie in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog import DeltaTable, write_deltalake
from deltalog._util.kernels import Array
from deltalog.expressions import columns
from deltalog.expressions.sql_session import RULES_OF_TABLES
from deltalog.operations.changes.merge.pairs import RangeIndex
from deltalog.operations.changes.merge.plan import plan_condition
from deltalog.operations.changes.request import ChangeRequest
from deltalog.schema import Field, StructType
from deltalog.schema.types import DOUBLE, INTEGER, LONG, STRING, TIMESTAMP
from tests.support.logs import DictStore
from tests.support.statements import matched_delete

NUMBER = st.none() | st.integers(-5, 25)
FAR = st.sampled_from([-(2**63), 2**63 - 1])
MANY = 60  # more than are compared one by one


def _inside(value: int | None, low: int | None, high: int | None, ends: str) -> bool:
    least = low if "low" in ends else -(2**63)
    greatest = high if "high" in ends else 2**63 - 1
    if value is None or least is None or greatest is None:
        return False
    return least <= value <= greatest


def _index(ranges: list[tuple[Any, Any]], ends: str, kind: Any) -> RangeIndex:
    lows: Array = pa.array([low for low, _ in ranges], kind) if "low" in ends else None
    highs: Array = pa.array([high for _, high in ranges], kind) if "high" in ends else None
    return RangeIndex(lows, highs)


@pytest.mark.parametrize("ends", ["low", "high", "low and high"])
@given(
    values=st.lists(NUMBER | FAR, max_size=30),
    ranges=st.lists(st.tuples(NUMBER | FAR, NUMBER | FAR), max_size=MANY),
    most=st.integers(1, 50),
)
def test_exactly_the_values_in_a_range_are_found(
    ends: str, values: list[int | None], ranges: list[tuple[int | None, int | None]], most: int
) -> None:
    expected = [
        (row, number)
        for row, value in enumerate(values)
        for number, (low, high) in enumerate(ranges)
        if _inside(value, low, high, ends)
    ]
    index, given_values = _index(ranges, ends, pa.int64()), pa.array(values, pa.int64())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deltalog.operations.changes.merge.pairs._DENSE", 0)  # never
        patch.setattr("deltalog.operations.changes.merge.pairs._LEAST", 0)
        found, edges = index.match(given_values), index.edges(given_values, most)
    assert found is not None
    assert edges is not None
    assert list(zip(*(rows.to_pylist() for rows in found), strict=True)) == expected
    bounds = [0, *edges, len(values)]
    assert bounds == sorted(set(bounds)) or not values
    for start, stop in pairwise(bounds):
        count = sum(start <= row < stop for row, _ in expected)
        assert count <= most or stop - start == 1


def test_where_most_pairs_are_in_ranges_every_pair_is_looked_at() -> None:
    values: Array = pa.array(range(40), pa.int64())
    narrow = _index([(number, number + 1) for number in range(20)], "low and high", pa.int64())
    assert narrow.edges(values, 7) is not None
    assert narrow.match(values) is not None
    # A few values are compared with all ranges; parts are cut as for every pair.
    assert narrow.match(values.slice(0, 9)) is None
    assert narrow.edges(values.slice(0, 9), 60) == [3, 6]
    wide = _index([(-1, number + 20) for number in range(20)], "low and high", pa.int64())
    assert wide.edges(values, 7) is None
    assert wide.match(values) is None
    # Ranges that hold nothing are no reason to look at every pair: all of them would be.
    some = _index([(-1, 50), *[(None, 50)] * 50], "low and high", pa.int64())
    assert some.match(values) is not None


DAY = dt.date(2026, 1, 1)
MOMENT = dt.datetime(2026, 1, 1)  # noqa: DTZ001  # of a column without a zone


@pytest.mark.parametrize("count", [9, MANY])
@pytest.mark.parametrize(
    ("kind", "first", "step"),
    [
        (pa.int8(), -20, 1),
        (pa.date32(), DAY, dt.timedelta(1)),
        (pa.timestamp("us"), MOMENT, dt.timedelta(microseconds=1)),
        (pa.decimal128(10, 2), Decimal("-0.10"), Decimal("0.01")),
    ],
)
def test_every_type_that_has_an_order_is_searched(
    count: int, kind: Any, first: Any, step: Any
) -> None:
    values = [first + step * number for number in range(count)]
    index = _index([(value, value + step) for value in values], "low and high", kind)
    found = index.match(pa.array(values[::-1], kind))
    assert found is not None
    last = count - 1
    expected = [
        (row, number)
        for row in range(count)
        for number in (last - row - 1, last - row)
        if number >= 0
    ]
    assert list(zip(*(rows.to_pylist() for rows in found), strict=True)) == expected


COLUMNS = StructType(
    [
        Field("id", LONG),
        Field("n", INTEGER),
        Field("at", TIMESTAMP),
        Field("d", DOUBLE),
        Field("name", STRING),
    ]
)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("t.id >= s.id AND t.id < s.n", ("id", "id", "n")),  # an integer is cast to a long
        ("s.at < t.at", ("at", "at", None)),
        ("t.at BETWEEN s.at AND s.at", ("at", "at", "at")),
        ("t.n > s.n AND t.id <= s.id AND t.id > s.id", ("id", "id", "id")),
        ("t.id > s.id AND t.id > s.n", ("id", "id", None)),
        ("t.id = s.id AND t.at > s.at", None),  # equal keys are fewer pairs
        ("t.id > s.id OR t.at > s.at", None),
        ("t.id > 5 AND s.id < 7", None),
        ("t.id <> s.id", None),
        ("t.id + 1 > s.id", None),  # may fail for a row of which no pair matches
        ("t.id > cast(s.name AS BIGINT)", None),
        ("t.n > cast(s.id AS INT)", None),
        ("t.d > s.d", None),  # Arrow has no place for NaN
        ("t.name > s.name", None),
    ],
)
def test_inequalities_of_two_columns_are_ranges(
    condition: str, found: tuple[str, str | None, str | None] | None
) -> None:
    request = ChangeRequest(
        condition=condition,
        clauses=(matched_delete(),),
        source=None,
        source_alias="s",
        target_alias="t",
    )
    planned = plan_condition(request, COLUMNS, COLUMNS, RULES_OF_TABLES)
    within = planned.within
    if found is None:
        assert within is None
        return
    assert within is not None
    sides = (within.target, within.low, within.high)
    names = [None if one is None else {path[0] for path in columns(one)} for one in sides]
    assert names == [None if name is None else {name} for name in found]
    assert len(planned.residual) == condition.count("s.")


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("t.id > s.n AND t.id <= s.id", "none; rows are looked up by n <= id <= id"),
        ("t.at > s.at", "none; rows are looked up by at <= at"),
        ("t.name > s.name", "none, so every pair is compared"),
    ],
)
def test_an_explanation_says_how_pairs_are_found(condition: str, shown: str) -> None:
    store = DictStore()
    moment: pa.DataType = pa.timestamp("us", "UTC")
    columns_of = [("id", pa.int64()), ("n", pa.int64()), ("at", moment), ("name", pa.string())]
    schema = pa.schema(pa.field(name, kind) for name, kind in columns_of)
    write_deltalake(store, schema.empty_table())
    merge = DeltaTable(store).merge(
        schema.empty_table(), condition, source_alias="s", target_alias="t"
    )
    assert f"equal keys: {shown}\n" in merge.when_matched_delete().explain()
