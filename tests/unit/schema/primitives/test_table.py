"""The table of primitive types, looked up by every name that they have."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from deltalog.schema.primitives.table import (
    PRIMITIVES,
    primitive_in_sql,
    primitive_named,
    primitive_of_arrow,
    worded_literal,
)

NOON = dt.datetime(2024, 7, 1, 12)  # noqa: DTZ001  # a wall clock


def test_the_types_of_the_protocol_are_there() -> None:
    assert set(PRIMITIVES) == {
        "string", "byte", "short", "integer", "long", "float", "double", "decimal", "boolean",
        "binary", "date", "timestamp", "timestamp_ntz", "void", "geometry", "geography",
        "timestamp_nanos", "timestamp_nanos_ntz", "interval year to month",
        "interval day to second",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("long", "long"),
        ("null", "void"),
        ("timestampNtz", "timestamp_ntz"),
        ("bigint", None),
        ("LONG", None),
        ("", None),
    ],
)
def test_names_in_logs(name: str, expected: str | None) -> None:
    found = primitive_named(name)
    assert (found and found.name) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("bigint", "long"),
        ("Int", "integer"),
        ("NUMERIC", "decimal"),
        ("real", "float"),
        ("timestamp_ltz", "timestamp"),
        ("bool", "boolean"),
        ("integer", None),
        ("text", None),
    ],
)
def test_words_of_sql(word: str, expected: str | None) -> None:
    found = primitive_in_sql(word)
    assert (found and found.name) == expected


@pytest.mark.parametrize(
    ("arrow", "name", "parameters"),
    [
        (pa.uint8(), "short", ()),
        (pa.uint64(), "long", ()),
        (pa.float16(), "float", ()),
        (pa.string_view(), "string", ()),
        (pa.binary(7), "binary", ()),
        (pa.date64(), "date", ()),
        (pa.timestamp("ns"), "timestamp_ntz", ()),
        (pa.timestamp("s", "Europe/Berlin"), "timestamp", ()),
        (pa.decimal256(12, 3), "decimal", ("12", "3")),
        (pa.null(), "void", ()),
    ],
)
def test_values_of_arrow_are_stored_as(
    arrow: pa.DataType, name: str, parameters: tuple[str, ...]
) -> None:
    found = primitive_of_arrow(arrow)
    assert found is not None
    assert (found[0].name, found[1]) == (name, parameters)


def test_what_delta_has_no_type_for() -> None:
    for arrow in (pa.time64("us"), pa.duration("s"), pa.decimal256(60, 50), pa.list_(pa.int8())):
        assert primitive_of_arrow(arrow) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (dt.date(2024, 1, 2), ("date", "2024-01-02")),
        (NOON, ("timestamp_ntz", "2024-07-01 12:00:00")),
        (NOON.replace(tzinfo=dt.UTC), ("timestamp", "2024-07-01 12:00:00Z")),
        (1, None),
        ("2024-01-02", None),
    ],
)
def test_literals_that_sql_names_the_type_of(
    value: object, expected: tuple[str, str] | None
) -> None:
    found = worded_literal(value)
    assert (found and (found[0].name, found[1])) == expected
