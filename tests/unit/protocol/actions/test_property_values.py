from __future__ import annotations

import pytest

from deltalog.protocol.actions.properties import (
    parse_bytes,
    parse_column_list,
    parse_interval_ms,
    parse_one_of,
    parse_ratio,
    parse_whole,
)

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 1 week", 7 * DAY_MS),
        ("interval 30 days", 30 * DAY_MS),
        ("INTERVAL 2 DAYS", 2 * DAY_MS),
        ("1 day 12 hours", DAY_MS * 3 // 2),
        ("  interval   1 week  2 days ", 9 * DAY_MS),
        ("interval 1.5 seconds", 1500),
        ("interval 1 minute -30 seconds", 30_000),
        ("interval 1 minute -1.5 seconds", 58_500),
        ("interval 0 hours", 0),
        ("interval 1500 microseconds", 1),
        ("7 milliseconds", 7),
    ],
)
def test_intervals(text: str, milliseconds: int) -> None:
    assert parse_interval_ms(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "interval",
        "1 month",
        "interval 2 years",
        "7",
        "week",
        "1.5 days",
        "-1 days",
        "1 fortnight",
        "1 day x",
    ],
)
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_interval_ms(text)


@pytest.mark.protocol("STAT-10")
@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a", (("a",),)),
        ("a, b.c ,d", (("a",), ("b", "c"), ("d",))),
        ("`a b`.`c,d`,e", (("a b", "c,d"), ("e",))),
        ("`tick``ed`", (("tick`ed",),)),
    ],
)
def test_column_lists(text: str, paths: tuple[tuple[str, ...], ...]) -> None:
    assert parse_column_list(text) == paths


@pytest.mark.parametrize("text", ["", "a,", "a..b", "`a", "a b`"])
def test_what_is_no_column_list(text: str) -> None:
    with pytest.raises(ValueError, match="expected column names"):
        parse_column_list(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0.0), ("1", 1.0), ("0.05", 0.05), ("-0.01", None), ("1.01", None), ("nan", None),
     ("half", None)],
)  # fmt: skip
def test_ratios(text: str, expected: float | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="from 0 to 1"):
            parse_ratio(text)
    else:
        assert parse_ratio(text) == expected


def test_one_of_some_words() -> None:
    parse = parse_one_of("classic", "V2")
    assert [parse(" Classic "), parse("v2")] == ["classic", "V2"]
    with pytest.raises(ValueError, match="expected one of classic, V2"):
        parse("v3")


def test_sizes() -> None:
    assert [parse_bytes(text) for text in ("5", "1kb", "128mb", "2 GiB")] == [5, 1024, 2**27, 2**31]
    with pytest.raises(ValueError, match="expected a size"):
        parse_bytes("0")


@pytest.mark.parametrize("text", ["256", "1000000000", "9" * 5_000, "0", "-1"])
def test_a_whole_number_has_a_highest_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a whole number of 1 to 255$"):
        parse_whole(1, 255)(text)
    assert parse_whole(1, 255)("255") == 255


def test_a_whole_number_fits_64_bits() -> None:
    assert parse_whole(0)("9223372036854775807") == 2**63 - 1
    for text in ("9223372036854775808", "9" * 5_000):
        with pytest.raises(ValueError, match=r"^expected a whole number of 0 or more$"):
            parse_whole(0)(text)
