"""Constant parts that have a value let conditions be asked below joins."""

from __future__ import annotations

import pyarrow as pa
import pytest

import deltalog
from deltalog.query.computed import Computed
from deltalog.query.translate import translated

JOIN = "SELECT count(*) AS n FROM a JOIN b ON a.k = b.k WHERE a.v < 7 AND b.k >= 0 AND "
A = pa.table({"k": [1, 2, 3], "v": [1, 5, 9], "d": ["x", "y", "z"]})
B = pa.table({"k": [1, 2, 3], "p": [68, 99, 70]})


def conditions_of_both(query: str) -> int:
    """How many parts of a query need columns of both tables: one joins them."""
    parts = [part for part in translated(query).parts if isinstance(part, Computed)]
    return sum(len({name.split(".")[0] for _, name in part.inputs}) > 1 for part in parts)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("b.p BETWEEN 68 AND 68 + 30", 1),
        ("b.p < 2 * (10 + 30)", 1),
        ("b.p > -(-98)", 1),
        ("a.v < CAST('6' AS INT)", 2),
        ("b.p IN (68, 60 + 39)", 2),
        ("(b.p = 60 + 8 OR b.p = 99)", 2),
        ("CAST('2000-02-01' AS DATE) + INTERVAL '30' DAY > CAST('2000-02-02' AS DATE)", 2),
    ],
)
def test_conditions_with_safe_constants_stay_apart(condition: str, rows: int) -> None:
    assert conditions_of_both(JOIN + condition) == 1
    assert deltalog.sql(JOIN + condition, a=A, b=B).to_pylist() == [{"n": rows}]


@pytest.mark.parametrize(
    "condition",
    ["b.p / b.k > 1", "CAST(a.d AS INT) = 1", "b.p < 1 / 0", "b.p < CAST('x' AS INT)"],
)
def test_what_may_fail_keeps_its_order(condition: str) -> None:
    assert conditions_of_both(JOIN + condition) == 2


def test_a_constant_that_fails_is_not_asked_behind_what_is_false() -> None:
    query = "SELECT count(*) AS n FROM a WHERE v < 0 AND v < CAST('x' AS INT)"
    assert deltalog.sql(query, a=A).to_pylist() == [{"n": 0}]


def test_a_thousand_alternatives_are_one_condition() -> None:
    ranges = " OR ".join(f"b.p = {number} + 1" for number in range(1000))
    found = deltalog.sql(f"SELECT count(*) AS n FROM b WHERE {ranges}", b=B)
    assert found.to_pylist() == [{"n": 3}]
