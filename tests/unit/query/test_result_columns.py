"""Names of result columns without an alias, which Delta Spark 4.4 returned."""

from __future__ import annotations

from datetime import date

import pytest

import deltalog

ROW = {"n": 1, "x": 1.5, "name": "alice", "d": date(2024, 1, 31), "tags": ["b", "a"], "s": {"a": 1}}


LAMBDA = ", ".join(["namedlambdavariable()"] * 3)
RUNNING = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
BY_N = "ORDER BY n ASC NULLS FIRST"
BY_X = "ORDER BY x DESC NULLS LAST"
TWO = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"


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
        ("n BETWEEN 1 AND 2", "between(n, 1, 2)"),
        ("n >= 1 AND n <= 2", "((n >= 1) AND (n <= 2))"),
        ("INTERVAL 2 DAYS", "INTERVAL '2' DAY"),
        ("log(x)", "LOG(E(), x)"),
        ("replace(name, 'a')", "replace(name, a, )"),
        ("regexp_like(name, 'a')", "REGEXP_LIKE(name, a)"),
        ("timestamp_ntz'2024-01-01'", "TIMESTAMP_NTZ '2024-01-01 00:00:00'"),
        ("array_agg(n)", "collect_list(n)"),
        ("string_agg(name, ',')", "string_agg(name, ,)"),
        ("max(n) + 1", "(max(n) + 1)"),
        ("count(DISTINCT n) FILTER (WHERE x > 1)", "count(DISTINCT n) FILTER (WHERE (x > 1))"),
        ("zip_with(tags, tags, (a, b) -> a)", f"zip_with(tags, tags, lambdafunction({LAMBDA}))"),
    ],
)
def test_a_result_column_has_the_name_of_spark(expression: str, name: str) -> None:
    query = f"SELECT {expression} FROM t WHERE n > 1"
    assert deltalog.sql(query, t=[ROW]).schema.names == [name]


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("row_number() OVER (ORDER BY n)", f"row_number() OVER ({BY_N} ROWS {RUNNING})"),
        ("Rank() over (order by n)", f"RANK() OVER ({BY_N} ROWS {RUNNING})"),
        ("cume_dist() over (order by n)", f"cume_dist() OVER ({BY_N} RANGE {RUNNING})"),
        ("ntile(2) over (order by n)", f"ntile(2) OVER ({BY_N} ROWS {RUNNING})"),
        (
            "lag(n, 2, n + 1) OVER (ORDER BY n)",
            f"lag(n, 2, (n + 1)) OVER ({BY_N} ROWS BETWEEN -2 FOLLOWING AND -2 FOLLOWING)",
        ),
        (
            "lead(n) OVER (ORDER BY n)",
            f"lead(n, 1, NULL) OVER ({BY_N} ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING)",
        ),
        (
            "count(*) OVER ()",
            "count(1) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        ),
        (
            "sum(n + 1) OVER (PARTITION BY name, d ORDER BY x DESC, n ROWS 2 PRECEDING) / 2",
            f"(sum((n + 1)) OVER (PARTITION BY name, d {BY_X}, n ASC NULLS FIRST {TWO}) / 2)",
        ),
    ],
)
def test_a_window_function_has_the_name_of_spark(expression: str, name: str) -> None:
    assert deltalog.sql(f"SELECT {expression} FROM t", t=[ROW]).schema.names == [name]


def test_an_order_by_the_name_of_a_cast_column_sorts_the_cast_values() -> None:
    query = "SELECT CAST(n AS STRING) FROM t ORDER BY n"
    found = deltalog.sql(query, t=[{"n": 9}, {"n": 10}]).to_pylist()
    assert found == [{"n": "10"}, {"n": "9"}]


def test_an_extraction_of_a_missing_group_says_so() -> None:
    with pytest.raises(deltalog.errors.InvalidInputError, match="no group 1 in brackets; group 0"):
        deltalog.sql("SELECT regexp_extract(name, 'a') FROM t", t=[ROW]).to_pylist()
