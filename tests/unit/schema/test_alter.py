"""The schema of a table, altered column by column."""

from __future__ import annotations

import pytest

from deltalog.errors import (
    InvalidInputError,
)
from deltalog.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    TypeChange,
    add_column,
    as_type,
    change_field,
    change_type,
    drop_column,
    find_field,
    merge_schemas,
    move_column,
    new_field,
    rename_column,
    widening_changes,
)


def one(name: str, data_type: DataType | str) -> StructType:
    return StructType([Field(name, data_type)])


def test_a_second_change_is_added_to_the_first() -> None:
    once = change_type(one("a", "byte"), "a", PrimitiveType("short"))
    twice = change_type(once, "a", PrimitiveType("integer"))
    assert widening_changes(twice.fields[0]) == (
        TypeChange(PrimitiveType("byte"), PrimitiveType("short")),
        TypeChange(PrimitiveType("short"), PrimitiveType("integer")),
    )


@pytest.mark.protocol("D-28")
def test_void_becomes_any_type_without_a_trace() -> None:
    struct = StructType([Field("x", "long", nullable=False)])
    assert merge_schemas(one("v", "void"), one("v", struct)) == one("v", one("x", "long"))
    assert change_type(one("v", "void"), "v", as_type("date")) == one("v", "date")
    assert merge_schemas(one("v", "date"), one("v", "void")) == one("v", "date")


def test_adding_columns() -> None:
    schema = StructType([Field("a", "long"), Field("l", ArrayType(one("x", "long")))])
    field = Field("n", "date", nullable=False)
    assert add_column(schema, field).names == ("a", "l", "n")
    assert add_column(schema, field, where="first").names == ("n", "a", "l")
    assert add_column(schema, field, where=("after", "A")).names == ("a", "n", "l")
    assert add_column(schema, field).fields[2].nullable
    nested = add_column(schema, field, parent="l.element", where="first")
    assert str(nested) == "struct<a:long,l:array<struct<n:date,x:long>>>"
    with pytest.raises(InvalidInputError, match="exists already"):
        add_column(schema, Field("A", "date"))
    with pytest.raises(InvalidInputError, match="expected a struct"):
        add_column(schema, field, parent="a")
    with pytest.raises(InvalidInputError, match="'zzz'"):
        add_column(schema, field, where=("after", "zzz"))


@pytest.mark.protocol("CM-03")
def test_a_new_field_leaves_another_tables_ids_behind() -> None:
    field = Field(
        "s",
        StructType([Field("x", "long", nullable=False, metadata={"delta.columnMapping.id": 2})]),
        nullable=False,
        metadata={"delta.columnMapping.physicalName": "p", "comment": "c", "delta.typeChanges": []},
    )
    assert new_field(field) == Field("s", one("x", "long"), metadata={"comment": "c"})


def test_dropping_renaming_and_moving() -> None:
    schema = StructType(
        [
            Field("a", "long"),
            Field("m", MapType("string", StructType([Field("x", "long"), Field("y", "date")]))),
        ]
    )
    assert str(drop_column(schema, "m.value.X")) == "struct<a:long,m:map<string,struct<y:date>>>"
    assert rename_column(schema, "A", "B").names == ("B", "m")
    assert rename_column(schema, "a", "A").names == ("A", "m")
    assert str(rename_column(schema, "m.value.y", "z").fields[1].type) == (
        "map<string,struct<x:long,z:date>>"
    )
    assert str(move_column(schema, "m.value.y", "first").fields[1].type) == (
        "map<string,struct<y:date,x:long>>"
    )
    assert move_column(schema, "a", ("after", "m")).names == ("m", "a")
    with pytest.raises(InvalidInputError, match="taken"):
        rename_column(schema, "a", "M")
    with pytest.raises(InvalidInputError, match="at least one"):
        drop_column(one("s", one("x", "long")), "s.x")
    with pytest.raises(InvalidInputError, match="'b'"):
        drop_column(schema, "b")


def test_changing_one_field() -> None:
    schema = one("s", one("x", "long"))
    changed = change_field(
        schema, "s.X", lambda field: Field(field.name, field.type, nullable=False)
    )
    assert not find_field(changed, "s.x").nullable


@pytest.mark.protocol("B-50")
def test_changing_types_inside_containers() -> None:
    schema = one("m", MapType("byte", ArrayType("short")))
    changed = change_type(schema, ("m", "value", "element"), PrimitiveType("long"))
    assert str(changed) == "struct<m:map<byte,array<long>>>"
    assert widening_changes(changed.fields[0]) == (
        TypeChange(PrimitiveType("short"), PrimitiveType("long"), ("value", "element")),
    )
    assert change_type(schema, "m.key", PrimitiveType("byte")) == schema
    with pytest.raises(InvalidInputError, match=r"'m\.key' from byte to string"):
        change_type(schema, "m.key", PrimitiveType("string"))
