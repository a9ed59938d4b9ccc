"""Which type an error says was meant."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import deltalake
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable
from deltalog.errors import InvalidInputError
from deltalog.schema import ArrayType, Field, PrimitiveType, Schema, as_type


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (int, "long"),
        (float, "double"),
        (str, "string"),
        (bool, "boolean"),
        (bytes, "binary"),
        (dt.date, "date"),
        (dt.datetime, "timestamp"),
        (decimal.Decimal, "decimal(38,18)"),
        ("int64", "long"),
        ("int32", "integer"),
        ("float64", "double"),
        ("str", "string"),
        ("bool", "boolean"),
        ("BIGINT", "long"),
        ("object", "string"),
        ("strnig", "string"),
        ("timestamp[us]", "timestamp_ntz"),
        (pa.int64(), "long"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
        ("INT", "integer"),
        ("VARCHAR(10)", "string"),
        ("character varying(10)", "string"),
        ("DECIMAL(10, 2)", "decimal(10,2)"),
        ("NUMERIC(4,1)", "decimal(4,1)"),
        ("decimal(12)", "decimal(12,0)"),
        ("DOUBLE PRECISION", "double"),
        ("datetime64[us]", "timestamp"),
        ("timestamp[us, tz=UTC]", "timestamp"),
        ("JSON", "string"),
        (pl.Int64, "long"),
        (pl.Decimal(9, 2), "decimal(9,2)"),
        (np.int32, "integer"),
        (np.dtype("float64"), "double"),
        (pd.Int16Dtype(), "short"),
        (pd.ArrowDtype(pa.date32()), "date"),
        (deltalake.schema.PrimitiveType("long"), "long"),
    ],
)
def test_what_is_no_type_names_the_one_that_is_meant(value: Any, meant: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot make a type of") as caught:
        Field("a", value)
    assert str(caught.value).endswith(f": did you mean {meant!r}?")
    assert "timestamp_nanos_ntz" not in str(caught.value)  # one name is better than all of them
    assert as_type(meant)


@pytest.mark.parametrize(
    ("value", "call"),
    [
        ("ARRAY<INT>", "ArrayType('integer')"),
        ("map<string, array<bigint>>", "MapType('string', ArrayType('long'))"),
        ("STRUCT<a: INT, b: STRING>", "StructType([Field('a', 'integer'), Field('b', 'string')])"),
        ("VARIANT", "VariantType()"),
        (pa.list_(pa.int32()), "ArrayType('integer')"),
        (pl.List(pl.Int64), "ArrayType('long')"),
        (pl.Struct({"a": pl.String}), "StructType([Field('a', 'string')])"),
    ],
)
def test_a_nested_type_of_another_language_is_the_call_that_makes_it(value: Any, call: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Field("a", value)
    assert str(caught.value).endswith(f": did you mean {call}?")
    assert as_type(eval(call, vars(deltalog.schema)))  # noqa: S307  # the text of a test


def test_name_and_type_in_the_wrong_order() -> None:
    with pytest.raises(InvalidInputError, match=r"name comes first: Field\('id', 'long'\)$"):
        Field("long", "id")
    with pytest.raises(InvalidInputError, match=r"did you mean 'long'\?$"):
        Field("date", "bigint")


@pytest.mark.parametrize("given", [{"id": "long"}, "id long", pa.schema([("id", pa.int64())])])
def test_what_is_no_list_of_fields_is_shown_whole(given: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected a list of fields") as caught:
        Schema(given)
    assert " ".join(repr(given).split()) in str(caught.value)


@pytest.mark.parametrize("given", [Field("id", "long"), pa.field("id", pa.int64()), pa.int64()])
def test_a_part_of_a_schema_makes_no_table(given: Any) -> None:
    with pytest.raises(InvalidInputError, match="a list of fields, such as"):
        DeltaTable.create("memory://part-of-schema", given)


@pytest.mark.parametrize("value", [dict, pa.month_day_nano_interval(), 3, None, "qqqqqq"])
def test_nothing_is_guessed(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="cannot make a type of") as caught:
        Field("a", value)
    assert "did you mean" not in str(caught.value)


def test_parts_of_types_are_checked_as_well() -> None:
    for make in (lambda: ArrayType("int64"), lambda: PrimitiveType("int64")):
        with pytest.raises(InvalidInputError, match="did you mean 'long'"):
            make()
