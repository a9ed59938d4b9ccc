from __future__ import annotations

import re
from typing import Any

import pytest

from deltalog.errors import InvalidInputError, InvalidMetadataError
from deltalog.protocol.column_mapping import (
    Mode,
    PhysicalNames,
    assign,
    check_mode_change,
    field_id,
    physical_name,
    physical_names,
    physical_path,
    strip,
    to_physical_schema,
    validate,
)
from deltalog.schema import ArrayType, Field, MapType, StructType, find_field, parse_schema, walk


def mapped(name: str, data_type: Any, number: int, physical: str) -> Field:
    return Field(
        name,
        data_type,
        metadata={
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": physical,
        },
    )


SCHEMA = StructType(
    [
        mapped("a", "long", 1, "col-1"),
        mapped(
            "m",
            MapType("string", ArrayType(StructType([mapped("x", "date", 3, "col-3")]))),
            2,
            "col-2",
        ),
    ]
)


@pytest.mark.protocol("CM-01")
def test_modes() -> None:
    assert [Mode.parse(text) for text in (None, "none", "ID", " name ")] == [
        Mode.NONE,
        Mode.NONE,
        Mode.ID,
        Mode.NAME,
    ]
    with pytest.raises(InvalidMetadataError, match="'names'"):
        Mode.parse("names")


@pytest.mark.protocol("CM-09", "D-29", "D-30")
def test_physical_names_at_every_depth() -> None:
    physical = to_physical_schema(SCHEMA, Mode.NAME)
    assert str(physical) == "struct<col-1:long,col-2:map<string,array<struct<col-3:date>>>>"
    assert to_physical_schema(SCHEMA, Mode.ID) == physical
    assert field_id(find_field(physical, "col-2.value.element.col-3")) == 3


@pytest.mark.protocol("CM-11")
def test_without_mapping_names_are_as_shown() -> None:
    assert to_physical_schema(SCHEMA, Mode.NONE) is SCHEMA
    assert physical_path(SCHEMA, "M.value", Mode.NONE) == ("m", "value")
    assert physical_name(SCHEMA.fields[0], Mode.NONE) == "a"


@pytest.mark.protocol("CM-09", "CM-10")
def test_paths_and_partition_columns() -> None:
    assert physical_path(SCHEMA, "m.value.element.X", Mode.NAME) == (
        "col-2",
        "value",
        "element",
        "col-3",
    )
    assert physical_names(SCHEMA, ["A"], Mode.ID) == ("col-1",)
    with pytest.raises(InvalidInputError, match="'b'"):
        physical_path(SCHEMA, "b", Mode.NAME)


def test_quoted_ids_are_understood() -> None:
    assert field_id(Field("a", "long", metadata={"delta.columnMapping.id": "12"})) == 12
    assert field_id(Field("a", "long", metadata={"delta.columnMapping.id": True})) is None
    assert field_id(Field("a", "long")) is None


@pytest.mark.protocol("CM-03", "CM-06", "D-30")
def test_new_columns_get_ids_and_random_names() -> None:
    bare = strip(SCHEMA)
    assert all(not field.metadata for _, field in walk(bare))
    schema, highest = assign(bare)
    names = [physical_name(field) for _, field in walk(schema)]
    assert highest == 3
    assert sorted(field_id(field) or 0 for _, field in walk(schema)) == [1, 2, 3]
    assert len(set(names)) == 3
    assert all(
        re.fullmatch(r"col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", name) for name in names
    )
    validate(schema, Mode.NAME, max_id=highest)
    assert str(strip(schema)) == str(bare)


@pytest.mark.protocol("CM-06")
def test_existing_columns_keep_their_names() -> None:
    schema, _ = assign(strip(SCHEMA), names=PhysicalNames.LOGICAL)
    assert [physical_name(field) for _, field in walk(schema)] == ["a", "m", "x"]


@pytest.mark.protocol("CM-07")
def test_ids_are_never_given_twice() -> None:
    grown = StructType([*SCHEMA.fields, Field("new", "long")])
    schema, highest = assign(grown, max_id=7)
    assert (field_id(schema.fields[2]), highest) == (8, 8)
    assert schema.fields[:2] == SCHEMA.fields
    assert assign(SCHEMA, max_id=7) == (SCHEMA, 7)
    assert assign(SCHEMA) == (SCHEMA, 3)


@pytest.mark.protocol("CM-04")
def test_the_protocols_example() -> None:
    text = (
        '{"type":"struct","fields":[{"name":"e","type":{"type":"array","elementType":'
        '{"type":"struct","fields":[{"name":"d","type":"integer","nullable":false,"metadata":'
        '{"delta.columnMapping.id":5,"delta.columnMapping.physicalName":'
        '"col-a7f4159c-53be-4cb0-b81a-f7e5240cfc49"}}]},"containsNull":true},"nullable":true,'
        '"metadata":{"delta.columnMapping.id":4,"delta.columnMapping.physicalName":'
        '"col-5f422f40-de70-45b2-88ab-1d5c90e94db1"}}]}'
    )
    schema = parse_schema(text)
    assert schema.to_json() == text
    assert [field_id(field) for _, field in walk(schema)] == [4, 5]
    assert physical_path(schema, "e.element.d", Mode.NAME)[2] == (
        "col-a7f4159c-53be-4cb0-b81a-f7e5240cfc49"
    )
    validate(schema, Mode.ID, max_id=5)


@pytest.mark.protocol("B-34", "CM-03")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([mapped("a", "long", 1, "p"), mapped("b", "long", 1, "q")], "'a' and 'b' have the same"),
        ([mapped("a", "long", 1, "p"), mapped("b", "long", 2, "p")], "physical name 'p'"),
        ([mapped("a", "long", 9, "p")], "9 is above"),
        ([mapped("a", "long", 2**31, "p")], "32-bit"),
        ([mapped("s", StructType([Field("x", "long")]), 1, "p")], r"'s\.x': expected a 32-bit"),
        ([Field("a", "long", metadata={"delta.columnMapping.id": 1})], "expected .*physicalName"),
    ],
)
def test_a_broken_mapping_is_refused(fields: list[Field], message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        validate(StructType(fields), Mode.NAME, max_id=5)
    validate(StructType(fields), Mode.NONE)


@pytest.mark.protocol("B-34")
def test_one_physical_name_in_two_structs_is_fine() -> None:
    validate(
        StructType(
            [
                mapped("s", StructType([mapped("x", "long", 2, "p")]), 1, "q"),
                mapped("t", StructType([mapped("x", "long", 4, "p")]), 3, "p"),
            ]
        ),
        Mode.NAME,
    )


@pytest.mark.protocol("B-35")
def test_modes_change_one_way() -> None:
    for mode in Mode:
        check_mode_change(mode, mode)
    check_mode_change(Mode.NONE, Mode.NAME)
    check_mode_change(Mode.ID, Mode.NONE, is_rewrite=True)
    for before, after, is_rewrite in [
        (Mode.NONE, Mode.ID, True),
        (Mode.NAME, Mode.ID, True),
        (Mode.ID, Mode.NAME, True),
        (Mode.NAME, Mode.NONE, False),
        (Mode.ID, Mode.NONE, False),
    ]:
        with pytest.raises(InvalidInputError, match=f"from {before} to {after}"):
            check_mode_change(before, after, is_rewrite=is_rewrite)
