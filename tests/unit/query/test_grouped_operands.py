"""Grouping expressions as operands of other expressions, and spelled differently."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import deltalog

_ROWS = pa.table({"b": [3, 4, 6], "f": [True, False, True], "s": ["a", "b", "b"]})


@pytest.mark.parametrize(
    ("value", "group", "answer"),
    [
        ("b % 2 + count(*)", "b % 2", [2, 2]),
        ("b * 2 + 1", "b * 2", [7, 9, 13]),
        ("b DIV 2 + count(*)", "b DIV 2", [2, 3, 4]),
        ("b - 1 - 1", "b - 1", [1, 2, 4]),
        ("-b * 2", "-b", [-12, -8, -6]),
        ("-(b) + count(*)", "-(b)", [-5, -3, -2]),
        ("~b + count(*)", "~b", [-6, -4, -3]),
        ("b | 1 | count(*)", "b | 1", [3, 5, 7]),
        ("b % 2 * 3", "b % 2", [0, 3]),
        ("b % 2 + 1 + 1", "b % 2 + 1", [2, 3]),
        ("sum(b % 2) + b % 2", "b % 2", [0, 2]),
        ("b % 2 + sum(count(*)) OVER ()", "b % 2", [3, 4]),
        ("s || 'x' || max(b)", "s || 'x'", ["ax3", "bx6"]),
        ("CAST(b AS STRING) || 'x'", "CAST(b AS STRING)", ["3x", "4x", "6x"]),
        ("NOT f AND count(*) > 0", "NOT f", [False, True]),
        ("b IS NULL = true", "b IS NULL", [False]),
        ("s NOT LIKE 'a%' = true", "s NOT LIKE 'a%'", [False, True]),
        ("CASE WHEN f THEN 1 ELSE 2 END + 1", "CASE WHEN f THEN 1 ELSE 2 END", [2, 3]),
        ("b % 2 + 1", "ROLLUP(b % 2)", [None, 1, 2]),
        ("b % 2 + 1", "GROUPING SETS ((b % 2))", [1, 2]),
        ("B%2", "b % 2", [0, 1]),
        ("b /* c */ % 2 + 1", "b % 2", [1, 2]),
        ("UPPER(s) || 'x'", "upper(s)", ["Ax", "Bx"]),
        ("b > 3 = true", "b > 3", [False, True]),
        ("b % 2 + 1", "t.b % 2", [1, 2]),
        ("t.b % 2 + b % 2", "b % 2", [0, 2]),
    ],
)
def test_a_grouping_expression_may_be_an_operand(value: str, group: str, answer: Any) -> None:
    found = deltalog.sql(f"SELECT {value} AS v FROM t GROUP BY {group}", t=_ROWS).to_pylist()
    assert sorted((row["v"] for row in found), key=str) == sorted(answer, key=str)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b % 2 AS x, b % 2 + count(*) AS v FROM t GROUP BY x ORDER BY x",
        "SELECT b % 2 AS x, b % 2 + count(*) AS v FROM t GROUP BY 1 ORDER BY b % 2 + 1",
        "SELECT b%2 AS x, count(*)+b%2 AS v FROM t GROUP BY b % 2 HAVING b % 2 + 1 > 0 ORDER BY x",
    ],
)
def test_aliases_and_positions_mean_the_grouping_expression(query: str) -> None:
    rows = [{"x": 0, "v": 2}, {"x": 1, "v": 2}]
    assert deltalog.sql(query, t=_ROWS).to_pylist() == rows


def test_equal_expressions_keep_the_names_that_are_written() -> None:
    query = "SELECT struct(B) AS x, struct(b) AS y, b + 1, B+1 FROM t LIMIT 1"
    (row,) = deltalog.sql(query, t=_ROWS).to_pylist()
    assert row == {"x": {"B": 3}, "y": {"b": 3}, "(b + 1)": 4, "(B + 1)": 4}


def test_a_qualifier_may_be_a_struct() -> None:
    rows = pa.table({"s": [{"k": 1}, {"k": 2}]})
    query = "SELECT s.k + 1 + count(*) AS v FROM s GROUP BY s.k + 1 ORDER BY v"
    assert deltalog.sql(query, s=rows).to_pylist() == [{"v": 3}, {"v": 4}]
