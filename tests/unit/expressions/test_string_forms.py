"""Spark's string forms; what is expected is Java's `Double.toString` and `LocalDate`."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog._util.clock import civil_from_days, days_from_civil, days_in_month
from deltalog.errors import InvalidInputError
from deltalog.expressions import string_forms


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-0.001, "-0.001"),
        (0.0001, "1.0E-4"),
        (1234567.0, "1234567.0"),
        (12345678.0, "1.2345678E7"),
        (1e21, "1.0E21"),
        (0.1, "0.1"),
        (2e-323, "2.0E-323"),
        (5e-324, "4.9E-324"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (None, None),
    ],
)
def test_doubles(number: float | None, expected: str | None) -> None:
    assert string_forms.of_fractionals(pa.array([number], pa.float64())).to_pylist() == [expected]


def test_floats_and_decimals() -> None:
    floats = pa.array([0.1, 16777216.0], pa.float32())
    assert string_forms.of_fractionals(floats).to_pylist() == ["0.1", "1.6777216E7"]
    small = pa.array([Decimal("0.0000001"), None], pa.decimal128(10, 7))
    assert string_forms.of_decimals(small).to_pylist() == ["0.0000001", None]


def test_dates_and_timestamps() -> None:
    assert string_forms.of_dates(pa.array([dt.date(2024, 1, 31), None])).to_pylist() == [
        "2024-01-31",
        None,
    ]
    # 10000-01-01 is 2,932,897 days after 1970-01-01.
    late: Any = pa.array([2_932_897], pa.int32()).cast(pa.date32())
    assert string_forms.of_dates(late).to_pylist() == ["+10000-01-01"]
    moments: Any = pa.array([0, 500_000, 60_000_000, None]).cast(pa.timestamp("us", "UTC"))
    assert string_forms.of_timestamps(moments).to_pylist() == [
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:00.5",
        "1970-01-01 00:01:00",
        None,
    ]
    # What Spark prints of the ends of both types.
    ends: Any = pa.array([-(1 << 31), None, (1 << 31) - 1], pa.int32()).cast(pa.date32())
    assert string_forms.of_dates(ends).to_pylist() == ["-5877641-06-23", None, "+5881580-07-11"]
    ends = pa.array([-(1 << 63), None, (1 << 63) - 1]).cast(pa.timestamp("us", "UTC"))
    assert string_forms.of_timestamps(ends).to_pylist() == [
        "-290308-12-21 19:59:05.224192",
        None,
        "+294247-01-10 04:00:54.775807",
    ]
    with pytest.raises(InvalidInputError, match="-32767 to 32767"):
        string_forms.check_years(pa.array([20_000_000], pa.int32()).cast(pa.date32()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-02", 1),
        (" 1970-1-2\n", 1),
        ("1970", 0),
        ("1970-02", 31),
        ("1970-01-02T anything", 1),
        ("+1970-01-01", 0),
        ("-0001-12-31", -719_529),  # day 0 of year 0 is -719,528
        ("1970-02-30", None),
        ("70-01-01", None),
        ("", None),
    ],
)
def test_dates_in_strings(text: str, expected: int | None) -> None:
    assert string_forms.days_of(text) == expected
    values, refused = string_forms.to_dates(pa.array([text, None, "2024-01-31"]))
    assert values.cast(pa.int32()).to_pylist() == [expected, None, 19_753]
    is_refused = [False] * 3 if refused is None else refused.to_pylist()
    assert is_refused == [expected is None, False, False]


@pytest.mark.parametrize(
    ("text", "expected", "without_zone"),
    [
        ("1970-01-01 00:00:01", 1.0, 1.0),
        ("1970-01-01T00:00:00.5Z", 0.5, 0.5),
        ("1970-01-01 01:00:00+01:00", 0.0, 3600.0),
        ("1970-01-01 00:00:00 PST", 28_800.0, 0.0),
        ("1970-01-01 1", 3600.0, 3600.0),
        ("1970", 0.0, 0.0),
        ("1970-01-01 24:00:00", None, None),
        ("1970-01-01 00:00:00 Mars/Base", None, None),
    ],
)
def test_timestamps_in_strings(
    text: str, expected: float | None, without_zone: float | None
) -> None:
    for has_zone, seconds in ((True, expected), (False, without_zone)):
        values, refused = string_forms.to_micros(pa.array([text, None]), has_zone=has_zone)
        micros = None if seconds is None else round(seconds * 1_000_000)
        assert values.to_pylist() == [micros, None]
        is_refused = [False] * 2 if refused is None else refused.to_pylist()
        assert is_refused == [micros is None, False]


@pytest.mark.parametrize(
    ("zone", "minutes", "name"),
    [
        ("Z", 0, "UTC"),
        ("UTC+5", 300, "+05:00"),
        ("-0330", -210, "-03:30"),
        ("+18:00", 1080, "+18:00"),
        ("EST", -300, "-05:00"),
        ("IST", 330, "Asia/Kolkata"),  # India's, not Israel's
        ("+18:01", None, None),
        ("Mars/Base", None, None),
        ("../etc/passwd", None, None),
    ],
)
def test_zones(zone: str, minutes: int | None, name: str | None) -> None:
    micros = None if minutes is None else minutes * 60_000_000
    assert string_forms.offset_micros(zone) == micros
    assert string_forms.arrow_zone(zone) == name


def test_dates_and_days_are_inverse() -> None:
    for days in (*range(-800_000, 800_000, 997), 11_016, 11_017):
        assert days_from_civil(*civil_from_days(days)) == days
        expected = dt.date(1970, 1, 1) + dt.timedelta(days) if days > -719_163 else None
        if expected is not None:
            assert civil_from_days(days) == (expected.year, expected.month, expected.day)
    assert [days_in_month(year, 2) for year in (1900, 2000, 2023, 2024)] == [28, 29, 28, 29]


def test_white_space_and_plus_signs() -> None:
    padded = pa.array(["\t\x00 1\x7f", "\u00a01"])
    assert string_forms.trim_all(padded).to_pylist() == ["1", "\u00a01"]
    assert string_forms.without_plus(pa.array(["+1", "-1"])).to_pylist() == ["1", "-1"]


def test_integers_and_decimals_in_strings() -> None:
    within = string_forms.integers_within(pa.array(["127", "128", "-128", None]), 8)
    assert within.to_pylist() == [True, False, True, None]
    for text, expected in (
        ("1.005", "1.01"),
        ("-1.005", "-1.01"),
        ("99.994", "99.99"),
        ("99.995", None),
        ("100", None),
        ("1e-9", "0.00"),
        ("0e99", "0.00"),
    ):
        found = string_forms.decimal_of(text, 4, 2)
        assert found == (None if expected is None else Decimal(expected))
    values, fits = string_forms.decimals_by_row(pa.array(["1", "100", None]), 4, 2)
    assert values.to_pylist() == [Decimal("1.00"), None, None]
    assert fits.to_pylist() == [True, False, None]


@pytest.mark.parametrize("text", ["2021-02-30 01:02:03", "2021-13-01 00:00:00", "2021-02-29"])
def test_a_timestamp_of_a_day_that_is_not_in_the_calendar_is_none(text: str) -> None:
    assert string_forms.micros_of(text, has_zone=True) is None
    assert string_forms.micros_of(text, has_zone=False) is None
