"""Partition values as text, and back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError, InvalidPartitionValueError, UnsupportedTypeError
from deltalog.protocol.partition_values import (
    encode_value,
    extract,
    parse_column,
    parse_value,
    value_of,
)
from deltalog.schema import ArrayType, PrimitiveType, UnknownType, VariantType, to_arrow_type

DAY_US = 86_400_000_000


@pytest.mark.protocol("PART-01", "PART-02", "PART-03", "PART-05", "D-07", "D-08", "B-36")
@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("long", None, None),
        ("string", "", None),
        ("binary", b"", None),
        ("string", "a b", "a b"),
        ("long", -1, "-1"),
        ("byte", 127, "127"),
        ("boolean", True, "true"),
        ("boolean", False, "false"),
        ("date", date(1, 2, 3), "0001-02-03"),
        ("decimal(15,2)", Decimal("1.5"), "1.50"),
        ("decimal(15,2)", Decimal("-0.05"), "-0.05"),
        ("decimal(38,0)", Decimal("1E+20"), "100000000000000000000"),
        ("decimal(38,18)", Decimal("1E-18"), "0.000000000000000001"),
        ("timestamp", datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01T00:00:00.000000Z"),
        (
            "timestamp",
            datetime(2024, 1, 1, 1, 0, 0, 5, timezone(timedelta(hours=1))),
            "2024-01-01T00:00:00.000005Z",
        ),
        ("timestamp", datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
        ("timestamp_ntz", datetime(1, 1, 1), "0001-01-01 00:00:00"),  # noqa: DTZ001
        ("timestamp_ntz", datetime(2024, 1, 1, 0, 0, 0, 5), "2024-01-01 00:00:00.000005"),  # noqa: DTZ001
        ("double", 1.0, "1.0"),
        ("double", 1e7, "1.0E7"),
        ("double", 9999999.0, "9999999.0"),
        ("double", 0.001, "0.001"),
        ("double", 0.00099, "9.9E-4"),
        ("double", -0.0, "-0.0"),
        ("double", 1.7976931348623157e308, "1.7976931348623157E308"),
        ("double", float("nan"), "NaN"),
        ("double", float("-inf"), "-Infinity"),
        ("float", 0.10000000149011612, "0.1"),
        ("float", 16777216.0, "1.6777216E7"),
    ],
)
def test_values_as_spark_writes_them(name: str, value: object, text: str | None) -> None:
    assert encode_value(value, PrimitiveType(name)) == text


@pytest.mark.protocol("PART-04", "D-09")
def test_binary_is_text_where_it_can_be() -> None:
    assert encode_value(b"\x01\x02\x03", PrimitiveType("binary")) == "\x01\x02\x03"
    with pytest.raises(InvalidInputError, match=r"b'\\xff'"):
        encode_value(b"\xff", PrimitiveType("binary"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("byte", 128),
        ("long", 1.0),
        ("long", True),
        ("double", "1"),
        ("boolean", 1),
        ("string", 1),
        ("string", "\ud800"),
        ("date", datetime(2024, 1, 1, tzinfo=UTC)),
        ("timestamp", date(2024, 1, 1)),
        ("date", 0),
        ("date", 2_932_896),  # the last day of 9999, which Python has
        ("timestamp", 0),
        ("timestamp_ntz", True),
        ("timestamp_ntz", datetime(2024, 1, 1, tzinfo=UTC)),
        ("decimal(5,2)", Decimal("1.505")),
        ("decimal(5,2)", Decimal(1000)),
        ("decimal(5,2)", 1.5),
        ("void", 1),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidInputError):
        encode_value(value, PrimitiveType(name))


def test_containers_are_no_partition_columns() -> None:
    with pytest.raises(InvalidInputError, match="cannot be a partition column"):
        encode_value([1], ArrayType("long"))


FAR = [
    # What Delta Spark 4.4 writes; of timestamps before the year 1 it drops the sign, for which
    # there is the form of Spark's casts.
    ("date", 3_671_726, "+12022-11-05"),
    ("date", -735_525, "-0044-03-15"),
    ("date", -719_528, "0000-01-01"),
    ("date", (1 << 31) - 1, "+5881580-07-11"),
    ("date", -(1 << 31), "-5877641-06-23"),
    ("timestamp", 3_671_726 * DAY_US + 3_723_500_000, "+12022-11-05T01:02:03.500000Z"),
    ("timestamp", -735_525 * DAY_US, "-0044-03-15T00:00:00.000000Z"),
    ("timestamp", (1 << 63) - 1, "+294247-01-10T04:00:54.775807Z"),
    ("timestamp", -(1 << 63), "-290308-12-21T19:59:05.224192Z"),
    ("timestamp_ntz", 3_671_726 * DAY_US + 3_723_500_000, "+12022-11-05 01:02:03.500000"),
    ("timestamp_ntz", -735_525 * DAY_US, "-0044-03-15 00:00:00"),
    ("timestamp_ntz", -719_528 * DAY_US + 1, "0000-01-01 00:00:00.000001"),
]


@pytest.mark.parametrize(("name", "count", "text"), FAR)
def test_moments_of_years_that_python_does_not_have(name: str, count: int, text: str) -> None:
    kind = PrimitiveType(name)
    assert encode_value(count, kind) == text
    assert parse_value(text, kind, time_zone="UTC") == count
    usual = "2024-02-29 00:00:00"[: 10 if name == "date" else None]
    column = parse_column(pa.array([text, None, usual, text]), kind, time_zone="UTC")
    wide = pa.int32() if name == "date" else pa.int64()
    days = 19_782 * (1 if name == "date" else DAY_US)
    assert column.cast(wide).to_pylist() == [count, None, days, count]


def test_other_forms_of_far_years_and_their_zones() -> None:
    date, moment = PrimitiveType("date"), PrimitiveType("timestamp")
    assert parse_value("12022-11-5", date, time_zone="UTC") == 3_671_726
    year = 3_671_726 * DAY_US
    hour = DAY_US // 24
    assert parse_value("+12022-11-05 00:00:00", moment, time_zone="+02:00") == year - 2 * hour
    # November is winter in Berlin, whatever the year; July is summer.
    assert parse_value("12022-11-05 00:00", moment, time_zone="Europe/Berlin") == year - hour
    summer = (3_671_726 - 127) * DAY_US
    assert parse_value("12022-07-01 00:00", moment, time_zone="Europe/Berlin") == summer - 2 * hour
    # Before there were zones, clocks in Berlin were 53 minutes and 28 seconds ahead.
    local = -735_525 * DAY_US - 3_208_000_000
    assert parse_value("-0044-03-15 00:00", moment, time_zone="Europe/Berlin") == local
    # An hour before the year 1 in UTC: Python has the wall clock, and not the moment.
    early = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    assert encode_value(early, moment) == "0000-12-31T23:00:00.000000Z"


def test_a_naive_datetime_is_no_instant() -> None:
    moment: Any = datetime(2024, 7, 1, 12)  # noqa: DTZ001
    with pytest.raises(InvalidInputError, match="without a time zone"):
        encode_value(moment, PrimitiveType("timestamp"))


ALL = [
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "decimal(5,2)",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "void",
]


def naive(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001  # numbers in order


@pytest.mark.protocol("PART-01", "D-07")
@pytest.mark.parametrize("name", ALL)
def test_null_and_the_empty_text_are_null_for_every_type(name: str) -> None:
    kind = PrimitiveType(name)
    assert parse_value(None, kind, time_zone="UTC") is None
    assert parse_value("", kind, time_zone="UTC") is None
    column = parse_column(pa.array(["", None]), kind, time_zone="UTC")
    assert (column.type, column.null_count) == (to_arrow_type(kind), 2)
    empty = parse_column(pa.array([], pa.string()), kind, time_zone="UTC")
    assert (empty.type, len(empty)) == (to_arrow_type(kind), 0)


@pytest.mark.protocol("PART-02")
@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("long", "-9223372036854775808", -(2**63)),
        ("integer", "-1", -1),
        ("short", "+7", 7),
        ("byte", "0127", 127),
        ("decimal(15,2)", "1.50", Decimal("1.50")),
        ("decimal(15,2)", "-12.5", Decimal("-12.50")),
        ("decimal(38,18)", "-0.000000000000000001", Decimal("-1E-18")),
        ("decimal(5,2)", "0E-18", Decimal("0.00")),
        ("boolean", "true", True),
        ("boolean", "False", False),
        ("date", "2024-01-31", date(2024, 1, 31)),
        ("date", "2024-1-5", date(2024, 1, 5)),
        ("date", "0001-01-01", date(1, 1, 1)),
        ("date", "9999-12-31", date(9999, 12, 31)),
        ("string", " null ", " null "),
    ],
)
def test_texts_by_type(name: str, text: str, value: object) -> None:
    found = parse_value(text, PrimitiveType(name), time_zone="UTC")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.protocol("PART-05")
@pytest.mark.parametrize("name", ["float", "double"])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.0", "1.0"),
        ("1.0E10", "10000000000.0"),
        ("10000000000", "10000000000.0"),
        ("-0.0", "-0.0"),
        ("NaN", "nan"),
        ("Infinity", "inf"),
        ("-Infinity", "-inf"),
        ("-inf", "-inf"),
    ],
)
def test_floats(name: str, text: str, value: str) -> None:
    assert repr(parse_value(text, PrimitiveType(name), time_zone="UTC")) == value


@pytest.mark.protocol("PART-03", "D-08", "B-36")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1970-01-01 00:00:00", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1970-01-01 00:00:00.123456", datetime(1970, 1, 1, 0, 0, 0, 123456, UTC)),
        ("1970-01-01T00:00:00.123456Z", datetime(1970, 1, 1, 0, 0, 0, 123456, UTC)),
        ("1969-12-31T23:59:59.000000Z", datetime(1969, 12, 31, 23, 59, 59, 0, UTC)),
        ("1969-12-31 23:59:59.5", datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)),
        ("0001-01-01 00:00:00", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
        ("2024-03-10T10:30:00+02:00", datetime(2024, 3, 10, 8, 30, tzinfo=UTC)),
        ("2024-03-10 10:30:00-0530", datetime(2024, 3, 10, 16, 0, tzinfo=UTC)),
        ("2024-03-10 10:30:00.123456000", datetime(2024, 3, 10, 10, 30, 0, 123456, UTC)),
        ("2024-03-10", datetime(2024, 3, 10, tzinfo=UTC)),
    ],
)
def test_timestamps(text: str, value: datetime) -> None:
    assert parse_value(text, PrimitiveType("timestamp"), time_zone="UTC") == value
    # A second form beside it takes the path value by value.
    both = parse_column(
        pa.array([text, "2000-01-01 00:00:00+00:00"]), PrimitiveType("timestamp"), time_zone="UTC"
    )
    assert both[0].as_py() == value


@pytest.mark.protocol("D-08")
def test_only_zone_less_timestamps_take_the_default_time_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    kind = PrimitiveType("timestamp")
    assert parse_value("2024-07-01 00:00:00", kind, time_zone="UTC") == datetime(
        2024, 7, 1, tzinfo=UTC
    )

    def hour(text: str, zone: str) -> datetime:
        value: datetime = parse_value(text, kind, time_zone=zone)
        return value

    assert hour("2024-07-01 12:00:00", "Europe/Berlin") == datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert hour("2024-07-01 12:00:00Z", "Europe/Berlin") == datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert hour("2024-07-01 12:00:00", "+05:30") == datetime(2024, 7, 1, 6, 30, tzinfo=UTC)
    # In the gap of spring the clock is put forward; in autumn the first of the two hours counts.
    assert hour("2024-03-31 02:30:00", "Europe/Berlin") == datetime(2024, 3, 31, 1, 30, tzinfo=UTC)
    assert hour("2024-10-27 02:30:00", "Europe/Berlin") == datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    with pytest.raises(InvalidInputError, match="'Europe/Berlinn'"):
        hour("2024-10-27 02:30:00", "Europe/Berlinn")


@pytest.mark.protocol("PART-03", "B-50")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1900-01-01", naive(1900, 1, 1)),
        ("1969-12-31 23:59:59.5", naive(1969, 12, 31, 23, 59, 59, 500000)),
        ("2024-03-10T02:30:00", naive(2024, 3, 10, 2, 30)),
        ("2024-03-10T02:30:00Z", naive(2024, 3, 10, 2, 30)),
        ("0001-01-01 00:00:00", naive(1, 1, 1)),
    ],
)
def test_timestamps_without_a_zone(text: str, value: datetime) -> None:
    kind = PrimitiveType("timestamp_ntz")
    assert parse_value(text, kind, time_zone="Asia/Tokyo") == value


@pytest.mark.protocol("B-50")
@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("decimal(15,2)", "-1", Decimal("-1.00")),
        ("decimal(10,5)", "1.10", Decimal("1.10000")),
        ("double", "7", 7.0),
        ("long", "-7", -7),
        ("timestamp_ntz", "1900-01-01", naive(1900, 1, 1)),
    ],
)
def test_widened_columns_keep_their_old_texts(name: str, text: str, value: object) -> None:
    assert parse_value(text, PrimitiveType(name), time_zone="UTC") == value


@pytest.mark.protocol("PART-04", "D-09")
def test_binary_is_utf_8() -> None:
    assert parse_value("\x01\x02\x03", PrimitiveType("binary"), time_zone="UTC") == b"\x01\x02\x03"
    assert parse_value("é", PrimitiveType("binary"), time_zone="UTC") == "é".encode()


@pytest.mark.protocol("D-65")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("integer", "abc"),
        ("integer", "1.0"),
        ("integer", " 1"),
        ("integer", "1\n"),
        ("integer", "0x10"),
        ("integer", "2147483648"),
        ("long", "\u0661"),
        ("double", "1.0f"),
        ("double", "0x1p3"),
        ("decimal(5,2)", "1.505"),
        ("decimal(5,2)", "1234.00"),
        ("decimal(5,2)", "NaN"),
        ("decimal(38,18)", "460331602691505663798073246748"),
        ("decimal(38,18)", "4603316026915056637980732467.48e2"),
        ("decimal(38,2)", "1" + "0" * 80),
        ("boolean", "1"),
        ("boolean", "yes"),
        ("date", "2024-02-30"),
        ("date", "2024-01-31T00:00:00"),
        ("date", "+2024-01-01"),
        ("date", "044-01-01"),
        ("date", "+5881580-07-12"),
        ("date", "-5877641-06-22"),
        ("date", "20240131"),
        ("timestamp", "2024-02-30 00:00:00"),
        ("timestamp", "2024-01-01 24:00:00"),
        ("timestamp", "2024-01-01 00:00:60"),
        ("timestamp", "2024-01-01 00:00:00.1234567"),
        ("timestamp", "2024-01-01 00:00:00 Europe/Berlin"),
        ("timestamp", "2024-01-01 00:00:00+99:00"),
        ("timestamp", "+294247-01-10 04:00:54.775808"),
        ("timestamp", "-290308-12-21 20:59:05.224191+01:00"),
        ("timestamp", "1704067200"),
        ("timestamp_ntz", "2024-01-01 00:00:00+01:00"),
        ("timestamp_ntz", "now"),
        ("void", "x"),
    ],
)
def test_other_texts_are_corruption(name: str, text: str) -> None:
    with pytest.raises(InvalidPartitionValueError, match="of column 'p': expected"):
        parse_value(text, PrimitiveType(name), column="p", time_zone="UTC")
    with pytest.raises(InvalidPartitionValueError) as caught:
        parse_column(pa.array(["", text, None]), PrimitiveType(name), column="p", time_zone="UTC")
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("kind", [ArrayType("long"), VariantType()])
def test_other_types_are_no_partition_columns(kind: Any) -> None:
    with pytest.raises(InvalidPartitionValueError, match="expected"):
        parse_value("[1]", kind, time_zone="UTC")


def test_unknown_types_are_refused() -> None:
    with pytest.raises(UnsupportedTypeError):
        parse_value("x", UnknownType("geometry"), time_zone="UTC")


def test_columns_in_chunks() -> None:
    texts = pa.chunked_array([["1", ""], ["2", "1"], []], pa.string())
    column = parse_column(texts, PrimitiveType("integer"), time_zone="UTC")
    assert column.equals(pa.array([1, None, 2, 1], pa.int32()))


@pytest.mark.protocol("CM-09")
def test_values_are_looked_up_by_key() -> None:
    kind = pa.map_(pa.string(), pa.string())
    maps = pa.array(
        [[("a", "1"), ("b", None)], None, [("b", "2")], [], [("b", "x"), ("b", "y")]], kind
    )
    assert extract(maps, "b").to_pylist() == [None, None, "2", None, "y"]
    assert extract(maps.slice(2), "b").to_pylist() == ["2", None, "y"]
    assert extract(pa.chunked_array([maps, maps]), "a").to_pylist() == ["1", *[None] * 4] * 2
    nothing: Any = pa.chunked_array([maps.slice(0, 0)])
    assert extract(nothing, "a").to_pylist() == []
    large = pa.array([[("a", "1")]], pa.map_(pa.large_string(), pa.large_string()))
    assert extract(large, "a").equals(pa.array(["1"]))


@pytest.mark.protocol("D-38", "PART-01")
def test_keys_in_another_case_than_the_schema() -> None:
    assert value_of({"P": "a", "p": "b"}, "p") == "b"
    assert value_of({"P": "a"}, "p") == "a"
    assert value_of({"P": "a", "p": None}, "p") is None
    assert value_of({"q": "a"}, "p") is None
    with pytest.raises(InvalidPartitionValueError, match=r"found \['PP', 'Pp'\]"):
        value_of({"PP": "a", "Pp": "b"}, "pp")
    kind = pa.map_(pa.string(), pa.string())
    maps = pa.array([[("p", "a")], [("P", "b")], [("p", None), ("P", "c")], [], None], kind)
    assert extract(maps, "p").to_pylist() == ["a", "b", None, None, None]
    assert extract(pa.chunked_array([maps]), "P").to_pylist() == ["a", "b", "c", None, None]
    assert extract(maps.slice(1, 2), "p").to_pylist() == ["b", None]
