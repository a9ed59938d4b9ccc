from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, col, evaluate, parse_sql, resolve_predicate, to_sql
from deltalog.expressions.comparing import like
from deltalog.expressions.sql_session import SqlSession
from deltalog.schema import Field, StructType
from tests.support.sql import values_of

INTERVAL: Any = pa.MonthDayNano  # the stubs know other arguments

NAN = math.nan


@pytest.mark.parametrize("text", ["a.b", "a+b", "[x]", "a\\b", "(a|b)", "^$", "{1}", "#-&~", "é"])
def test_like_takes_plain_text_as_it_is(text: str) -> None:
    values = pa.array([text, "y" + text, text + "z", "zzz", None])
    pattern = text.replace("\\", "\\\\")
    expected = {
        pattern: [True, False, False, False, None],
        f"%{pattern}": [True, True, False, False, None],
        f"{pattern}%": [True, False, True, False, None],
        f"%{pattern}%": [True, True, True, False, None],
        f"_{pattern}": [False, True, False, False, None],
        f"{pattern}_%": [False, False, True, False, None],
    }
    for shape, rows in expected.items():
        assert like(values, shape, "\\", ignore_case=False).to_pylist() == rows


@pytest.mark.parametrize(
    ("pattern", "escape"), [("a\\", "\\"), ("\\a", "\\"), ("#x", "#"), ("a", "##")]
)
def test_an_escape_stands_before_what_needs_one(pattern: str, escape: str) -> None:
    with pytest.raises(InvalidInputError, match=r"escape character|ESCAPE"):
        like(pa.array(["a"]), pattern, escape, ignore_case=False)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x = y", [True, False, False, None, None, True]),
        ("x <> y", [False, True, True, None, None, False]),
        ("x < y", [False, False, True, None, None, False]),
        ("x <= y", [True, False, True, None, None, True]),
        ("x > y", [False, True, False, None, None, False]),
        ("x >= y", [True, True, False, None, None, True]),
        ("x <=> y", [True, False, False, False, False, True]),
        ("x IN (y)", [True, False, False, None, None, True]),
        ("isnan(x)", [True, True, False, True, False, False]),
        ("nanvl(x, 7)", [7, 7, 1, 7, None, 0]),
    ],
)
def test_nan_is_equal_to_itself_and_above_all(
    kind: pa.DataType, sql: str, expected: list[bool | None]
) -> None:
    x = pa.array([NAN, NAN, 1.0, NAN, None, 0.0], kind)
    y = pa.array([NAN, math.inf, NAN, None, NAN, -0.0], kind)
    assert values_of(sql, x=x, y=y) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x = double('NaN')", [True, False, None]),
        ("x IN (double('NaN'), 5)", [True, False, None]),
        ("x > 5", [True, False, None]),
        ("x > double('Infinity')", [True, False, None]),
        ("x NOT IN (0.0, NULL)", [None, False, None]),
    ],
)
def test_nan_beside_constants(sql: str, expected: list[bool | None]) -> None:
    assert values_of(sql, x=pa.array([NAN, -0.0, None])) == expected


NANOS = 1_700_000_000_123_456_789
MOMENTS = StructType(
    [
        Field("at", "timestamp_nanos"),
        Field("clock", "timestamp_nanos_ntz"),
        Field("ts", "timestamp"),
        Field("wall", "timestamp_ntz"),
        Field("d", "date"),
        Field("months", "interval year to month"),
        Field("span", "interval day to second"),
        Field("n", "long"),
        Field("s", StructType([Field("at", "timestamp_nanos")])),
    ]
)
COLUMNS: dict[str, Any] = {
    "at": pa.array([NANOS, None, -1], pa.timestamp("ns", "UTC")),
    "clock": pa.array([NANOS, -1, None], pa.timestamp("ns")),
    "ts": pa.array([NANOS // 1000, 0, -1], pa.timestamp("us", "UTC")),
    "wall": pa.array([NANOS // 1000, 0, 0], pa.timestamp("us")),
    "d": pa.array([19_675, 0, 0], pa.date32()),
    "months": pa.array([18, -7, None], pa.int32()),
    "span": pa.array([86_400_000_000, -1, None], pa.duration("us")),
    "n": pa.array([1, 2, 3], pa.int64()),
    "s": pa.array(
        [{"at": NANOS}, None, {"at": None}], pa.struct([("at", pa.timestamp("ns", "UTC"))])
    ),
}
ROWS = pa.record_batch(COLUMNS)


def found(condition: str | Expression, zone: str = "UTC") -> list[Any]:
    session = SqlSession(now=None, time_zone=zone)
    parsed = parse_sql(condition) if isinstance(condition, str) else condition
    resolved = resolve_predicate(parsed, MOMENTS, session)
    assert resolve_predicate(resolved, MOMENTS, session).same_as(resolved)
    again = resolve_predicate(parse_sql(to_sql(resolved)), MOMENTS, session)
    values = evaluate(resolved, ROWS).to_pylist()
    assert evaluate(again, ROWS).to_pylist() == values
    return values


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("at = TIMESTAMP'2023-11-14 22:13:20.123456789Z'", [True, None, False]),
        ("at = TIMESTAMP'2023-11-15 07:13:20.123456789+09:00'", [True, None, False]),
        ("at > TIMESTAMP'2023-11-14 22:13:20.123456788Z'", [True, None, False]),
        ("at > TIMESTAMP'2023-11-14 22:13:20.123456789Z'", [False, None, False]),
        ("at = TIMESTAMP'2023-11-14 22:13:20.123456Z'", [False, None, False]),
        ("at <> TIMESTAMP'2023-11-14 22:13:20.12345678Z'", [True, None, True]),
        ("at <=> NULL", [False, True, False]),
        ("at <= TIMESTAMP'1969-12-31 23:59:59.999999999Z'", [False, None, True]),
        ("at < TIMESTAMP'1969-12-31 23:59:59.999999999Z'", [False, None, False]),
        ("at BETWEEN DATE'2023-11-14' AND DATE'2023-11-15'", [True, None, False]),
        ("at IS NULL", [False, True, False]),
        ("clock = '2023-11-14T22:13:20.123456789'", [True, False, None]),
        ("clock > '2023-11-14'", [True, False, None]),
        ("at IN (TIMESTAMP'1969-12-31 23:59:59.999999999Z', NULL)", [None, None, True]),
        ("clock IN (TIMESTAMP_NTZ'3000-01-01', TIMESTAMP_NTZ'1969-12-31 23:59:59.999999999')",
         [False, True, None]),
        ("clock IN (TIMESTAMP_NTZ'3000-01-01')", [False, False, None]),
        ("at < TIMESTAMP'3000-01-01'", [True, None, True]),
        ("at > TIMESTAMP'0001-01-01'", [True, None, True]),
        ("s.at = at", [True, None, None]),
        ("at = CAST(clock AS TIMESTAMP_NTZ)", None),
    ],
)  # fmt: skip
def test_nanoseconds_are_compared_with_moments(sql: str, expected: list[Any] | None) -> None:
    if expected is None:
        with pytest.raises(InvalidInputError, match="parts of a microsecond"):
            found(sql)
    else:
        assert found(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ts = at", [False, None, False]),
        ("ts <> at", [True, None, True]),
        ("ts < at", [True, None, True]),
        ("ts <= at", [True, None, True]),
        ("ts > at", [False, None, False]),
        ("at >= ts", [True, None, True]),
        ("at <=> ts", [False, False, False]),
        ("at > d", [True, None, False]),
        ("wall < clock", [True, False, None]),
        ("at IN (ts, s.at)", [True, None, None]),
        ("ts = TIMESTAMP'2023-11-14 22:13:20.123456789Z'", [True, False, False]),
        ("n = 1 AND ts < TIMESTAMP'2023-11-14 22:13:20.123456789Z'", [False, False, False]),
    ],
)
def test_microseconds_are_compared_with_nanoseconds_unrounded(
    sql: str, expected: list[Any]
) -> None:
    assert found(sql) == expected


def test_values_with_nanoseconds_are_not_rounded_beside_microseconds() -> None:
    value = pd.Timestamp(NANOS, tz="UTC")
    assert found(col("ts") == value) == [False, False, False]
    assert found(col("ts") < value) == [True, True, True]
    assert found(col("ts").is_in([value, pd.Timestamp(0, tz="UTC")])) == [False, True, False]
    assert found(col("at") == value) == [True, None, False]
    assert found(col("d") < pd.Timestamp(NANOS)) == [True, True, True]


def test_a_zone_is_applied_to_constants_without_one() -> None:
    tokyo = col("at") == np.datetime64(NANOS + 9 * 3600 * 10**9, "ns")
    assert found(tokyo, "Asia/Tokyo") == [True, None, False]
    assert found(tokyo) == [False, None, False]
    with pytest.raises(InvalidInputError, match="cannot compare timestamp_nanos_ntz"):
        found(col("clock") == pd.Timestamp(NANOS, tz="UTC"), "Asia/Tokyo")
    assert found(col("clock") == pd.Timestamp(NANOS, tz="UTC")) == [True, False, None]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("months = INTERVAL '1-6' YEAR TO MONTH", [True, False, None]),
        ("months > INTERVAL -7 MONTHS", [True, False, None]),
        ("months < INTERVAL '2' YEAR", [True, True, None]),
        ("months IN (INTERVAL 1 YEAR 6 MONTHS)", [True, False, None]),
        ("months BETWEEN INTERVAL 0 MONTH AND INTERVAL 6 MONTHS", [False, False, None]),
        ("months <=> INTERVAL '18' MONTH", [True, False, False]),
        ("span = INTERVAL 1 DAY", [True, False, None]),
        ("span = INTERVAL 24 HOURS", [True, False, None]),
        ("span > INTERVAL '0 23:59:59.999999' DAY TO SECOND", [True, False, None]),
        ("span < INTERVAL -'0.000001' SECOND", [False, False, None]),
        ("span IN (INTERVAL '1' DAY, INTERVAL '-0 00:00:00.000001' DAY TO SECOND)",
         [True, True, None]),
        ("INTERVAL 1 WEEK = INTERVAL 7 DAYS", [True, True, True]),
        ("CASE WHEN n = 1 THEN months ELSE INTERVAL 2 MONTHS END = INTERVAL 2 MONTHS",
         [False, True, True]),
        ("n = 9 AND coalesce(months, INTERVAL 2 MONTHS) > CASE WHEN n > 1 THEN months END",
         [False, False, False]),
        ("coalesce(span, INTERVAL 0 DAYS) >= INTERVAL 0 SECONDS", [True, False, True]),
    ],
)  # fmt: skip
def test_intervals_are_compared_with_their_kind(sql: str, expected: list[Any]) -> None:
    assert found(sql) == expected


def test_values_of_python_are_intervals() -> None:
    assert found(col("span") == dt.timedelta(days=1)) == [True, False, None]
    assert found(col("span") < pa.scalar(0, pa.duration("ms"))) == [False, True, None]
    assert found(col("months") == np.timedelta64(18, "M")) == [True, False, None]
    assert found(col("months").is_in([INTERVAL([-7, 0, 0]), None])) == [None, True, None]


@pytest.mark.parametrize(
    "sql",
    [
        "months = 18", "months = '1-6'", "months = span", "span = INTERVAL 1 MONTH", "span = 5",
        "months = INTERVAL 1 QUARTER",
        "at = clock", "at = n", "array(at) = array(at)", "s = s", "months + months = months",
        "span + INTERVAL 1 DAY = span", "at + INTERVAL 1 DAY > at", "length(at) > 1",
        "CAST(at AS STRING) = ''", "CAST(months AS STRING) = ''",
        "CAST(n AS INTERVAL YEAR) = months",
        "CAST(5 AS INTERVAL YEAR TO MONTH) = months", "TRY_CAST(at AS TIMESTAMP) = ts",
        "CAST(at AS DATE) = d", "CAST(wall AS TIMESTAMP_NANOS) = at", "year(at) = 2023",
        "abs(span) = span", "greatest(at, at) = at", "hash(months) = 1", "-span = span",
    ],
)  # fmt: skip
def test_whatever_else_looks_into_them_is_refused(sql: str) -> None:
    with pytest.raises(InvalidInputError):
        found(sql)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CAST(ts AS TIMESTAMP_NANOS) < at", [True, None, True]),
        ("CAST(wall AS TIMESTAMP_NANOS_NTZ) <= clock", [True, False, None]),
        ("CAST(d AS TIMESTAMP_NANOS_NTZ) < clock", [True, False, None]),
        ("CAST('2023-11-14 22:13:20.123456789' AS TIMESTAMP_NANOS_NTZ) = clock",
         [True, False, None]),
        ("CAST(substr('x2023-11-14 22:13:20.123456789', 2) AS TIMESTAMP_NANOS_NTZ) = clock",
         [True, False, None]),
        ("TRY_CAST('no' AS TIMESTAMP_NANOS) IS NULL", [True, True, True]),
        ("TRY_CAST('3000-01-01' AS TIMESTAMP_NANOS) IS NULL", [True, True, True]),
        ("CAST(CAST(ts AS TIMESTAMP_NANOS) AS TIMESTAMP) = ts", [True, True, True]),
    ],
)  # fmt: skip
def test_exact_casts_of_moments(sql: str, expected: list[Any]) -> None:
    assert found(sql) == expected


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("CAST(TIMESTAMP'3000-01-01' AS TIMESTAMP_NANOS) IS NULL", "to timestamp_nanos"),
        ("CAST('no' AS TIMESTAMP_NANOS) IS NULL", "to timestamp_nanos"),
        ("at = 'no'", "cannot cast 'no'"),
        ("CAST(at AS TIMESTAMP) = ts", "parts of a microsecond"),
    ],
)
def test_values_that_a_cast_would_change_are_errors(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        found(sql)
