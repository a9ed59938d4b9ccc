from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from deltalog.protocol.stats.schema import (
    conform_stats,
    has_bounds,
    indexed_columns,
    leaves_of_schema,
    schema_of_leaves,
    stats_schema,
)
from deltalog.schema import ArrayType, Field, MapType, StructType, VariantType

NESTED = StructType(
    [
        Field("a", "long"),
        Field(
            "b",
            StructType([Field("c", "string"), Field("d", ArrayType("long")), Field("e", "date")]),
        ),
        Field("f", "binary"),
    ]
)


def paths(columns: list[tuple[tuple[str, ...], Field]]) -> list[str]:
    return [".".join(path) for path, _ in columns]


@pytest.mark.protocol("STAT-10")
def test_the_first_32_leaves_are_indexed_and_nested_ones_count() -> None:
    inner = StructType([Field(f"n{i}", "long") for i in range(10)])
    wide = StructType([Field("s", inner), *(Field(f"c{i}", "long") for i in range(30))])
    indexed = paths(indexed_columns(wide))
    assert len(indexed) == 32
    assert (indexed[0], indexed[9], indexed[10], indexed[-1]) == ("s.n0", "s.n9", "c0", "c21")
    assert len(indexed_columns(wide, num_indexed_columns=-1)) == 40
    assert indexed_columns(wide, num_indexed_columns=0) == []


@pytest.mark.protocol("STAT-10")
def test_chosen_columns_win_and_a_struct_stands_for_its_leaves() -> None:
    assert paths(indexed_columns(NESTED, columns=[("b",)])) == ["b.c", "b.d", "b.e"]
    chosen = indexed_columns(NESTED, num_indexed_columns=0, columns=[("F",), ("b", "e")])
    assert paths(chosen) == ["b.e", "f"]


@pytest.mark.protocol("STAT-11", "STAT-01", "D-16")
def test_bounds_are_for_numbers_dates_times_and_texts_and_counts_for_all() -> None:
    schema = stats_schema(indexed_columns(NESTED))
    assert [".".join(path) for path, _ in leaves_of_schema(schema)] == [
        "numRecords",
        "minValues.a",
        "minValues.b.c",
        "minValues.b.e",
        "maxValues.a",
        "maxValues.b.c",
        "maxValues.b.e",
        "nullCount.a",
        "nullCount.b.c",
        "nullCount.b.d",
        "nullCount.b.e",
        "nullCount.f",
        "tightBounds",
    ]
    assert schema.field("minValues").type.field("b").type.field("e").type == pa.date32()
    assert "tightBounds" not in stats_schema([], tight_bounds=False).names


@pytest.mark.protocol("STAT-11")
@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (Field("x", "decimal(10,2)"), True),
        (Field("x", "timestamp_ntz"), True),
        (Field("x", "boolean"), False),
        (Field("x", "binary"), False),
        (Field("x", "void"), False),
        (Field("x", VariantType()), False),
        (Field("x", MapType("string", "long")), False),
        (Field("x", "string"), True),
        (Field("x", "string", metadata={"__COLLATIONS": {"x": "spark.UTF8_LCASE"}}), False),
    ],
    ids=str,
)
def test_which_columns_have_bounds(field: Field, *, expected: bool) -> None:
    assert has_bounds(field) is expected


PARSED = pa.array(
    [
        {
            "numRecords": 5,
            "minValues": {"a": 1, "t": date(2024, 1, 1), "d": Decimal("1.5"), "big": 3e9},
            "nullCounts": {"a": 0},
        },
        None,
    ],
    pa.struct(
        [
            ("numRecords", pa.int64()),
            (
                "minValues",
                pa.struct(
                    [
                        ("a", pa.int32()),
                        ("t", pa.date32()),
                        ("d", pa.decimal128(4, 2)),
                        ("big", pa.float64()),
                    ]
                ),
            ),
            ("nullCounts", pa.struct([("a", pa.int64())])),
        ]
    ),
)


@pytest.mark.protocol("CKPT-22", "B-13", "B-50", "D-68")
def test_structs_of_checkpoints_conform_also_with_older_types_and_the_samples_name() -> None:
    asked = schema_of_leaves(
        [
            (("numRecords",), pa.int64()),
            (("minValues", "a"), pa.int64()),
            (("minValues", "t"), pa.timestamp("us")),
            (("minValues", "d"), pa.decimal128(8, 4)),
            (("maxValues", "a"), pa.int64()),
            (("nullCount", "a"), pa.int64()),
        ]
    )
    first, second = conform_stats(pa.chunked_array([PARSED]), asked).to_pylist()
    assert first["minValues"]["a"] == 1
    assert first["minValues"]["t"].isoformat() == "2024-01-01T00:00:00"
    assert first["minValues"]["d"] == Decimal("1.5000")
    assert first["maxValues"] is None
    assert first["nullCount"] == {"a": 0}
    assert second["numRecords"] is None
    assert (second["minValues"] or {}).get("a") is None


def test_a_value_that_the_asked_type_cannot_hold_is_null() -> None:
    asked = schema_of_leaves([(("minValues", "big"), pa.int32())])
    table = conform_stats(PARSED, asked)
    assert table.column("minValues").to_pylist()[0] == {"big": None}
    assert conform_stats(PARSED.slice(0, 0), asked).num_rows == 0


def test_a_column_named_like_a_statistic_keeps_its_own_bounds() -> None:
    asked = schema_of_leaves([(("minValues", "nullCount"), pa.int64())])
    kind = pa.struct([("minValues", pa.struct([("nullCounts", pa.int64())]))])
    table = conform_stats(pa.array([{"minValues": {"nullCounts": 7}}], kind), asked)
    assert table.column("minValues").to_pylist() == [{"nullCount": None}]
