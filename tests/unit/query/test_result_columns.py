"""Names of result columns without an alias, which Delta Spark 4.4 returned."""

from __future__ import annotations

from datetime import date

import pytest

import deltalog

ROW = {"n": 1, "x": 1.5, "name": "alice", "d": date(2024, 1, 31), "tags": ["b", "a"], "s": {"a": 1}}


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("CAST(n AS STRING)", "n"),
        ("CAST(t.n AS STRING)", "n"),
        ("n::string", "n"),
        ("(n)::string", "n"),
        ("(CAST(N AS INT))", "N"),
        ("TRY_CAST(n AS INT)", "n"),
        ("string(n)", "n"),
        ("date(d)", "d"),
        ("CAST(CAST(n AS STRING) AS INT)", "CAST(CAST(n AS STRING) AS INT)"),
        ("CAST(1 AS STRING)", "CAST(1 AS STRING)"),
        ("-CAST(n AS INT)", "(- CAST(n AS INT))"),
        ("to_timestamp(name, 'a')", "to_timestamp(name, a)"),
        ("isnull(n)", "(n IS NULL)"),
        ("isnotnull(n)", "(n IS NOT NULL)"),
        ("name ILIKE 'a%'", "ilike(name, a%)"),
        ("name LIKE 'a!_' ESCAPE '!'", "name LIKE a!_ ESCAPE '!'"),
        ("round(x)", "round(x, 0)"),
        ("round(x, 1)", "round(x, 1)"),
        ("ceil(x)", "CEIL(x)"),
        ("ceiling(x)", "ceiling(x)"),
        ("floor(x)", "FLOOR(x)"),
        ("sqrt(x)", "SQRT(x)"),
        ("power(x, 2)", "POWER(x, 2)"),
        ("pow(x, 2)", "pow(x, 2)"),
        ("substring(name, 2)", "substring(name, 2, 2147483647)"),
        ("split(name, 'l')", "split(name, l, -1)"),
        ("sort_array(tags)", "sort_array(tags, true)"),
        ("regexp_replace(name, 'a', 'b')", "regexp_replace(name, a, b, 1)"),
        ("lpad(name, 9)", "lpad(name, 9,  )"),
        ("months_between(d, d)", "months_between(d, d, true)"),
        ("dateadd(d, 1)", "date_add(d, 1)"),
        ("datediff(DAY, d, d)", "timestampdiff(DAY, d, d)"),
        ("datediff(d, d)", "datediff(d, d)"),
        ("~n", "~n"),
    ],
)
def test_a_result_column_has_the_name_of_spark(expression: str, name: str) -> None:
    query = f"SELECT {expression} FROM t WHERE n > 1"
    assert deltalog.sql(query, t=[ROW]).schema.names == [name]


def test_an_order_by_the_name_of_a_cast_column_sorts_the_cast_values() -> None:
    query = "SELECT CAST(n AS STRING) FROM t ORDER BY n"
    found = deltalog.sql(query, t=[{"n": 9}, {"n": 10}]).to_pylist()
    assert found == [{"n": "10"}, {"n": "9"}]


def test_an_extraction_of_a_missing_group_says_so() -> None:
    with pytest.raises(deltalog.errors.InvalidInputError, match="no group 1 in brackets; group 0"):
        deltalog.sql("SELECT regexp_extract(name, 'a') FROM t", t=[ROW]).to_pylist()
