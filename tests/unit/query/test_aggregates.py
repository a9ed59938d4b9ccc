"""Aggregate functions, `posexplode` and LIMIT, with the answers of a local PySpark 4."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog.errors import InvalidInputError

ONE = "VALUES (1.0D, 2.0D) t(a, b)"
NONE = "(SELECT * FROM VALUES (1.0D, 2.0D) t(a, b) WHERE a > 5)"
NAN = "VALUES (double('NaN'), 2.0D) t(a, b)"
TWO_NAN = "VALUES (double('NaN'), 2.0D), (1.0D, 3.0D) t(a, b)"
EQUAL = "VALUES (1.0D, 2.0D), (3.0D, 2.0D) t(a, b)"
THREE = "VALUES (1.0D, 2.0D), (3.0D, 7.0D), (4.0D, 1.0D) t(a, b)"


def value(query: str, **tables: Any) -> Any:
    (row,) = deltalog.sql(query, **tables).to_pylist()
    (found,) = row.values()
    return found


@pytest.mark.parametrize(
    ("call", "rows", "expected"),
    [
        ("corr(a, b)", ONE, None),
        ("corr(a, b)", NONE, None),
        ("corr(a, b)", NAN, None),
        ("corr(a, b)", TWO_NAN, math.nan),
        ("corr(a, b)", THREE, 0.033942211665106595),
        ("corr(a, b) FILTER (WHERE a = 1)", THREE, None),
        ("covar_samp(a, b)", ONE, None),
        ("covar_pop(a, b)", ONE, 0.0),
        ("stddev_samp(a)", ONE, None),
        ("var_samp(a)", NONE, None),
        ("stddev_pop(a)", ONE, 0.0),
        ("stddev_pop(a)", NONE, None),
        ("stddev_pop(a)", NAN, math.nan),
        ("var_pop(a)", NAN, math.nan),
        ("var_pop(a)", TWO_NAN, math.nan),
        ("var_pop(a)", THREE, 1.5555555555555556),
        ("median(a)", THREE, 3.0),
        ("percentile(DISTINCT a, 0.5)", THREE, 3.0),
        ("stddev(CAST(a AS STRING))", ONE, None),
    ],
)
def test_few_values_have_the_results_of_spark(call: str, rows: str, expected: float | None) -> None:
    found = value(f"SELECT {call} FROM {rows}")  # a list of the test
    assert (found is None) == (expected is None)
    assert found == pytest.approx(expected, nan_ok=True)


ROWS = [
    "(SELECT * FROM VALUES (1.0D, 2.0D) t(a, b) WHERE a > 5)",
    "VALUES (1.0D, 2.0D) t(a, b)",
    "VALUES (double('NaN'), 2.0D) t(a, b)",
    "VALUES (2.0D, double('NaN')) t(a, b)",
    "VALUES (2.0D, double('NaN')), (3.0D, 1.0D) t(a, b)",
    "VALUES (1D, NULL), (NULL, 2D), (3D, 7D), (4D, 1D), (5D, 8.5D) t(a, b)",
    "VALUES (1.0D, 2.0D), (3.0D, 2.0D), (4.0D, 2.0D) t(a, b)",
    "VALUES (2.0D, 1.0D), (2.0D, 3.0D), (2.0D, 4.0D) t(a, b)",
    "VALUES (0.1D, 0.1D), (0.1D, 0.1D), (0.1D, 0.1D) t(a, b)",
    "VALUES (1.25BD, 2.5BD), (3.75BD, 7.125BD), (4.1BD, 1BD) t(a, b)",
]
SPARK: dict[str, list[float | Decimal | None]] = {
    "skewness(a)": [
        None,
        None,
        math.nan,
        None,
        0.0,
        -0.4346507595746654,
        -0.3818017741606064,
        None,
        None,
        -0.6669831933853659,
    ],
    "kurtosis(a)": [
        None,
        None,
        math.nan,
        None,
        -2.0,
        -1.154285714285714,
        -1.4999999999999998,
        None,
        None,
        -1.5000000000000002,
    ],
    "regr_count(a, b)": [0, 1, 1, 1, 2, 3, 3, 3, 3, 3],
    "regr_avgx(a, b)": [
        None,
        2.0,
        2.0,
        math.nan,
        math.nan,
        5.5,
        2.0,
        2.6666666666666665,
        0.10000000000000002,
        Decimal("3.5416667"),
    ],
    "regr_avgy(a, b)": [
        None,
        1.0,
        math.nan,
        2.0,
        2.5,
        4.0,
        2.6666666666666665,
        2.0,
        0.10000000000000002,
        Decimal("3.033333"),
    ],
    "regr_sxx(a, b)": [
        None,
        0.0,
        0.0,
        math.nan,
        math.nan,
        31.5,
        0.0,
        4.666666666666667,
        0.0,
        20.385416666666668,
    ],
    "regr_sxy(a, b)": [
        None,
        0.0,
        math.nan,
        math.nan,
        math.nan,
        1.5,
        0.0,
        0.0,
        0.0,
        1.7145833333333336,
    ],
    "regr_syy(a, b)": [
        None,
        0.0,
        math.nan,
        0.0,
        0.5,
        2.0,
        4.666666666666667,
        0.0,
        0.0,
        4.831666666666666,
    ],
    "regr_slope(a, b)": [
        None,
        None,
        None,
        math.nan,
        math.nan,
        0.047619047619047616,
        None,
        0.0,
        None,
        0.08410832907511502,
    ],
    "regr_intercept(a, b)": [
        None,
        None,
        None,
        math.nan,
        math.nan,
        3.738095238095238,
        None,
        2.0,
        None,
        2.7354496678589673,
    ],
    "regr_r2(a, b)": [
        None,
        None,
        None,
        1.0,
        math.nan,
        0.035714285714285705,
        None,
        1.0,
        None,
        0.029846996735434485,
    ],
}


@pytest.mark.parametrize("call", SPARK)
def test_moments_and_regressions_have_the_results_of_spark(call: str) -> None:
    for rows, expected in zip(ROWS, SPARK[call], strict=True):
        found = value(f"SELECT {call} FROM {rows}")  # a list of the test
        assert type(found) is type(expected), rows
        if isinstance(expected, float):
            assert found == pytest.approx(expected, nan_ok=True, rel=1e-12), rows
        else:
            assert found == expected, rows


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("skewness(DISTINCT a)", 0.0),
        ("kurtosis(a) FILTER (WHERE a > 0)", -2.0),
        ("skewness(x) FILTER (WHERE a > 1)", None),
        ("regr_slope(a, x)", 0.4),
        ("regr_avgx(a, x) FILTER (WHERE a < 3)", 1.0),
        ("CAST(regr_count(a, s) AS STRING)", "2"),
        ("corr(a, s)", 1.0),
        ("covar_pop(s, a)", 0.5),
    ],
)
def test_other_forms_of_these_calls(call: str, expected: object) -> None:
    table = pa.table({"a": [1, 3, None], "x": [1, 6, None], "s": ["0", "1", None]})
    found: Any = value(f"SELECT {call} FROM t", t=table)
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_moments_of_groups_and_windows() -> None:
    table = pa.table({"g": [1, 2, 1, 2, 1, 3], "a": [1.0, 5.0, 3.0, 5.0, 4.0, None]})
    query = "SELECT g, skewness(a) AS s, kurtosis(a) + 1 AS k FROM t GROUP BY g ORDER BY g"
    found = [tuple(row.values()) for row in deltalog.sql(query, t=table).to_pylist()]
    skewness = pytest.approx(-0.3818017741606064)
    assert found == [(1, skewness, pytest.approx(-0.5)), (2, None, None), (3, None, None)]
    query = "SELECT g, skewness(a) OVER (PARTITION BY g) AS s FROM t ORDER BY g, a"
    found = [tuple(row.values()) for row in deltalog.sql(query, t=table).to_pylist()]
    assert found == [(1, skewness)] * 3 + [(2, None)] * 2 + [(3, None)]


def test_large_values_keep_their_digits() -> None:
    far = pa.table({"a": [1e9, 1e9 + 2, 1e9 + 5]})
    assert value("SELECT skewness(a) FROM t", t=far) == pytest.approx(0.23906314692954442)
    huge = pa.table({"a": [1e200, 2e200, 4e200]})
    assert math.isnan(value("SELECT kurtosis(a) FROM t", t=huge))
    tiny = pa.table({"a": [1e-120, 2e-120, 4e-120]})
    with pytest.raises(InvalidInputError, match="division by zero"):
        value("SELECT kurtosis(a) FROM t", t=tiny)


def test_windows_have_these_results_too() -> None:
    query = f"SELECT corr(a, b) OVER (PARTITION BY b) AS c, var_pop(a) OVER () AS v FROM {NAN}"
    ((correlation, variance),) = [row.values() for row in deltalog.sql(query).to_pylist()]
    assert correlation is None
    assert math.isnan(variance)


def test_equal_values_have_no_correlation() -> None:
    with pytest.raises(InvalidInputError, match=r"division by zero.*all values are equal$"):
        value(f"SELECT corr(a, b) FROM {EQUAL}")


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("sum(true)", "expects a number, found boolean; count_if"),
        ("sum(DISTINCT true)", "expects a number, found boolean"),
        ("sum(true) OVER ()", "expects a number, found boolean"),
        ("avg(true)", "expects a number, found boolean"),
        ("avg(DATE'2020-01-01')", "expects a number, found date"),
        ("sum(array(1))", "expects a number, found array<integer>"),
        ("stddev(true)", "expects a number, found boolean"),
        ("corr(true, 1)", "expects a number, found boolean"),
        ("corr(1, true)", "expects a number, found boolean"),
        ("covar_samp(1, DATE'2020-01-01')", "expects a number, found date"),
        ("skewness(true)", "expects a number, found boolean"),
        ("kurtosis(DATE'2020-01-01')", "expects a number, found date"),
        ("regr_count(1, true)", "expects a number, found boolean"),
        ("regr_avgx(true, 1)", "expects a number, found boolean"),
        ("median(true)", "expects a number, found boolean"),
        ("percentile(true, 0.5)", "expects a number, found boolean"),
        ("bool_and(1)", "expects a boolean, found integer"),
        ("bit_or(1.5)", "expects an integer, found decimal"),
        ("1 > any (SELECT 2)", "Spark has no ANY, SOME or ALL with a query"),
        ("1 = some (SELECT 2)", "Spark has no ANY, SOME or ALL with a query"),
        ("1 > all (SELECT 2)", "Spark has no ANY, SOME or ALL with a query"),
        ("explode_outer(array(1))", "LATERAL VIEW OUTER explode"),
        ("posexplode_outer(array(1))", "LATERAL VIEW OUTER posexplode"),
        ("1 LIMIT NULL", "LIMIT expects a number of rows, found NULL"),
        ("1 LIMIT CAST(NULL AS INT)", "LIMIT expects a number of rows"),
        ("1 LIMIT true", "LIMIT expects a number of rows, found TRUE"),
        ("1 LIMIT (SELECT 1)", "LIMIT expects a number of rows"),
        ("1 LIMIT :n", "LIMIT expects a number of rows, found NULL$"),
        ("1 OFFSET NULL", "OFFSET expects a number of rows, found NULL"),
    ],
)
def test_what_spark_refuses_is_refused(call: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        deltalog.sql(f"SELECT {call}", {"n": None} if ":n" in call else None).to_arrow()
    assert "Candidate" not in str(caught.value)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("SELECT posexplode(l) FROM t", [0, 1, 0]),
        ("SELECT posexplode(l) AS (pos, v) FROM t", [0, 1, 0]),
        ("SELECT pos FROM t LATERAL VIEW posexplode(l) x AS pos, c", [0, 1, 0]),
        ("SELECT pos, col FROM posexplode(array('a', 'b'))", [0, 1]),
        ("SELECT x.p AS pos FROM posexplode(array('a', 'b')) AS x(p, c)", [0, 1]),
        ("WITH q AS (SELECT posexplode(l) FROM t) SELECT pos FROM q", [0, 1, 0]),
    ],
)
def test_positions_are_integers(query: str, numbers: list[int]) -> None:
    found = deltalog.sql(query, t=pa.table({"l": [[5, 6], [7]]})).to_arrow()
    assert found["pos"].type == pa.int32()
    positions: list[Any] = found["pos"].to_pylist()
    assert sorted(positions) == sorted(numbers)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("CAST(max(s) AS INT)", r"in CAST\(max\(s\) AS INT\)"),
        ("max(a)[1]", r"cannot compute max\(a\)\[1\]"),
        ("if(max(a), 1, 2)", r"max\(a\) is of type long, but a condition"),
        ("to_date(max(a), max(s))", r"cannot compute to_date\(max\(a\), max\(s\)\)"),
        ("(SELECT a FROM t) + true", r"cannot compute \(SELECT a FROM t\) \+ TRUE"),
    ],
)
def test_errors_contain_the_users_text(call: str, shown: str) -> None:
    table = pa.table({"a": [1], "s": ["x"]})
    with pytest.raises(InvalidInputError, match=shown) as caught:
        deltalog.sql(f"SELECT {call} FROM t", t=table).to_arrow()
    assert "deltalog_" not in str(caught.value)


def test_fields_of_a_struct_have_sparks_names() -> None:
    found = value("SELECT struct(max(a), 2 AS b) FROM t", t=pa.table({"a": [1]}))
    assert found == {"col1": 1, "b": 2}
