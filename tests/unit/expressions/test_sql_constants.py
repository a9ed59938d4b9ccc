from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression, Literal, lit, parse_sql, to_sql
from deltalog.expressions.nodes import Call


def _same(sql: str, expected: Expression) -> None:
    assert parse_sql(sql).same_as(expected), parse_sql(sql)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("1.50", Decimal("1.50")),
        ("1e3", 1000.0),
        ("'it''s'", "it's"),
        (r"'a\'b\tc'", "a'b\tc"),
        (r"r'a\tb'", r"a\tb"),
        ('"double"', "double"),
        ("'a' 'b'", "ab"),
        ("X'0aF'", b"\x00\xaf"),
        ("TRUE", True),
        ("NULL", None),
        ("DATE'2024-02-29'", dt.date(2024, 2, 29)),
        (
            "TIMESTAMP'2024-02-29 10:00:00+02:00'",
            dt.datetime(2024, 2, 29, 8, tzinfo=dt.UTC),
        ),
        ("TIMESTAMP_NTZ'2024-02-29 10:00:00'", dt.datetime(2024, 2, 29, 10)),  # noqa: DTZ001
        ("5 -- five", 5),
        ("/* five */ 5", 5),
    ],
)
def test_constants(sql: str, value: object) -> None:
    _same(sql, lit(value))


def parts(*pairs: Any) -> Call:
    return Call("interval", tuple(map(lit, pairs)))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INTERVAL '1-2' YEAR TO MONTH", parts(1, "YEAR", 2, "MONTH")),
        ("INTERVAL -'1-2' YEAR TO MONTH", parts(-1, "YEAR", -2, "MONTH")),
        ("INTERVAL '-1-2' YEAR TO MONTH", parts(-1, "YEAR", -2, "MONTH")),
        ("INTERVAL -'-1-2' YEAR TO MONTH", parts(1, "YEAR", 2, "MONTH")),
        ("interval '+0-11' year to month", parts(0, "YEAR", 11, "MONTH")),
        ("INTERVAL '1 02' DAY TO HOUR", parts(1, "DAY", 2, "HOUR")),
        ("INTERVAL '1 02:03' DAY TO MINUTE", parts(1, "DAY", 2, "HOUR", 3, "MINUTE")),
        (
            "INTERVAL '-1 02:03:04.5' DAY TO SECOND",
            parts(-1, "DAY", -2, "HOUR", -3, "MINUTE", -4, "SECOND", -500_000, "MICROSECOND"),
        ),
        ("INTERVAL '100:03' HOUR TO MINUTE", parts(100, "HOUR", 3, "MINUTE")),
        (
            "INTERVAL '2:03:04' HOUR TO SECOND",
            parts(2, "HOUR", 3, "MINUTE", 4, "SECOND"),
        ),
        (
            "INTERVAL '99:04.123456789' MINUTE TO SECOND",
            parts(99, "MINUTE", 4, "SECOND", 123_456, "MICROSECOND"),
        ),
    ],
)
def test_intervals_go_from_one_field_to_another(sql: str, expected: Expression) -> None:
    _same(sql, expected)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("INTERVAL '1-12' YEAR TO MONTH", "the maximum is 11"),
        ("INTERVAL '1 24:00:00' DAY TO SECOND", "the maximum is 23"),
        ("INTERVAL '1:60' HOUR TO MINUTE", "the maximum is 59"),
        ("INTERVAL '1' YEAR TO MONTH", "expected one such as '1-2'"),
        ("INTERVAL '02:03' DAY TO SECOND", "expected one such as"),
        ("INTERVAL '1 02:03:04.' DAY TO SECOND", "expected one such as"),
        ("INTERVAL '1 2' DAY TO MONTH", "no INTERVAL from DAY to MONTH"),
        ("INTERVAL '1' MONTH TO YEAR", "no INTERVAL from MONTH to YEAR"),
        ("INTERVAL '1' DAY TO DAY", "no INTERVAL from DAY to DAY"),
        ("INTERVAL '1' DAY TO WEEK", "expected a field of an interval"),
    ],
)
def test_texts_that_are_no_intervals(sql: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        parse_sql(sql)


@pytest.mark.parametrize(
    ("text", "micros", "nanos"),
    [
        ("2024-01-01 00:00:00.123456789", 123_456, 789),
        ("2024-01-01 00:00:00.1234567", 123_456, 700),
        ("2024-01-01T00:00:00.1234567890123Z", 123_456, 789),
        ("2024-01-01 00:00:00.123456", 123_456, 0),
        ("2024-01-01", 0, 0),
    ],
)
def test_moments_keep_what_is_below_their_microseconds(text: str, micros: int, nanos: int) -> None:
    moment = dt.datetime(2024, 1, 1, microsecond=micros)  # noqa: DTZ001  # a wall clock
    literal = Literal(moment, nanos=nanos)
    _same(f"TIMESTAMP_NTZ'{text}'", literal)
    assert parse_sql(to_sql(literal)).same_as(literal)
    instant = Literal(moment.replace(tzinfo=dt.UTC), nanos=nanos)
    _same(f"TIMESTAMP'{text}'", instant)
    assert parse_sql(to_sql(instant)).same_as(instant)
