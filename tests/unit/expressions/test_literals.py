from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    Literal,
    col,
    evaluate,
    lit,
    parse_sql,
    parse_type,
    resolve,
    to_sql,
)
from deltalog.expressions.literals import (
    array_of,
    from_scalar,
    natural_type,
    plain_value,
    to_scalar,
)
from deltalog.schema import Field, StructType, to_arrow_type

INTERVAL: Any = pa.MonthDayNano  # the stubs know other arguments

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
        (dt.timedelta(days=1), "interval day to second"),
    ],
)
def test_values_have_the_type_that_spark_gives_them(value: Any, sql: str) -> None:
    assert plain_value(value)[1] == parse_type(sql)


def test_lists_take_the_common_type_of_their_items() -> None:
    assert str(natural_type([1, None, 1 << 40])) == "array<long>"
    with pytest.raises(InvalidInputError, match="different types"):
        natural_type([1, b"x"])


@pytest.mark.parametrize(
    "value", [Decimal("NaN"), Decimal("Infinity"), Decimal(10) ** 38, 10**40, object(), {1, 2}]
)
def test_values_that_sql_does_not_have(value: object) -> None:
    with pytest.raises(InvalidInputError, match="cannot use"):
        natural_type(value)


def test_a_value_of_another_type_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="'x' is not a value of type integer"):
        resolve(Literal("x", parse_type("int")), StructType())
    with pytest.raises(InvalidInputError, match="is out of Python"):
        from_scalar(pa.scalar([10**7], pa.list_(pa.date32())))


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


NANOS = 1_700_000_000_123_456_789
MICROS = dt.datetime(2023, 11, 14, 22, 13, 20, 123_456)  # noqa: DTZ001  # naive on purpose


@pytest.mark.parametrize(
    ("value", "plain", "kind"),
    [
        (pd.Timestamp(NANOS), NANOS, "timestamp_nanos_ntz"),
        (pd.Timestamp(NANOS, tz="Asia/Tokyo"), NANOS, "timestamp_nanos"),
        (pd.Timestamp(-1), -1, "timestamp_nanos_ntz"),
        (np.datetime64(NANOS, "ns"), NANOS, "timestamp_nanos_ntz"),
        (pa.scalar(NANOS, pa.timestamp("ns")), NANOS, "timestamp_nanos_ntz"),
        (pa.scalar(NANOS, pa.timestamp("ns", "Asia/Tokyo")), NANOS, "timestamp_nanos"),
        (np.datetime64(NANOS - 789, "ns"), MICROS, "timestamp_ntz"),
        (pd.Timestamp(NANOS - 789), MICROS, "timestamp_ntz"),
        (pa.scalar(NANOS - 789, pa.timestamp("ns")), MICROS, "timestamp_ntz"),
        (pa.scalar(NANOS // 1000, pa.timestamp("us")), MICROS, "timestamp_ntz"),
        (np.timedelta64(5_000, "ns"), dt.timedelta(microseconds=5), "interval day to second"),
        (np.timedelta64(3, "D"), dt.timedelta(days=3), "interval day to second"),
        (pd.Timedelta(days=3), dt.timedelta(days=3), "interval day to second"),
        (pa.scalar(7, pa.duration("s")), dt.timedelta(seconds=7), "interval day to second"),
        (pa.scalar(None, pa.duration("s")), None, "interval day to second"),
        (np.timedelta64(14, "M"), 14, "interval year to month"),
        (np.timedelta64(-2, "Y"), -24, "interval year to month"),
        (INTERVAL([14, 0, 0]), 14, "interval year to month"),
        (pa.scalar(INTERVAL([14, 0, 0])), 14, "interval year to month"),
        (
            INTERVAL([0, 1, -5_000]),
            dt.timedelta(days=1, microseconds=-5),
            "interval day to second",
        ),
        (pa.scalar(None, pa.month_day_nano_interval()), None, "void"),
        (pd.NaT, None, "void"),
        (pd.NA, None, "void"),
        (np.datetime64("NaT", "ns"), None, "void"),
    ],
)
def test_moments_and_spans_lose_nothing(value: Any, plain: Any, kind: str) -> None:
    found, data_type = plain_value(value)
    assert str(data_type) == kind
    assert found is plain or found == plain


@pytest.mark.parametrize(
    "value",
    [
        pd.Timedelta(nanoseconds=1),
        np.timedelta64(1, "ns"),
        np.datetime64(1, "ps"),
        np.timedelta64(1, "ps"),
        pa.scalar(1, pa.duration("ns")),
        INTERVAL([0, 0, 1]),
    ],
)
def test_what_is_finer_than_its_type_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="whole microseconds"):
        plain_value(value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (np.datetime64(10**17, "D"), "a date of 32 bits"),
        (np.datetime64(10**18, "s"), "64 bits of microseconds"),
        (pa.scalar(10**15, pa.timestamp("s", "UTC")), "64 bits of microseconds"),
        (pa.scalar(2**62, pa.timestamp("ms")), r"timestamp\[ms\] 4611"),
        (pa.scalar(86_400_000 * 2**31, pa.date64()), "lose data"),
        (pa.scalar(1, pa.date64()), r"date64\[ms\] 1 in an expression: .* lose data"),
        (np.timedelta64(10**9 + 1, "D"), "less than a billion days"),
        (pa.scalar(2**62, pa.duration("s")), "less than a billion days"),
        (INTERVAL([0, 2**31 - 1, 0]), "less than a billion days"),
        (np.timedelta64(2**31, "M"), "32 bits"),
        (np.timedelta64(-(2**30), "Y"), "32 bits"),
    ],
)
def test_what_python_or_the_type_cannot_hold_is_told(value: Any, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        plain_value(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.datetime64("20000-01-01"), "DATE'+20000-01-01'"),
        (np.datetime64("12000", "Y"), "DATE'+12000-01-01'"),
        (np.datetime64("-0100-01-01T00:00", "s"), "TIMESTAMP_NTZ'-0100-01-01 00:00:00.000000'"),
        (np.datetime64(10**18, "us"), "TIMESTAMP_NTZ'+33658-09-27 01:46:40.000000'"),
        (pa.scalar(10**18, pa.timestamp("us")), "TIMESTAMP_NTZ'+33658-09-27 01:46:40.000000'"),
        (pa.scalar(10**12, pa.timestamp("s", "UTC")), "TIMESTAMP'+33658-09-27 01:46:40.000000Z'"),
        (pa.scalar(-(10**7), pa.date32()), "DATE'-25410-12-06'"),
        (pa.scalar(2**31 - 1, pa.date32()), "DATE'+5881580-07-11'"),
        (pa.scalar(86_400_000 * 2_932_897, pa.date64()), "DATE'+10000-01-01'"),
    ],
)
def test_moments_of_years_that_python_does_not_have(value: Any, expected: str) -> None:
    literal = Literal(*plain_value(value))
    assert to_sql(literal) == expected
    again = resolve(parse_sql(expected), StructType())
    assert again.same_as(literal)
    assert literal.type is not None
    if isinstance(value, pa.Scalar):
        kind = to_arrow_type(literal.type)
        assert to_scalar(literal.value, literal.type) == value.cast(kind)


def test_an_interval_is_of_months_or_of_days() -> None:
    with pytest.raises(InvalidInputError, match="either months, or days"):
        plain_value(INTERVAL([1, 1, 0]))


def test_scalars_of_nanoseconds_are_numbers() -> None:
    kind = pa.timestamp("ns", "UTC")
    assert from_scalar(pa.scalar(NANOS, kind)) == NANOS
    assert from_scalar(pa.scalar(None, kind)) is None
    assert to_scalar(NANOS, parse_type("timestamp_nanos")) == pa.scalar(NANOS, kind)
    options = [pa.scalar(NANOS, kind), pa.scalar(-1, kind)]
    assert array_of(options, kind) == pa.array([NANOS, -1], kind)
