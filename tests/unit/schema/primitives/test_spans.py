"""Intervals: their constants in SQL, and Arrow's calendar intervals."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from deltalog.schema.primitives.moments import (
    calendar_intervals,
    months_constant,
    narrower,
    time_constant,
    time_spans,
)

INTERVAL: Any = pa.MonthDayNano  # the stubs know other arguments

SPANS = pa.array(
    [0, 1, -1, None, 86_400_000_001, -86_400_000_001, 2**63 - 1, -(2**63)], pa.int64()
).cast(pa.duration("us"))


@pytest.mark.parametrize(
    ("months", "sql"),
    [
        (0, "INTERVAL '0-0' YEAR TO MONTH"),
        (18, "INTERVAL '1-6' YEAR TO MONTH"),
        (-7, "INTERVAL '-0-7' YEAR TO MONTH"),
        (-(2**31), "INTERVAL '-178956970-8' YEAR TO MONTH"),
    ],
)
def test_months_are_years_and_months(months: int, sql: str) -> None:
    assert months_constant(months) == sql


@pytest.mark.parametrize(
    ("span", "sql"),
    [
        (dt.timedelta(), "INTERVAL '0 00:00:00' DAY TO SECOND"),
        (dt.timedelta(1, 7384, 500_000), "INTERVAL '1 02:03:04.5' DAY TO SECOND"),
        (dt.timedelta(microseconds=-5), "INTERVAL '-0 00:00:00.000005' DAY TO SECOND"),
        (dt.timedelta(days=-1, microseconds=5), "INTERVAL '-0 23:59:59.999995' DAY TO SECOND"),
    ],
)
def test_spans_are_days_and_a_time(span: dt.timedelta, sql: str) -> None:
    assert time_constant(span) == sql


@pytest.mark.parametrize("start", [0, 1, 3, 8])
def test_calendar_intervals_hold_every_span(start: int) -> None:
    spans = SPANS.slice(start)
    found = calendar_intervals(spans)
    found.validate(full=True)
    assert found.type == pa.month_day_nano_interval()
    assert time_spans(found).equals(spans)
    assert time_spans(calendar_intervals(SPANS).slice(start)).equals(spans)


def test_both_parts_of_a_calendar_interval_have_the_sign_of_the_span() -> None:
    parts = calendar_intervals(SPANS.slice(4, 2)).to_pylist()
    assert parts == [INTERVAL([0, 1, 1000]), INTERVAL([0, -1, -1000])]


@pytest.mark.parametrize("parts", [[1, 0, 0], [0, 0, 1], [-1, 2, 3000]])
def test_months_and_nanoseconds_are_no_span(parts: list[int]) -> None:
    with pytest.raises(ValueError, match="days and microseconds"):
        time_spans(pa.array([INTERVAL([0, 1, 0]), INTERVAL(parts)]))


@pytest.mark.parametrize(
    "parts", [[0, 106_751_992, 0], [0, -106_751_992, 0], [0, 2**31 - 1, 0], [0, -(2**31), 0],
              [0, 106_751_991, 14_454_775_808_000]],
)  # fmt: skip
def test_too_long_an_interval_is_no_span(parts: list[int]) -> None:
    intervals = pa.array([None, INTERVAL(parts)], pa.month_day_nano_interval())
    with pytest.raises(ValueError, match="64 bits"):
        time_spans(intervals)
    at_most = pa.array([INTERVAL([0, 106_751_991, 14_454_775_807_000])])
    assert time_spans(at_most).cast(pa.int64()).to_pylist() == [2**63 - 1]


def test_narrower_names_are_all_but_the_widest() -> None:
    assert narrower("year", "month") == ("interval year", "interval month")
    found = narrower("day", "hour", "minute", "second")
    assert len(found) == 9
    assert "interval hour to second" in found
    assert "interval day to second" not in found
