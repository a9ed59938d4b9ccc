"""Which rules of a table have another value in another time zone."""

from __future__ import annotations

import datetime as dt

import pytest

from deltalog.expressions import depends_on_zone, parse_sql, parse_type, resolve
from deltalog.expressions.sql_session import SqlSession
from deltalog.schema import Field, StructType

SCHEMA = StructType(
    [
        Field("ts", parse_type("timestamp")),
        Field("n", parse_type("timestamp_ntz")),
        Field("d", parse_type("date")),
        Field("x", parse_type("string")),
        Field("i", parse_type("bigint")),
        Field("l", parse_type("array<timestamp>")),
    ]
)


def depends(text: str) -> bool:
    return depends_on_zone(text, resolve(parse_sql(text), SCHEMA), SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "CAST(ts AS DATE) = d",
        "year(ts) > 2000",
        "ts > '2024-01-01'",
        "ts > '2024-01-01 10:00:00'",
        "ts IN (TIMESTAMP'2024-01-01 00:00:00')",
        "ts > d",
        "ts = n",
        "CAST(n AS TIMESTAMP) = ts",
        "CAST(ts AS STRING) = x",
        "CAST(x AS TIMESTAMP) = ts",
        "date_format(ts, 'yyyy') = x",
        "date_trunc('DAY', ts) = ts",
        "ts + INTERVAL 1 DAY > ts",
        "from_unixtime(i) = x",
        "hour(ts) BETWEEN 8 AND 18",
        "exists(l, t -> CAST(t AS DATE) = d)",
        "coalesce(ts, CAST(d AS TIMESTAMP)) = ts",
    ],
)
def test_wall_times_depend_on_the_zone(text: str) -> None:
    assert depends(text)


@pytest.mark.parametrize(
    "text",
    [
        "i > 0 AND x LIKE 'a%'",
        "ts IS NOT NULL",
        "ts > TIMESTAMP'2024-01-01 00:00:00Z'",
        "ts > '2024-01-01 00:00:00+01:00'",
        "d > '2024-01-01'",
        "year(d) > 2000",
        "n > '2024-01-01 00:00:00'",
        "unix_micros(ts) > 0",
        "coalesce(ts, TIMESTAMP'2024-01-01 00:00:00Z') IS NOT NULL",
        "CAST(ts AS BIGINT) > 0",
        "CAST(i AS TIMESTAMP) = ts",
        "exists(split(x, ','), t -> CAST(t AS BIGINT) > i)",
    ],
)
def test_instants_and_plain_values_do_not(text: str) -> None:
    assert not depends(text)


@pytest.mark.parametrize("text", ["d <= current_date()", "d < CURDATE()", "n < localtimestamp()"])
def test_today_is_another_day_elsewhere(text: str) -> None:
    at_now = SqlSession(now=dt.datetime(2024, 1, 1, tzinfo=dt.UTC), time_zone="UTC")
    assert depends_on_zone(text, parse_sql("TRUE"), SCHEMA)
    instant = "ts < current_timestamp()"
    assert not depends_on_zone(instant, resolve(parse_sql(instant), SCHEMA, at_now), SCHEMA)
