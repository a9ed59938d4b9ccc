"""Dates and timestamps, and the texts that writers have for them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.moments import (
    DATE,
    INSTANT,
    WALL_CLOCK,
    date_literal,
    instant_literal,
    instant_micros,
    instants,
    offset_micros_of,
    wall_clock_literal,
    wall_clocks,
)

NOON = dt.datetime(2024, 7, 1, 12)  # noqa: DTZ001  # a wall clock
HOUR = 3_600_000_000
NOON_US = 19_905 * 24 * HOUR + 12 * HOUR


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("1970-01-01", "UTC", 0),
        ("1970-1-1 1:00", "UTC", HOUR),
        ("1970-01-01T00:00:00.000001Z", "+05:00", 1),
        ("1970-01-01 00:00:00,5", "UTC", 500_000),
        ("1970-01-01 00:00:00+01:00", "UTC", -HOUR),
        ("1970-01-01 00:00:00", "+01:00", -HOUR),
        ("1970-07-01 00:00:00", "America/New_York", 181 * 24 * HOUR + 4 * HOUR),
        ("0001-01-01 00:00:00.100000000", "UTC", -62_135_596_799_900_000),
    ],
)
def test_instants_of_texts(text: str, zone: str, expected: int) -> None:
    assert instant_micros(text, zone) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", ValueError),
        ("noon", ValueError),
        ("2024-02-30", ValueError),
        ("2024-01-01 25:00:00", ValueError),
        ("2024-01-01 00:00:00.0000001", ValueError),  # finer than a microsecond
        ("2024-01-01 00:00:00+19:00", ValueError),
        ("+294247-01-10 04:00:54.775808", OverflowError),
        ("-290308-12-21 19:59:05.224191", OverflowError),
    ],
)
def test_texts_that_are_no_instants(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        instant_micros(text, "UTC")


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("Z", 0), ("UTC", 0), ("+0530", 5.5), ("-18:00", -18), ("Europe/Berlin", 2)],
)
def test_offsets(zone: str, hours: float) -> None:
    assert offset_micros_of(zone, NOON_US) == hours * HOUR


def test_in_a_gap_the_clock_is_put_forward() -> None:
    # There is no 02:30 on that day in Berlin: it is 03:30 there, an hour and a half after midnight
    # in UTC.
    assert instant_micros("2024-03-31 02:30:00", "Europe/Berlin") == instant_micros(
        "2024-03-31 01:30:00", "UTC"
    )


def test_a_zone_that_is_none() -> None:
    with pytest.raises(InvalidInputError, match="'Europe/Nowhere'"):
        offset_micros_of("Europe/Nowhere", 0)


@pytest.mark.parametrize(
    ("value", "date", "wall_clock", "instant"),
    [
        (dt.date(2024, 1, 2), "2024-01-02", None, None),
        (NOON, None, "2024-07-01 12:00:00", None),
        (NOON.replace(tzinfo=dt.UTC), None, None, "2024-07-01 12:00:00Z"),
        (
            NOON.replace(microsecond=5, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            None,
            None,
            "2024-07-01 10:00:00.000005Z",
        ),
        ("2024-01-02", None, None, None),
        (None, None, None, None),
    ],
)
def test_literals(
    value: object, date: str | None, wall_clock: str | None, instant: str | None
) -> None:
    assert date_literal(value) == date
    assert wall_clock_literal(value) == wall_clock
    assert instant_literal(value) == instant


@pytest.mark.parametrize(
    ("codec", "kind", "texts", "expected"),
    [
        (DATE, pa.date32(), ["2024-01-02", None, "2024-1-2"], [dt.date(2024, 1, 2)]),
        (
            WALL_CLOCK,
            pa.timestamp("us"),
            ["2024-07-01 12:00:00Z", None, "2024-07-01 12:00"],
            [NOON],
        ),
        (
            INSTANT,
            pa.timestamp("us", "UTC"),
            ["2024-07-01 12:00:00", None, "2024-07-01T14:00:00+02:00"],
            [NOON.replace(tzinfo=dt.UTC)],
        ),
    ],
)
def test_odd_forms_mean_the_same(
    codec: Any, kind: pa.DataType, texts: list[str | None], expected: list[Any]
) -> None:
    found = codec.parse(pa.array(texts, pa.string()), kind, "UTC").to_pylist()
    assert found == [*expected, None, *expected]


@pytest.mark.parametrize("text", ["2_24-1-2", "24-1-2", "2024-1- 2", "+2024-1-2", "2024-1"])
def test_texts_that_are_no_dates_are_refused(text: str) -> None:
    assert DATE.parse is not None
    with pytest.raises(ValueError, match=r"^expected"):
        DATE.parse(pa.array(["2024-01-02", text]), pa.date32(), "UTC")


def test_values_of_another_kind_have_no_text() -> None:
    for codec, value in ((DATE, NOON), (WALL_CLOCK, NOON.replace(tzinfo=dt.UTC)), (INSTANT, NOON)):
        assert codec.encode is not None
        with pytest.raises(TypeError, match="datetime"):
            codec.encode(value, pa.null())


@pytest.mark.parametrize(
    ("wall", "expected"),
    [
        ("2024-07-01T12:00:00", "2024-07-01T16:00:00"),
        ("2024-03-10T02:30:00", "2024-03-10T07:30:00"),  # skipped: as 02:30 before the change
        ("2024-11-03T01:30:00", "2024-11-03T05:30:00"),  # twice: the first
        (None, None),
    ],
)
def test_instants_of_wall_clocks(wall: str | None, expected: str | None) -> None:
    found = instants(pa.array([wall]).cast(pa.timestamp("us")), "America/New_York")
    assert found.cast(pa.timestamp("us")).equals(pa.array([expected]).cast(pa.timestamp("us")))
    assert instants(found.cast(pa.timestamp("us")).slice(0, 0), "+02:00").to_pylist() == []


@pytest.mark.parametrize("zone", ["America/New_York", "+02:00"])
def test_wall_clocks_of_instants(zone: str) -> None:
    moments = pa.array([0, None, 1_720_000_000_000_000], pa.timestamp("us", "UTC"))
    assert instants(wall_clocks(moments, zone), zone).equals(moments)
