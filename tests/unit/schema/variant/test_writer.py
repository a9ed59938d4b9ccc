from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from deltalog.errors import InvalidInputError
from deltalog.schema.variant import decode, encode, to_json

EMPTY = bytes.fromhex("010000")


ONE_ID = UUID("f24f9b64-81fa-49d1-b74e-8c09a6e31c56")


@pytest.mark.protocol("B-51")
@pytest.mark.parametrize(
    ("value", "data", "json"),
    [
        (None, "00", "null"),
        (True, "04", "true"),
        (False, "08", "false"),
        (-1, "0cff", "-1"),
        (300, "102c01", "300"),
        (70000, "1470110100", "70000"),
        (2**40, "180000000000010000", "1099511627776"),
        (1.5, "1c000000000000f83f", "1.5"),
        (float("inf"), "1c000000000000f07f", '"Infinity"'),
        (Decimal("-1.50"), "20026affffff", "-1.5"),
        (Decimal("12345678901.5"), "2401171a99be1c000000", "12345678901.5"),
        (Decimal(10**20), "2800000010632d5ec76b05" + "00" * 7, str(10**20)),
        (date(1969, 12, 31), "2cffffffff", '"1969-12-31"'),
        (
            datetime(1969, 12, 31, 23, 59, 59, 500000, UTC),
            "30e05ef8ffffffffff",
            '"1969-12-31 23:59:59.5+00:00"',
        ),
        (datetime(1970, 1, 1), "340000000000000000", '"1970-01-01 00:00:00"'),  # noqa: DTZ001
        (b"\x01\x02", "3c020000000102", '"AQI="'),
        ("é", "09c3a9", '"é"'),
        ("", "01", '""'),
        (time(0, 0, 1, 5), "4445420f0000000000", '"00:00:01.000005"'),
        (ONE_ID, "50f24f9b6481fa49d1b74e8c09a6e31c56", f'"{ONE_ID}"'),
        ([], "030000", "[]"),
        ([1, "a"], "03020002040c010561", '[1,"a"]'),
        ({}, "020000", "{}"),
    ],
)
def test_every_type_in_its_bytes(value: object, data: str, json: str) -> None:
    metadata, encoded = encode(value)
    assert (metadata, encoded.hex()) == (EMPTY, data)
    found = decode(metadata, encoded)
    assert found == value
    assert type(found) is type(value)
    assert to_json(metadata, encoded) == json


@pytest.mark.protocol("B-51")
def test_an_object_in_its_bytes() -> None:
    metadata, value = encode({"b": 2, "a": [{"b": None}]})
    assert metadata.hex() == "11020001026162"
    assert decode(metadata, value) == {"a": [{"b": None}], "b": 2}
    assert to_json(metadata, value) == '{"a":[{"b":null}],"b":2}'
    assert value[0] & 3 == 2
    assert value[1] == 2
    assert value[2:4] == b"\x00\x01"


@pytest.mark.protocol("B-51")
def test_many_and_large_parts_take_wider_numbers() -> None:
    value: dict[str, Any] = {f"key{at:04d}": "x" * 70 for at in range(300)}
    value["list"] = list(range(300))
    metadata, encoded = encode(value)
    assert decode(metadata, encoded) == value
    assert encoded[0] >> 2 & 0x10  # is_large
    assert metadata[0] >> 6 == 1  # two bytes an offset


def test_integers_beyond_64_bits_are_decimals() -> None:
    assert decode(*encode(-(10**20))) == Decimal(-(10**20))


def test_equal_values_have_equal_bytes() -> None:
    assert encode({"a": 1, "b": 2}) == encode({"b": 2, "a": 1})


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, 10**38, Decimal("1E-39"), Decimal("NaN"), "\ud800", {"a": {1, 2}}],
)
def test_what_has_no_variant(value: object) -> None:
    with pytest.raises(InvalidInputError, match="cannot make a variant"):
        encode(value)


def test_nesting_without_end_is_an_error() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InvalidInputError, match="too deeply"):
        encode(deep)
