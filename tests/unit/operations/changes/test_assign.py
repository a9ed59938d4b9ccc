"""What may be assigned to columns, and what is then stored."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from deltalog.errors import ConstraintViolationError, InvalidInputError
from deltalog.expressions import col, lit, parse_type
from deltalog.schema import Field
from tests.support.logs import DictStore
from tests.support.statements import VECTORS, StatedTable

MODES = pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])


NUMBERS = {"id": "long", "x": "long"}


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": number, "x": 10 * number} for number in ids]


@MODES
def test_fields_of_structs_change_by_themselves(properties: dict[str, str]) -> None:
    columns = {"id": "long", "s": "struct<a:int,t:struct<b:string,c:int>>"}
    one, two = ({"a": n, "t": {"b": "x", "c": n}} for n in (1, 2))
    table = StatedTable(columns, [{"id": 1, "s": one}, {"id": 2, "s": two}], properties=properties)
    table.update({"s.t.c": "s.a + 10", "S.A": "0"}, "id = 2")
    assert table.rows() == [
        {"id": 1, "s": one},
        {"id": 2, "s": {"a": 0, "t": {"b": "x", "c": 12}}},
    ]


def test_a_field_of_a_struct_that_is_null_makes_the_struct() -> None:
    table = StatedTable(
        {"id": "long", "s": "struct<a:int,b:int>"}, [{"id": 1, "s": None}], [{"id": 2, "s": None}]
    )
    table.update({"s.a": "7"}, "id = 1")
    assert table.rows() == [{"id": 1, "s": {"a": 7, "b": None}}, {"id": 2, "s": None}]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("y", "there is no column 'y'"),
        ("idd", "did you mean 'id'"),
        ("s.aa", "did you mean 's.a'"),
        ("x.a", "is of type long and has no field 'a'"),
        ("l.element", "only fields of structs"),
    ],
)
def test_unknown_columns_are_errors_and_nothing_is_written(name: str, says: str) -> None:
    columns = {**NUMBERS, "s": "struct<a:int>", "l": "array<int>"}
    table = StatedTable(columns, [{"id": 1, "x": 1, "s": {"a": 1}, "l": [1]}])
    before = table.version
    with pytest.raises(InvalidInputError, match=says):
        table.update({name: "9"})
    assert table.version == before


@pytest.mark.parametrize("twice", [{"x": "1", "X": "2"}, {"s": "NULL", "s.a": "1"}])
def test_a_column_is_assigned_once(twice: dict[str, str]) -> None:
    table = StatedTable({"x": "long", "s": "struct<a:int>"}, [{"x": 1, "s": {"a": 1}}])
    with pytest.raises(InvalidInputError, match="twice"):
        table.update(twice)


def test_a_name_with_a_dot_is_a_column_before_it_is_a_path() -> None:
    columns = [Field("a.b", "long"), Field("a", parse_type("struct<b:long>"))]
    table = StatedTable(
        columns,
        [{"a.b": 1, "a": {"b": 1}}],
        properties={"delta.columnMapping.mode": "name"},
    )
    table.update({"a.b": "2"})
    table.update({("a", "b"): "3"})
    assert table.rows() == [{"a.b": 2, "a": {"b": 3}}]


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("string", "a", "it's \\ ' OR '1'='1"),
        ("string", "a", None),
        ("date", dt.date(2024, 1, 1), dt.date(2025, 2, 3)),
        (
            "timestamp",
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
            dt.datetime(2025, 1, 1, tzinfo=dt.UTC),
        ),
        ("binary", b"a", b"\x00'"),
        ("array<string>", ["a"], ["it's", None]),
        ("array<int>", [1], []),
        ("map<string,int>", None, [("b'", 2)]),
        ("struct<a:string,b:int>", {"a": "x", "b": 1}, {"a": "it's", "b": None}),
        ("double", 1.0, float("inf")),
        ("boolean", False, True),
    ],
)
def test_values_are_taken_as_they_are(kind: str, old: object, new: Any) -> None:
    table = StatedTable({"id": "long", "v": kind}, [{"id": 1, "v": old}])
    value: Any = {"b'": 2} if kind.startswith("map") else new
    table.update({"v": lit(value)})
    assert table.values("v") == [new]


def test_values_may_be_expressions() -> None:
    table = StatedTable(NUMBERS, rows(1, 2))
    table.update({"x": col("x") * 2, "id": col("x")}, "id = 2")
    assert table.rows() == [{"id": 1, "x": 10}, {"id": 20, "x": 40}]


def test_values_are_cast_as_ansi_sql_does() -> None:
    table = StatedTable({"id": "byte"}, [{"id": 1}])
    table.update({"id": "'7'"})
    assert table.values("id") == [7]
    with pytest.raises(InvalidInputError):
        table.update({"id": "300"})
    with pytest.raises(InvalidInputError):
        table.update({"id": "'seven'"})
    table.update({"id": "'seven'"}, error_on_type_mismatch=False)
    assert table.values("id") == [None]


def test_generated_columns_are_computed_anew() -> None:
    columns = [
        Field("t", "timestamp"),
        Field("day", "date", metadata={"delta.generationExpression": "CAST(t AS DATE)"}),
    ]
    first, second = (dt.datetime(2024, 1, day, tzinfo=dt.UTC) for day in (1, 2))
    for properties in ({}, VECTORS):
        table = StatedTable(columns, [{"t": first}, {"t": second}], properties=properties)
        table.update({"t": "timestamp'2024-03-01T00:00:00Z'"}, "day = date'2024-01-02'")
        assert table.values("day") == [dt.date(2024, 1, 1), dt.date(2024, 3, 1)]
        with pytest.raises(ConstraintViolationError, match="generated column 'day'"):
            table.update({"day": "date'2000-01-01'"})


@MODES
def test_rules_hold_for_new_values(properties: dict[str, str]) -> None:
    columns = [
        Field("id", "long", nullable=False),
        Field("x", "long"),
        Field("c", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
    ]
    table = StatedTable(
        columns,
        [{"id": 1, "x": 1, "c": "abc"}, {"id": 2, "x": 1, "c": "abc"}],
        properties={**properties, "delta.constraints.positive": "x > 0"},
    )
    files = set(table.store.files) if isinstance(table.store, DictStore) else set()
    for values, says in (
        ({"x": "-1"}, "positive"),
        ({"id": "NULL"}, "NOT NULL"),
        ({"c": "'abcd'"}, "varchar"),
    ):
        with pytest.raises(ConstraintViolationError, match=says):
            table.update(values, "id = 2")
    assert table.version == 1
    assert isinstance(table.store, DictStore)
    assert set(table.store.files) == files


@pytest.mark.protocol("IDN-08")
def test_identity_columns_are_not_assigned_and_keep_their_values() -> None:
    columns = [
        Field(
            "n",
            "long",
            metadata={
                "delta.identity.start": 1,
                "delta.identity.step": 1,
                "delta.identity.allowExplicitInsert": False,
            },
        ),
        Field("x", "long"),
    ]
    table = StatedTable(columns, [{"x": 1}, {"x": 2}])
    with pytest.raises(InvalidInputError, match="identity column"):
        table.update({"n": "5"})
    table.update({"x": "x * 10"}, "x = 2")
    assert table.rows() == [{"n": 1, "x": 1}, {"n": 2, "x": 20}]
