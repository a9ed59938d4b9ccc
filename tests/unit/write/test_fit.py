"""Columns of data, matched to those of a table."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import (
    SchemaMismatchError,
)
from deltalog.schema import ArrayType, Field, MapType, StructType, VariantType
from tests.support.writes import enforced, table

NAIVE = datetime(2024, 7, 1, 12)  # noqa: DTZ001  # without a zone on purpose


@pytest.mark.protocol("B-33", "D-38", "D-66", "CONS-03")
def test_columns_are_matched_without_case_and_put_in_order() -> None:
    rows = enforced(
        table(Field("Id", "long"), Field("p", "string"), Field("x", "date")),
        {
            "P": ["a"],
            "ID": [1],
        },
    )
    assert rows == {"Id": [1], "p": ["a"], "x": [None]}


def test_nested_names_are_matched_without_case() -> None:
    inner = StructType([Field("A", "long"), Field("b", "string")])
    fields = (
        Field("s", inner),
        Field("l", ArrayType(inner)),
        Field("m", MapType("string", inner)),
    )
    value = {"B": "x", "a": 1}
    data = pa.table(
        [
            pa.array([value]),
            pa.array([[value]]),
            pa.array(
                [[("k", value)]],
                pa.map_(pa.string(), pa.struct([("B", pa.string()), ("a", pa.int64())])),
            ),
        ],
        names=["S", "L", "M"],
    )
    wanted = {"A": 1, "b": "x"}
    assert enforced(table(*fields), data) == {
        "s": [wanted],
        "l": [[wanted]],
        "m": [[("k", wanted)]],
    }


@pytest.mark.protocol("CONS-01")
def test_all_columns_that_are_too_many_are_named() -> None:
    fields = (Field("a", "long"), Field("s", StructType([Field("x", "long")])))
    data = pa.table({"a": [1], "new": [2], "s": [{"x": 1, "y": 2}]})
    with pytest.raises(
        SchemaMismatchError, match=r"column\(s\) 'new', 's\.y' that the table lacks"
    ):
        enforced(table(*fields), data)


@pytest.mark.protocol("CONS-03")
def test_all_columns_that_are_missing_are_named() -> None:
    inner = StructType([Field("x", "long", nullable=False), Field("y", "long")])
    fields = (Field("a", "long", nullable=False), Field("s", inner), Field("b", "long"))
    with pytest.raises(SchemaMismatchError, match=r"lacks column\(s\) 's\.x', 'a' that must not"):
        enforced(table(*fields), {"s": [{"y": 1}], "b": [1]})


def test_a_column_twice_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match=r"'A' more than once, ignoring case"):
        enforced(table(Field("a", "long")), {"a": [1], "A": [2]})


@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        ("integer", pa.array([7], pa.int64()), 7),
        ("double", pa.array([7], pa.int32()), 7.0),
        ("decimal(10,2)", pa.array([7]), Decimal("7.00")),
        ("decimal(10,2)", pa.array([Decimal("1.5")]), Decimal("1.50")),
        ("string", pa.array(["a"]).dictionary_encode(), "a"),
        ("string", pa.array(["a"], pa.large_string()), "a"),
        ("string", pa.array(["a"], pa.string_view()), "a"),
        ("timestamp_ntz", pa.array([NAIVE]), NAIVE),
        ("timestamp", pa.array([NAIVE]), NAIVE.replace(tzinfo=UTC)),
        ("date", pa.nulls(1), None),
        ("binary", pa.array([b"1"], pa.binary(1)), b"1"),
    ],
    ids=str,
)
def test_values_are_stored_where_they_fit(kind: str, values: Any, stored: Any) -> None:
    assert enforced(table(Field("x", kind)), {"x": values}) == {"x": [stored]}


@pytest.mark.parametrize(
    ("kind", "values"),
    [("integer", pa.array(["7"])), ("boolean", pa.array([1])),
     ("long", pa.array([date(2024, 1, 1)])), (ArrayType("long"), pa.array([1])),
     ("string", pa.array([True])), (VariantType(), pa.array(["{}"]))],
    ids=str,
)  # fmt: skip
def test_types_that_do_not_fit_are_refused(kind: Any, values: Any) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column 'x' is of type .* and cannot take"):
        enforced(table(Field("x", kind)), {"x": values})


@pytest.mark.parametrize(
    ("kind", "values"),
    [("integer", pa.array([2**40])), ("integer", pa.array([1.5])),
     ("byte", pa.array([200])), ("decimal(3,2)", pa.array([100])),
     ("timestamp", pa.array([1], pa.timestamp("ns")))],
    ids=str,
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(kind: Any, values: Any) -> None:
    with pytest.raises(SchemaMismatchError, match="'x'"):
        enforced(table(Field("x", kind)), {"x": values})


def test_two_binaries_are_a_variant() -> None:
    value = {"metadata": b"\x01\x00\x00", "value": b"\x00"}
    rows = enforced(table(Field("v", VariantType()), features=["variantType"]), {"v": [value]})
    assert rows == {"v": [value]}


def test_a_zone_is_given_to_times_that_have_none() -> None:
    configuration = table(Field("x", "timestamp"))
    data = {"x": [NAIVE]}
    rows = enforced(configuration, data, time_zone="Europe/Berlin")
    assert rows == {"x": [datetime(2024, 7, 1, 10, tzinfo=UTC)]}


def test_a_zone_is_given_to_nothing_else() -> None:
    moment = NAIVE.replace(tzinfo=UTC)
    data = pa.table(
        {"t": pa.array([moment], pa.timestamp("ms", "UTC")), "n": pa.array([1], pa.int32())}
    )
    configuration = table(Field("t", "timestamp"), Field("n", "long"))
    found = enforced(configuration, data, time_zone="Europe/Berlin")
    assert found == {"t": [moment], "n": [1]}


def test_no_zone_is_guessed_inside_of_a_column() -> None:
    configuration = table(Field("x", ArrayType("timestamp")))
    data = {"x": [[NAIVE]]}
    with pytest.raises(SchemaMismatchError, match="times without a zone inside"):
        enforced(configuration, data, time_zone="Europe/Berlin")


def test_a_field_called_timestamp_may_be_without_a_zone() -> None:
    inner = StructType([Field("timestamp", "timestamp_ntz")])
    data = {"x": [{"timestamp": NAIVE}]}
    assert enforced(table(Field("x", inner)), data, time_zone="Europe/Berlin") == data
