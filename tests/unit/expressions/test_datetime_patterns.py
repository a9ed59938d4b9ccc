from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions.datetime_patterns import format_timestamps, parse_timestamps, segments

# A Saturday, the 60th day of a leap year.
LEAP_DAY = "2020-02-29 15:04:05.678901"


def walls(*texts: str | None) -> Any:
    return pa.array(texts, pa.string()).cast(pa.timestamp("us"))


def parsed(text: str, pattern: str) -> str:
    found = parse_timestamps(pa.array([text]), pattern)
    return str(found.cast(pa.timestamp("us")).cast(pa.string())[0].as_py())


def test_a_pattern_is_cut_at_letters_and_quotes() -> None:
    found = segments("yyyy-MM'T'''h 'o''clock'")
    shown = [part.letter * part.width or part.text for part in found]
    assert shown == ["yyyy", "-", "MM", "T'", "h", " ", "o'clock"]
    with pytest.raises(InvalidInputError, match="quote that is not closed"):
        segments("yyyy 'T")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss", "2020-02-29 15:04:05"),
        ("yyyy%MM", "2020%02"),
        ("y yy yyyyy", "2020 20 02020"),
        ("M MM MMM MMMM L LLL", "2 02 Feb February 2 Feb"),
        ("d D DDD", "29 60 060"),
        ("E EEE EEEE", "Sat Sat Saturday"),
        ("H k h hh K a", "15 15 3 03 3 PM"),
        ("S SSS SSSSSS SSSSSSSSS", "6 678 678901 678901000"),
        ("q qq QQQ", "1 01 Q1"),
        ("G X xx xxx Z VV z O", "AD Z +0000 +00:00 +0000 UTC UTC GMT"),
    ],
)
def test_letters_that_are_written(pattern: str, expected: str) -> None:
    assert format_timestamps(walls(LEAP_DAY, None), pattern).to_pylist() == [expected, None]
    assert format_timestamps(walls(LEAP_DAY)[0], pattern).as_py() == expected


def test_midnight_and_old_years() -> None:
    midnight = walls("0044-03-15 00:00:00")
    assert format_timestamps(midnight, "HH kk hh KK a").to_pylist() == ["00 24 12 00 AM"]
    assert format_timestamps(midnight, "yyyy-MM-dd").to_pylist() == ["0044-03-15"]
    assert format_timestamps(walls(None), "yyyy").to_pylist() == [None]


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        (LEAP_DAY, "yyyy-MM-dd HH:mm:ss.SSSSSS", LEAP_DAY),
        ("29/2/20", "d/M/yy", "2020-02-29 00:00:00.000000"),
        ("99", "yy", "2099-01-01 00:00:00.000000"),
        ("Feb 29, 2020", "MMM d, yyyy", "2020-02-29 00:00:00.000000"),
        ("15:04", "HH:mm", "1970-01-01 15:04:00.000000"),
        ("12:30 AM", "hh:mm a", "1970-01-01 00:30:00.000000"),
        ("12:30 pm", "hh:mm a", "1970-01-01 12:30:00.000000"),
        ("2020-01-01T00:00+02:00", "yyyy-MM-dd'T'HH:mmXXX", "2019-12-31 22:00:00.000000"),
        ("2020-01-01 0.5", "yyyy-MM-dd s.SSS", "2020-01-01 00:00:00.500000"),
    ],
)
def test_letters_that_are_read(text: str, pattern: str, expected: str) -> None:
    assert parsed(text, pattern) == expected
    assert parse_timestamps(pa.array([None], pa.string()), pattern).to_pylist() == [None]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("2023-02-29", "yyyy-MM-dd"),
        ("2023-2-1", "yyyy-MM-dd"),
        ("24:00", "HH:mm"),
        ("13:00 PM", "hh:mm a"),
        ("00:60", "HH:mm"),
        ("Foo", "MMM"),
        ("2020 ", "yyyy"),
        ("\u0662\u0660\u0662\u0660", "yyyy"),  # Arabic digits: Java parses ASCII only
    ],
)
def test_strings_that_do_not_match_are_an_error(text: str, pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot read"):
        parsed(text, pattern)


def test_letters_that_spark_refuses() -> None:
    with pytest.raises(InvalidInputError, match=r"does not support 'Y+' of the pattern"):
        format_timestamps(walls(LEAP_DAY), "YYYY")
    with pytest.raises(InvalidInputError, match="cannot read 'EEE' of the pattern"):
        parsed("Sat", "EEE")
