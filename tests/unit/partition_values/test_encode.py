from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.partition_values import (
    encode_value,
    escape_directory,
    hive_directory,
    parse_hive_directory,
)
from deltalog.schema import ArrayType, PrimitiveType


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
        ("timestamp", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
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


def test_a_naive_datetime_is_no_instant() -> None:
    moment: Any = datetime(2024, 7, 1, 12)  # noqa: DTZ001
    with pytest.raises(InvalidInputError, match="without a time zone"):
        encode_value(moment, PrimitiveType("timestamp"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a b", "a b"),
        (" le", " le"),
        ("*^|<>", "%2A%5E|<>"),
        ("[x]{y}", "%5Bx%5D%7By}"),
        ("a#b?c&d", "a%23b%3Fc&d"),
        ("a%20b", "a%2520b"),
        ("a/b=c:d", "a%2Fb%3Dc%3Ad"),
        ("\x01\x7f\"'\\", "%01%7F%22%27%5C"),
        ("ünï😀", "ünï😀"),
    ],
)
def test_directories_are_escaped_as_spark_escapes_them(text: str, name: str) -> None:
    assert escape_directory(text) == name
    assert parse_hive_directory(f"p={name}") == {"p": text}


def test_directories() -> None:
    values: dict[str, str | None] = {"a=": "x/y", "b": None, "c": ""}
    directory = hive_directory(["a=", "b", "c"], values)
    assert directory == ("a%3D=x%2Fy/b=__HIVE_DEFAULT_PARTITION__/c=__HIVE_DEFAULT_PARTITION__")
    assert parse_hive_directory(f"part/{directory}") == {"a=": "x/y", "b": None, "c": None}
