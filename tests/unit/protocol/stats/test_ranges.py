"""Ranges of values in files: of partitions, of casts, of former types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.expressions import col
from deltalog.protocol.column_mapping import Mode
from deltalog.schema import Field, StructType
from tests.support.skipping import ONE_TO_FIVE, FakeTable, keep, plan, stats


@pytest.mark.protocol("STAT-14")
def test_dates_and_their_casts() -> None:
    text = stats("d", '"2024-01-01"', '"2024-01-31"')
    assert keep("d > '2024-01-31'", text) == [False]
    assert keep("d >= DATE'2024-01-31'", text) == [True]
    assert keep("d >= TIMESTAMP'2024-02-01 00:00:00Z'", text) == [False]
    moments = stats("t", '"2024-01-01T10:00:00.000Z"', '"2024-01-02T10:00:00.000Z"')
    assert keep("CAST(t AS DATE) > '2024-01-02'", moments) == [False]
    assert keep("CAST(t AS DATE) = '2024-01-01'", moments) == [True]


@pytest.mark.protocol("B-50", "D-68")
def test_a_former_float_column_has_bounds_of_floats() -> None:
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    table = FakeTable(StructType([Field("f", "double", metadata=changes), Field("g", "double")]))
    # The file holds the float 0.1, which is the double 0.10000000149011612.
    both = '{"minValues":{"f":0.1,"g":0.1},"maxValues":{"f":0.1,"g":0.1}}'
    assert keep(col("f") > 0.1, both, table=table) == [True]
    assert keep(col("g") > 0.1, both, table=table) == [False]
    assert keep(col("f") > 0.2, both, table=table) == [False]


@pytest.mark.protocol("B-50", "D-68")
def test_statistics_in_the_narrower_type_decide() -> None:
    table = FakeTable(
        StructType([Field("x", "long"), Field("n", "timestamp_ntz"), Field("d", "decimal(8,4)")])
    )
    text = '{"maxValues":{"x":100,"n":"2024-09-09","d":12.34}}'
    assert keep("x > 3000000000", text, table=table) == [False]
    assert keep("n > '2024-09-10'", text, table=table) == [False]
    assert keep("n >= '2024-09-09'", text, table=table) == [True]
    assert keep("d > 12.3401", text, table=table) == [False]


PARTITIONS = pa.table({"p": pa.array([1, 2, None], pa.int32()), "q": ["a", None, "b"]})


THREE = (ONE_TO_FIVE, stats("x", "11", "15"), None)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("p = 1", [True, False, False]),
        ("p IS NULL", [False, False, True]),
        ("NOT p = 1", [False, True, False]),
        ("p <=> NULL OR q = 'a'", [True, False, True]),
        ("q LIKE '%a'", [True, False, False]),
        ("p + 1 = 3", [False, True, False]),
        ("p = 1 AND x > 5", [False, False, False]),
        ("p = 1 OR x > 10", [True, True, True]),
        ("p = 9 OR x > 20", [False, False, True]),
        ("NOT (p = 1 AND x < 9)", [False, True, True]),
        ("p > x", [False, False, False]),
        ("p < x", [True, True, False]),
        ("x = p * 11", [False, False, False]),
        ("x IN (p, 12)", [True, True, True]),
        ("x NOT IN (p)", [True, True, False]),
        ("q = s", [True, False, True]),
        ("1 / (p - 1) = 1 OR p = 1", [True, True, True]),
    ],
)
def test_partition_values_are_exact(predicate: str, expected: list[bool]) -> None:
    assert keep(predicate, *THREE, partitions=PARTITIONS) == expected


def test_partition_values_alone_decide_too() -> None:
    skipping = plan("p = 1 AND x > 5")
    assert skipping is not None
    assert skipping.partition_columns == ("p",)
    assert skipping.keep(None, PARTITIONS).to_pylist() == [True, False, False]
    assert skipping.keep(None, None).to_pylist() == []


@pytest.mark.protocol("STAT-01")
def test_statistics_have_physical_names() -> None:
    inner = StructType([Field("b", "long", metadata={"delta.columnMapping.physicalName": "col-2"})])
    table = FakeTable(
        StructType([Field("a", inner, metadata={"delta.columnMapping.physicalName": "col-1"})]),
        column_mapping_mode=Mode.NAME,
    )
    text = '{"maxValues":{"col-1":{"col-2":5},"a":{"b":9}}}'
    assert keep("a.b > 5", text, table=table) == [False]


@pytest.mark.protocol("D-16", "STAT-11")
def test_bounds_of_booleans_are_not_used() -> None:
    assert keep("b = TRUE", stats("b", "false", "false")) == [True]
