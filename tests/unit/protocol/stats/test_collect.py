from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.protocol.stats.collect import StatsCollector, encode_stats
from deltalog.schema import ArrayType, Field, PrimitiveType, StructType, to_arrow_type


def collect(data_type: str, *batches: pa.Array[Any]) -> tuple[Any, Any, int]:
    collector = StatsCollector(StructType([Field("x", data_type)]))
    for values in batches:
        collector.update(pa.record_batch([values], names=["x"]))
    stats = collector.finish()
    low, high = (stats[kind].get("x") for kind in ("minValues", "maxValues"))
    return low, high, stats["nullCount"]["x"]


@pytest.mark.protocol("STAT-01", "STAT-11", "STAT-13", "STAT-08")
def test_statistics_of_a_file() -> None:
    schema = StructType(
        [
            Field("a", "long"),
            Field("s", StructType([Field("y", "string"), Field("l", ArrayType("long"))])),
            Field("b", "boolean"),
            Field("bin", "binary"),
            Field("added later", "string"),
        ]
    )
    table = pa.table(
        {
            "a": [1, None, 3],
            "s": [{"y": "u", "l": [1]}, None, {"y": "v", "l": None}],
            "b": [True, None, None],
            "bin": [b"x", None, None],
        }
    )
    collector = StatsCollector(schema, tight_bounds=True)
    collector.update(table)
    collector.update(table.slice(0, 0))
    assert collector.num_records == 3
    assert encode_stats(collector.finish()) == (
        '{"numRecords":3,"minValues":{"a":1,"s":{"y":"u"}},"maxValues":{"a":3,"s":{"y":"v"}},'
        '"nullCount":{"a":1,"s":{"y":1,"l":2},"b":2,"bin":2,"added later":3},"tightBounds":true}'
    )


def test_batches_add_up() -> None:
    assert collect("long", pa.array([5, None]), pa.array([2]), pa.array([None, 9])) == (2, 9, 2)


@pytest.mark.parametrize("place", [0, 1])
def test_texts_that_are_no_utf_8_have_no_bounds(place: int) -> None:
    batches: list[pa.Array[Any]] = [pa.array(["b"]), pa.array(["c"])]
    batches.insert(place, pa.array([b"\xff", None]).cast(pa.binary()).view(pa.string()))
    assert collect("string", *batches) == (None, None, 1)
    merged = StatsCollector(StructType([Field("x", "string")]))
    for values in batches:
        one = StatsCollector(StructType([Field("x", "string")]))
        one.update(pa.record_batch([values], names=["x"]))
        merged.merge(one)
    told = '{"numRecords":4,"minValues":{},"maxValues":{},"nullCount":{"x":1}}'
    assert encode_stats(merged.finish()) == told


@pytest.mark.protocol("D-13")
def test_nan_is_the_greatest() -> None:
    low, high, _ = collect("double", pa.array([1.0, math.nan]), pa.array([-1.0]))
    assert low == -1.0
    assert math.isnan(high)
    low, high, _ = collect("float", pa.array([math.nan, None], pa.float32()))
    assert math.isnan(low)
    assert math.isnan(high)


@pytest.mark.protocol("D-14")
def test_infinities_and_zeros() -> None:
    assert collect("double", pa.array([math.inf, -math.inf])) == (-math.inf, math.inf, 0)


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([-0.0, 0.0], "-0.0", "0.0"),
        ([0.0, -0.0], "-0.0", "0.0"),
        ([0.0], "-0.0", "0.0"),
        ([-0.0, None], "-0.0", "0.0"),
        ([-1.0, -0.0], "-1.0", "0.0"),
        ([0.0, 1.0], "-0.0", "1.0"),
        ([0.0, math.nan], "-0.0", '"NaN"'),
    ],
)
def test_both_zeros_lie_between_bounds_of_zero(
    kind: str, values: list[float | None], low: str, high: str
) -> None:
    collector = StatsCollector(StructType([Field("s", StructType([Field("x", kind)]))]))
    rows = pa.array(
        [{"x": value} for value in values], pa.struct([("x", to_arrow_type(PrimitiveType(kind)))])
    )
    collector.update(pa.record_batch([rows], names=["s"]))
    bounds = f'"minValues":{{"s":{{"x":{low}}}}},"maxValues":{{"s":{{"x":{high}}}}}'
    assert bounds in encode_stats(collector.finish())


def test_floats_are_written_with_the_digits_of_a_float() -> None:
    assert collect("float", pa.array([0.1, 0.3], pa.float32()))[:2] == (0.1, 0.3)


@pytest.mark.protocol("STAT-06", "D-12", "D-16")
def test_long_texts_are_cut_and_compared_by_their_bytes() -> None:
    assert collect("string", pa.array(["b" * 5000, "a" * 5000]))[:2] == (
        "a" * 32,
        "b" * 32 + "\x7f",
    )
    assert collect("string", pa.array(["\uffff", "😀"]))[:2] == ("\uffff", "😀")
    assert collect("string", pa.array(["\U0010ffff" * 40]))[:2] == ("\U0010ffff" * 32, None)


@pytest.mark.protocol("STAT-07", "D-15")
def test_times_and_dates() -> None:
    aware = pa.array([-1, 1_700_000_000_123_456], pa.timestamp("us", "UTC"))
    low, high, _ = collect("timestamp", aware)
    assert low == datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    assert high == datetime(2023, 11, 14, 22, 13, 20, 123_456, UTC)
    assert collect("timestamp_ntz", pa.array([0], pa.timestamp("us")))[0].tzinfo is None
    assert collect("date", pa.array([date(1, 1, 1), None]))[0] == date(1, 1, 1)


def test_moments_beyond_year_9999_are_left_out() -> None:
    assert collect("timestamp", pa.array([0, (1 << 63) - 1], pa.timestamp("us", "UTC")))[1] is None
    assert collect("date", pa.array([10_000_000], pa.int32()).cast(pa.date32()))[0] is None


def test_decimals_and_dictionaries() -> None:
    values = pa.array([Decimal("1.10"), Decimal("-5.00")], pa.decimal128(10, 2))
    assert collect("decimal(10,2)", values)[:2] == (Decimal("-5.00"), Decimal("1.10"))
    assert collect("string", pa.array(["b", "a"]).dictionary_encode())[:2] == ("a", "b")


@pytest.mark.protocol("STAT-10")
def test_limits_and_choices() -> None:
    schema = StructType([Field(f"c{i}", "long") for i in range(40)])
    row = pa.table({f"c{i}": [i] for i in range(40)})
    for options, expected in (
        ({}, 32),
        ({"num_indexed_columns": -1}, 40),
        ({"columns": [("c5",), ("c39",)]}, 2),
    ):
        collector = StatsCollector(schema, **options)
        collector.update(row)
        assert len(collector.finish()["nullCount"]) == expected


def test_a_file_of_no_rows() -> None:
    stats = StatsCollector(StructType([Field("x", "long")])).finish()
    assert (
        encode_stats(stats) == '{"numRecords":0,"minValues":{},"maxValues":{},"nullCount":{"x":0}}'
    )
