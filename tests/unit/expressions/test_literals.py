from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import Literal, col, evaluate, lit, parse_type, resolve
from deltalog.expressions.literals import from_scalar, natural_type, plain_value, to_scalar
from deltalog.schema import Field, StructType

LONG = StructType([Field("n", parse_type("bigint"))])


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (None, "void"),
        (True, "boolean"),
        ((1 << 31) - 1, "int"),
        (-(1 << 31), "int"),
        (1 << 31, "bigint"),
        (-(1 << 63), "bigint"),
        (1 << 63, "decimal(19,0)"),
        (0.5, "double"),
        (Decimal("1.50"), "decimal(3,2)"),
        (Decimal("0.001"), "decimal(3,3)"),
        (Decimal("1E+3"), "decimal(4,0)"),
        ("x", "string"),
        (b"x", "binary"),
        (dt.date(2024, 1, 1), "date"),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "timestamp"),
        (dt.datetime(2024, 1, 1), "timestamp_ntz"),  # noqa: DTZ001  # naive on purpose
        ({"a": 1}, "struct<a: int>"),
        (pa.scalar(5, pa.int8()), "tinyint"),
        (pa.scalar(5, pa.uint8()), "smallint"),
        (pa.scalar("x", pa.large_string()), "string"),
        (np.int64(5), "int"),
        (np.float32(0.5), "double"),
        (np.bool_(True), "boolean"),  # a value
        (np.datetime64("2024-01-01"), "date"),
    ],
)
def test_values_have_the_type_that_spark_gives_them(value: Any, sql: str) -> None:
    assert plain_value(value)[1] == parse_type(sql)


def test_lists_take_the_common_type_of_their_items() -> None:
    assert str(natural_type([1, None, 1 << 40])) == "array<long>"
    with pytest.raises(InvalidInputError, match="types differ"):
        natural_type([1, b"x"])


@pytest.mark.parametrize(
    "value", [Decimal("NaN"), Decimal("Infinity"), Decimal(10) ** 38, 10**40, object(), {1, 2}]
)
def test_values_that_sql_does_not_have(value: object) -> None:
    with pytest.raises(InvalidInputError, match="cannot use"):
        natural_type(value)


def test_a_value_of_another_type_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="'x' is no value of type integer"):
        resolve(Literal("x", parse_type("int")), StructType())
    with pytest.raises(InvalidInputError, match="outside of what Python can hold"):
        from_scalar(pa.scalar(10**7, pa.date32()))


def test_constants_go_to_arrow_and_back() -> None:
    moment = dt.datetime(2024, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert from_scalar(to_scalar(moment, parse_type("timestamp"))) == moment
    assert from_scalar(to_scalar(moment, parse_type("timestamp"))).tzinfo is dt.UTC


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        (float(1 << 53), [True, False, False]),
        (9007199254740993.0, [True, False, False]),
        (Decimal(9007199254740993), [False, True, False]),
        (float("nan"), [False, False, False]),
        (1 << 70, [False, False, False]),
    ],
)
def test_a_long_column_is_compared_without_losing_digits(value: Any, rows: list[bool]) -> None:
    data = pa.RecordBatch.from_pydict({"n": pa.array([1 << 53, (1 << 53) + 1, 0], pa.int64())})
    found = evaluate(resolve(col("n") == lit(value), LONG), data).to_pylist()
    # Spark compares a long with a double as doubles, where 2^53 + 1 is 2^53.
    if isinstance(value, float) and value == float(1 << 53):
        rows = [True, True, False]
    assert found == rows
