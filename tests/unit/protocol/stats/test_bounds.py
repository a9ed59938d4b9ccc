"""Bounds to rely on, whatever writers cut or round."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from deltalog.expressions import col
from deltalog.protocol.stats.ranges import correction
from deltalog.schema import Field, StructType
from tests.support.skipping import FakeTable, keep, plan, stats


@pytest.mark.protocol("D-12", "STAT-06")
def test_a_cut_maximum_covers_what_was_cut() -> None:
    low, high = f'"{"a" * 32}"', f'"{"a" * 32}\\u007f"'
    assert keep(col("s") == "a" * 32 + "z", stats("s", low, high)) == [True]
    assert keep(col("s").starts_with("a" * 32 + "z"), stats("s", low, high)) == [True]
    assert keep(col("s") == "a" * 31 + "b", stats("s", low, high)) == [False]


@pytest.mark.protocol("STAT-07", "D-15")
@pytest.mark.parametrize("column", ["t", "n"])
def test_a_timestamps_maximum_is_one_millisecond_later(column: str) -> None:
    zone = "Z" if column == "t" else ""
    text = stats(column, f'"2024-01-01T00:00:00.955{zone}"', f'"2024-01-01T00:00:57.955{zone}"')
    assert keep(f"{column} > '2024-01-01 00:00:57.955123'", text) == [True]
    assert keep(f"{column} >= '2024-01-01 00:00:57.956'", text) == [True]
    assert keep(f"{column} > '2024-01-01 00:00:57.956'", text) == [False]
    assert keep(f"{column} < '2024-01-01 00:00:00.955'", text) == [False]


@pytest.mark.protocol("D-15")
def test_the_last_timestamp_has_no_later_one() -> None:
    skipping = plan(col("t") > datetime(2024, 1, 1, tzinfo=UTC))
    assert skipping is not None
    last = pa.array([(1 << 63) - 1, (1 << 63) - 1000, 0, None]).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"maxValues": pa.StructArray.from_arrays([last], names=["t"])})
    assert skipping.keep(table).to_pylist() == [True, True, False, True]


@pytest.mark.protocol("D-11")
def test_longs_beyond_a_double_are_exact() -> None:
    text = stats("x", "9007199254740993", "9007199254740993")
    assert keep("x = 9007199254740993", text) == [True]
    assert keep("x = 9007199254740992", text) == [False]


DECIMALS = FakeTable(
    StructType(
        [
            Field("small", "decimal(9,2)"),
            Field("d", "decimal(18,2)"),
            Field("big", "decimal(38,10)"),
            Field("whole", "decimal(38,0)"),
        ]
    )
)


@pytest.mark.protocol("D-10", "STAT-14")
def test_decimals_are_compared_digit_by_digit() -> None:
    low = "12345678901234567890.0123456789"
    text = stats("big", low, low)
    assert keep(col("big") < Decimal(low), text, table=DECIMALS) == [False]
    assert keep(col("big") == Decimal(low), text, table=DECIMALS) == [True]
    assert keep(col("big") > Decimal(low), text, table=DECIMALS) == [False]
    assert keep("small > 5.5", stats("small", "1.10", "5.50"), table=DECIMALS) == [False]
    assert keep("small >= 5.5", stats("small", "1.10", "5.50"), table=DECIMALS) == [True]


@pytest.mark.protocol("D-10")
def test_decimals_that_went_through_a_double_lose_no_row() -> None:
    # What deltalake 1.6.6 writes for 1234567890123456.11 and .77.
    text = stats("d", "1234567890123456.2", "1234567890123456.8")
    assert keep(col("d") == Decimal("1234567890123456.11"), text, table=DECIMALS) == [True]
    assert keep(col("d") == Decimal("1234567890123450.00"), text, table=DECIMALS) == [False]
    # It cuts whole decimals beyond int64 to its limits.
    text = stats("whole", "-9223372036854775808", "9223372036854775807")
    assert keep(col("whole") > Decimal(10) ** 20, text, table=DECIMALS) == [True]
    assert keep(col("whole") > Decimal(10) ** 20, stats("whole", "1", "5"), table=DECIMALS) == [
        False
    ]
    # 123456789012345678901 as a double has other last digits.
    text = stats("whole", "123456789012345683968", "123456789012345683968")
    exact = Decimal(123456789012345678901)
    assert keep(col("whole") == exact, text, table=DECIMALS) == [True]
    most = "9" * 38
    assert keep(col("whole") >= 0, stats("whole", f"-{most}", most), table=DECIMALS) == [True]


def test_collations_do_not_order_by_bytes() -> None:
    metadata = {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}
    table = FakeTable(StructType([Field("s", "string", metadata=metadata)]))
    assert keep("s > 'b'", stats("s", '"A"', '"B"'), table=table) == [True]
    assert keep("s IS NULL", stats("s", '"A"', '"B"'), table=table) == [False]


@pytest.mark.parametrize("digits", [29, 38])
@pytest.mark.parametrize("scale", [0, 5])
def test_the_largest_decimals_bound_themselves(digits: int, scale: int) -> None:
    kind = pa.decimal128(digits, scale)
    largest = Decimal((0, (9,) * digits, -scale))
    corrected = correction(Field("d", f"decimal({digits},{scale})"))
    lower = corrected.lower(pa.array([largest.copy_negate()], kind))[0].as_py()
    upper = corrected.upper(pa.array([largest], kind))[0].as_py()
    assert (lower, upper) == (largest.copy_negate(), largest)
