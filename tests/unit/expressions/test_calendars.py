"""Weekdays, months between dates and time zones; checked against printed datetimes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import datetimes

UTC = pa.timestamp("us", "UTC")


def moments(*texts: str | None) -> Any:
    return pa.array(texts, pa.string()).cast(pa.timestamp("us")).cast(pa.int64()).cast(UTC)


def texts_of(found: Any) -> list[str | None]:
    values = found.to_pylist()
    return [None if value is None else f"{value:%Y-%m-%d %H:%M:%S}" for value in values]


def test_next_day_is_always_later() -> None:
    # 2024-02-28 was a Wednesday, and 1969-12-31 too.
    dates = pa.array([dt.date(2024, 2, 28), dt.date(1969, 12, 31), None])
    assert datetimes.next_day(dates, pa.scalar("we")).to_pylist() == [
        dt.date(2024, 3, 6),
        dt.date(1970, 1, 7),
        None,
    ]
    days = pa.array(["Thu", "THURSDAY", "no day"])
    assert datetimes.next_day(dates, days).to_pylist() == [
        dt.date(2024, 2, 29),
        dt.date(1970, 1, 1),
        None,
    ]
    with pytest.raises(InvalidInputError, match="'weds' is not a day of the week"):
        datetimes.next_day(dates, pa.scalar("weds"))


@pytest.mark.parametrize(
    ("end", "start", "expected"),
    [
        ("1997-02-28 10:30:00", "1996-10-30 00:00:00", 3.94959677),  # the example of Spark's manual
        ("2024-03-15 23:00:00", "2024-01-15 01:00:00", 2.0),  # the same day: no times
        ("2024-02-29 05:00:00", "2023-11-30 23:00:00", 3.0),  # both are the last of their month
        ("2024-02-28 00:00:00", "2024-02-29 00:00:00", round(-1 / 31, 8)),
        (None, "2024-01-01 00:00:00", None),
    ],
)
def test_months_between(end: str | None, start: str, expected: float | None) -> None:
    assert datetimes.months_between(moments(end), moments(start)).to_pylist() == [expected]


def test_months_between_is_rounded_to_eight_digits_on_request_only() -> None:
    end, start = moments("2024-02-02 00:00:00"), moments("2024-01-01 00:00:00")
    exact = datetimes.months_between(end, start, pa.scalar(value=False))
    assert exact.to_pylist() == [1 + 1 / 31]
    assert datetimes.months_between(end, start).to_pylist() == [1.03225806]


def test_make_timestamp() -> None:
    def made(*parts: Any) -> Any:
        *whole, second = parts
        arrays: list[Any] = [pa.array([part], pa.int32()) for part in whole]
        seconds = pa.array([None if second is None else Decimal(second)], pa.decimal128(16, 6))
        return datetimes.make_timestamp(*arrays, seconds)

    assert made(2024, 2, 29, 23, 59, "59.5").cast(pa.int64()).to_pylist() == [1_709_251_199_500_000]
    assert texts_of(made(2024, 12, 31, 23, 59, "60")) == ["2025-01-01 00:00:00"]
    assert made(2024, 12, 31, 23, 59, None).to_pylist() == [None]
    for parts in ((2023, 2, 29, 0, 0, "0"), (2024, 1, 1, 24, 0, "0"), (2024, 1, 1, 0, 0, "60.1")):
        with pytest.raises(InvalidInputError, match="there is no timestamp"):
            made(*parts)


def test_times_of_zones() -> None:
    # Central Europe: clocks went from 02:00 to 03:00 on 2024-03-31, and back from 03:00 to 02:00
    # on 2024-10-27.
    berlin = pa.scalar("Europe/Berlin")
    walls = moments(
        "2024-01-01 12:00:00",
        "2024-07-01 12:00:00",
        "2024-03-31 02:30:00",
        "2024-10-27 02:30:00",
        None,
    )
    assert texts_of(datetimes.to_utc_timestamp(walls, berlin)) == [
        "2024-01-01 11:00:00",
        "2024-07-01 10:00:00",
        "2024-03-31 01:30:00",  # does not exist: with the offset before the change
        "2024-10-27 00:30:00",  # exists twice: the earlier one
        None,
    ]
    instants = moments("2024-01-01 12:00:00", "2024-07-01 12:00:00")
    assert texts_of(datetimes.from_utc_timestamp(instants, berlin)) == [
        "2024-01-01 13:00:00",
        "2024-07-01 14:00:00",
    ]


@pytest.mark.parametrize(
    ("zone", "hour"), [("UTC", 12), ("+05:30", 17), ("GMT-3", 9), ("PST", 4), ("EST", 7)]
)
def test_names_of_zones(zone: str, hour: int) -> None:
    noon = moments("2024-01-01 12:00:00")
    found = datetimes.from_utc_timestamp(noon, pa.scalar(zone)).to_pylist()
    assert found[0].hour == hour


@pytest.mark.parametrize("name", ["from_utc_timestamp", "to_utc_timestamp"])
def test_a_zone_is_null_or_exists(name: str) -> None:
    kernel = datetimes.KERNELS[name]
    noon = moments("2024-01-01 12:00:00")
    assert kernel(noon, pa.scalar(None, pa.string())).to_pylist() == [None]
    with pytest.raises(InvalidInputError, match="there is no time zone 'Mars/Base'"):
        kernel(noon, pa.scalar("Mars/Base"))
