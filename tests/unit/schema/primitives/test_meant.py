"""Which type an error says was meant."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import deltalake
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, col
from deltalog.errors import InvalidInputError, InvalidMetadataError
from deltalog.expressions.nodes import Cast
from deltalog.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    Schema,
    StructType,
    VariantType,
    as_type,
)
from deltalog.schema.types import INTEGER, LONG, STRING, UnknownType


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("INT", INTEGER),
        (" bigint ", LONG),
        ("Long", LONG),
        ("bool", PrimitiveType("boolean")),
        ("DECIMAL(10, 2)", PrimitiveType("decimal(10,2)")),
        ("NUMERIC(4,1)", PrimitiveType("decimal(4,1)")),
        ("decimal(12)", PrimitiveType("decimal(12,0)")),
        ("TIMESTAMP_NTZ", PrimitiveType("timestamp_ntz")),
        ("Timestamp_LTZ", PrimitiveType("timestamp")),
        ("ARRAY<INT>", ArrayType("integer")),
        ("map<string, array<bigint>>", MapType("string", ArrayType("long"))),
        (
            "STRUCT<a: INT NOT NULL, b STRING>",
            StructType([Field("a", "integer", nullable=False), Field("b", "string")]),
        ),
        ("VARIANT", VariantType()),
        (pa.int64(), LONG),
        (pa.decimal128(10, 2), PrimitiveType("decimal(10,2)")),
        (pa.list_(pa.int32()), ArrayType("integer")),
        (str, STRING),
        (bool, PrimitiveType("boolean")),
        (float, PrimitiveType("double")),
        (bytes, PrimitiveType("binary")),
        (dt.date, PrimitiveType("date")),
    ],
)
def test_types_in_the_spellings_of_sql_arrow_and_python(value: Any, found: DataType) -> None:
    assert as_type(value) == Field("a", value).type == found
    assert ArrayType(value).element_type == MapType("string", value).value_type == found
    assert isinstance(cast := col("a").cast(value), Cast)
    assert cast.to == found
    assert as_type(value).to_json() == found.to_json()  # the protocol's name


def test_a_log_has_only_the_names_of_the_protocol() -> None:
    for name in ("INT", "bigint", "array<int>", "VARIANT"):
        column = f'{{"name":"a","type":"{name}","nullable":true}}'
        text = f'{{"type":"struct","fields":[{column}]}}'
        assert Schema.from_json(text).fields[0].type == UnknownType(name)
    with pytest.raises(InvalidMetadataError):
        Schema.from_json('{"type":"struct","fields":[{"name":"a","type":"decimal(50,2)"}]}')
    with pytest.raises(InvalidInputError, match="did you mean 'integer'"):
        PrimitiveType("INT")


def test_a_wrong_part_of_a_nested_type_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"'array<strnig>'.*did you mean 'string'"):
        Field("a", "array<strnig>")


@pytest.mark.parametrize(
    "given",
    [
        [("id", "long"), ("name", str)],
        [("id", "BIGINT"), Field("name", "string")],
        {"id": pa.int64(), "name": "string"},
        "id BIGINT, name STRING",
        "id: long, name: string",
    ],
)
def test_short_forms_of_a_schema(given: Any, tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, given)
    expected = Schema([Field("id", "long"), Field("name", "string")])
    assert table.schema() == expected
    other = DeltaTable.create(tmp_path / "other", {"first": "int"})
    other.alter.add_columns(given)
    assert other.schema().fields[1:] == expected.fields


def test_a_schema_in_sql_has_comments_and_not_null(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, "id BIGINT NOT NULL COMMENT 'key', tags ARRAY<STRING>")
    field = Field("id", "long", nullable=False).comment("key")
    assert table.schema() == Schema([field, Field("tags", ArrayType("string"))])


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (["id long", "x int"], "pass one string, 'id long, x int'"),
        (("id", "long"), r"pairs, such as .*\[\('id', 'long'\)\]"),
        ([("id", "long", False)], "a list of fields or pairs"),
        ('{"type":"struct"}', r"Schema\.from_json\(text\) reads JSON"),
        ("CREATE TABLE t (id INT)", r"deltalog\.sql\(statement\) runs CREATE TABLE"),
        ("id long generated always as identity", r"'id', 'long', metadata=\{'delta\.identity\.st"),
        ("id bigserial, x int", r"Field\('id', 'long', metadata=.* run CREATE TABLE with deltalog"),
        ("id long, d date generated always as (x)", r"metadata=\{'delta\.generationExpression': "),
        ("id long not null default 0", r"metadata=\{'CURRENT_DEFAULT': \"'new'\"\}\), or run"),
        ("id long primary key", r"\(a table has no such keys or indexes; table\.alter\.set_key"),
        ("id long, primary key (id)", r"\(a table has no such keys or indexes; table\.alter\.set"),
        ("id long unique", r"\(a table has no such keys or indexes; table\.alter\.set_key_index"),
        ("id long check (id > 0)", r"\(constraints=\{'name': 'price > 0'\} of DeltaTable\.create"),
        ("id long, constraint c check (id > 0)", r"\(constraints=\{'name': 'price > 0'\} of Delta"),
        ("id long null", "leave out NULL: a column without NOT NULL may be NULL"),
        ("id long name string", r"\(expected a comma or the end before 'name'\)"),
        ("orders", "expected names and types, such as 'id long, name string'"),
        ("", "it is empty"),
        ([("id", "strnig")], "did you mean 'string'"),
    ],
)
def test_what_is_no_schema(given: Any, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        DeltaTable.create("memory://no-schema", given)
    table = DeltaTable.create(f"memory://no-schema-{uuid4()}", {"first": "int"})
    with pytest.raises(InvalidInputError, match=hint):
        table.alter.add_columns(given)


@pytest.mark.parametrize("given", [[Field("id", "long")], {"id": "long"}, "id long"])
def test_location_and_schema_in_the_wrong_order(given: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"comes before .*create\('new', schema\)$"):
        DeltaTable.create(given, "new")


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (int, "long"),
        (dt.datetime, "timestamp"),
        (decimal.Decimal, "decimal(38,18)"),
        ("int64", "long"),
        ("int32", "integer"),
        ("float64", "double"),
        ("str", "string"),
        ("object", "string"),
        ("strnig", "string"),
        ("timestamp[us]", "timestamp_ntz"),
        ("VARCHAR(10)", "string"),
        ("character varying(10)", "string"),
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
    with pytest.raises(InvalidInputError, match=r"name comes first: Field\('id', 'BIGINT'\)$"):
        Field("BIGINT", "id")
    with pytest.raises(InvalidInputError) as caught:
        Field("a", "id")
    assert "did you mean" not in str(caught.value)  # void is not similar enough
    assert Field("date", "bigint").type == LONG
    with pytest.raises(InvalidInputError, match=r"did you mean 'long'\?$"):
        Field("date", "int64")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("intt", "integer"),
        ("bigitn", "long"),
        ("array", "array<string>"),
        ("map", "map<string,long>"),
        ("struct", "struct<name: string>"),
    ],
)
def test_names_of_types_in_sql_may_be_mistyped(written: str, meant: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"did you mean '{meant}'\?$"):
        Field("a", written)
    assert Field("a", meant).name == "a"


def test_parts_of_a_field_have_their_types() -> None:
    field: Any = Field("a", "long")
    for call, message in (
        (lambda: field.comment(5), r"Field\.comment with text=5: expected a string"),
        (lambda: field.default(5), r"Field\.default with expression=5: expected SQL as a string"),
        (lambda: field.generated_as(5), r"Field\.generated_as with expression=5: expected SQL"),
        (lambda: field.identity("a"), r"Field\.identity with start='a': expected a whole number"),
        (lambda: Field("a", "long", metadata={5: "x"}), "expected a dictionary, such as"),  # type: ignore[dict-item]
    ):
        with pytest.raises(InvalidInputError, match=message):
            call()


def test_a_schema_of_pairs() -> None:
    expected = Schema([Field("id", "long"), Field("name", "string")])
    assert Schema([("id", "long"), Field("name", "string")]) == expected
    assert Schema({"id": "long", "name": "string"}) == expected
    of_arrow: Any = pa.field("id", pa.int64())
    assert Schema([of_arrow, ("name", "string")]) == expected
    with pytest.raises(InvalidInputError, match="did you mean 'long'"):
        Schema([("id", "lng")])


@pytest.mark.parametrize("given", ["id long", pa.schema([("id", pa.int64())])])
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
