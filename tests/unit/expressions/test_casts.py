"""`CAST` of Arrow arrays by Spark's ANSI rules."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import parse_type
from deltalog.expressions.casts import cast
from deltalog.schema import to_arrow_type
from deltalog.schema.types import VOID

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)


def converted(source: str, to: str, *values: Any, is_try: bool = False) -> list[Any]:
    kind = parse_type(source)
    datum = pa.array(values, to_arrow_type(kind))
    found: Any = cast(datum, kind, parse_type(to), is_try=is_try)
    assert found.type == to_arrow_type(parse_type(to))
    result: list[Any] = found.to_pylist()
    return result


@pytest.mark.parametrize(
    ("source", "to", "value", "expected"),
    [
        ("string", "int", " 7 ", 7),
        ("string", "boolean", "T", True),
        ("string", "date", "2024-1-2", dt.date(2024, 1, 2)),
        ("string", "double", "1e2", 100.0),
        ("string", "decimal(5,1)", "1.25", Decimal("1.3")),
        ("double", "int", 1.9, 1),
        ("double", "int", -1.9, -1),
        ("int", "boolean", 2, True),
        ("int", "string", 7, "7"),
        ("boolean", "int", True, 1),
        ("boolean", "string", False, "false"),
        ("int", "decimal(5,2)", 3, Decimal("3.00")),
        ("decimal(5,2)", "int", Decimal("-1.99"), -1),
        ("decimal(5,2)", "decimal(5,1)", Decimal("1.25"), Decimal("1.3")),
        ("date", "timestamp", dt.date(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        ("timestamp", "date", NOON, dt.date(2024, 1, 1)),
        ("timestamp", "bigint", dt.datetime(1970, 1, 1, 0, 1, tzinfo=dt.UTC), 60),
        ("int", "timestamp", 60, dt.datetime(1970, 1, 1, 0, 1, tzinfo=dt.UTC)),
        ("array<int>", "array<string>", [1, None], ["1", None]),
    ],
)
def test_values_are_converted_and_null_stays_null(
    source: str, to: str, value: object, expected: object
) -> None:
    assert converted(source, to, value, None, value) == [expected, None, expected]
    assert converted(source, to) == []


@pytest.mark.parametrize(
    ("source", "to", "value", "shown"),
    [
        ("string", "int", "x", "'x'"),
        ("string", "int", "1.5", "'1.5'"),
        ("string", "tinyint", "128", "'128'"),
        ("string", "boolean", "maybe", "'maybe'"),
        ("string", "date", "2024-02-30", "'2024-02-30'"),
        ("int", "tinyint", 128, "128"),
        ("double", "int", 1e10, "1.0E10"),
        ("double", "bigint", float("nan"), "NaN"),
        ("int", "decimal(3,2)", 10, "10"),
    ],
)
def test_values_that_cannot_be_converted_are_an_error_or_null(
    source: str, to: str, value: object, shown: str
) -> None:
    with pytest.raises(InvalidInputError, match=rf"cannot cast {shown} to "):
        converted(source, to, None, value)
    assert converted(source, to, None, value, is_try=True) == [None, None]


def test_casts_that_sql_lacks() -> None:
    for source, to in (("date", "int"), ("int", "date"), ("array<int>", "int")):
        with pytest.raises(InvalidInputError, match="SQL has no such cast"):
            converted(source, to, None)


def test_constants_and_nothing() -> None:
    long = parse_type("bigint")
    constant: Any = pa.scalar("7")
    found: Any = cast(constant, parse_type("string"), long)
    assert (found.as_py(), found.type) == (7, pa.int64())
    void: Any = cast(pa.nulls(2), VOID, long)
    assert (void.to_pylist(), void.type) == ([None, None], pa.int64())
    same = pa.array([1])
    assert cast(same, long, long) is same
