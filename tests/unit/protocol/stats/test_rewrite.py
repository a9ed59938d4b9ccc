"""Conditions on rows, as claims about files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.protocol.stats.parse import parse_stats
from deltalog.protocol.stats.schema import leaves_of_schema
from tests.support.skipping import ONE_TO_FIVE, keep, plan, stats


def test_only_the_statistics_that_decide_are_asked_for() -> None:
    skipping = plan("x > 5 AND s IS NULL")
    assert skipping is not None
    assert [".".join(path) for path, _ in leaves_of_schema(skipping.stats_schema)] == [
        "numRecords",
        "maxValues.x",
        "nullCount.s",
        "nullCount.x",
    ]
    assert skipping.partition_columns == ()


@pytest.mark.parametrize(
    "predicate",
    ["b", "NOT b", "x % 2 = 0", "x + i > 5", "l IS NULL OR b", "s LIKE '%a' OR x % 2 = 0"],
)
def test_what_no_statistic_can_decide_needs_no_plan(predicate: str) -> None:
    assert plan(predicate) is None


def test_fields_of_structs() -> None:
    text = '{"minValues":{"st":{"a":1}},"maxValues":{"st":{"a":5}}}'
    assert keep("st.a > 5", text) == [False]
    assert keep("ST.A = 2", text) == [True]


PARTITIONS = pa.table({"p": pa.array([1, 2, None], pa.int32()), "q": ["a", None, "b"]})


THREE = (ONE_TO_FIVE, stats("x", "11", "15"), None)


def test_explanations_name_the_statistic() -> None:
    skipping = plan("x > 5 AND (p = 1 OR s LIKE 'a%') AND x % 2 = 0 AND x IS NOT NULL")
    assert skipping is not None
    assert skipping.explain() == (
        "max(x) > 5",
        "x is not NULL in some row",
        "any of",
        "  partition values: p = 1",
        "  a string between min(s) and max(s) starts with 'a'",
        "  s is not NULL in some row",
        "not decided by statistics: x % 2 = 0",
    )
    parsed = parse_stats(pa.array(list(THREE)), skipping.stats_schema)
    assert skipping.explain(parsed, PARTITIONS)[0] == "max(x) > 5: keeps 2 of 3 files"


@pytest.mark.parametrize(
    ("predicate", "line"),
    [
        ("x = 5", "min(x) <= 5"),
        ("x <> 5", "not (min(x) = max(x) = 5)"),
        ("x IN (5)", "the value is between min(x) and max(x)"),
        ("i > 3000000000", "CAST(max(i) AS long) > 3000000000"),
        ("x IS NULL", "x is NULL in some row"),
        ("s NOT LIKE 'a%'", "a string between min(s) and max(s) does not start with 'a'"),
        ("x = NULL", "never true: x = CAST(NULL AS BIGINT)"),
        ("1 = 2", "constant: 1 = 2"),
        ("p < x", "CAST(p AS BIGINT) < max(x)"),
    ],
)
def test_explanations_of_every_kind(predicate: str, line: str) -> None:
    skipping = plan(predicate)
    assert skipping is not None
    assert line in skipping.explain()
