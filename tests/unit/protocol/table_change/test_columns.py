from __future__ import annotations

import re

import pytest

from deltalog.protocol.column_mapping import field_id, physical_name
from deltalog.protocol.table_change.change import changed_table
from deltalog.schema import ArrayType, Field, MapType, StructType, find_field
from deltalog.schema.columns import walk
from tests.support.table_changes import (
    IDENTITY,
    MAPPED,
    NESTED,
    columns,
    table,
    versions,
    with_properties,
)


@pytest.mark.protocol("CM-03", "CM-06", "CM-07", "CM-10")
def test_a_new_mapped_table_has_random_physical_names() -> None:
    made = table(NESTED, configuration=MAPPED)
    fields = [field for _, field in walk(made.schema)]
    assert [field_id(field) for field in fields] == [1, 2, 3, 4, 5, 6]
    names = [physical_name(field) for field in fields]
    assert all(re.fullmatch(r"col-[0-9a-f-]{36}", name) for name in names)
    assert len(set(names)) == len(names)
    assert made.metadata.configuration["delta.columnMapping.maxColumnId"] == "6"


@pytest.mark.protocol("CM-05", "CM-06", "UPG-09")
def test_switching_column_mapping_on_keeps_the_names_in_files() -> None:
    before = table(NESTED)
    asked = {**MAPPED, "delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    after = changed_table(before, configuration=asked)
    assert [physical_name(field) for _, field in walk(after.schema)] == [
        field.name for _, field in walk(NESTED)
    ]
    assert after.column_mapping_mode == "name"
    assert versions(after.protocol) == (2, 5)
    assert after.metadata.configuration == {**MAPPED, "delta.columnMapping.maxColumnId": "6"}


@pytest.mark.protocol("CM-07", "CM-17")
def test_a_dropped_column_never_comes_back() -> None:
    before = table(configuration=MAPPED)
    gone = changed_table(before, schema=StructType(before.schema.fields[:2]))
    again = changed_table(gone, schema=StructType([*gone.schema.fields, Field("n", "integer")]))
    old, new = before.schema.fields[2], again.schema.fields[2]
    assert (field_id(old), field_id(new)) == (3, 4)
    assert physical_name(old) != physical_name(new)
    assert again.metadata.configuration["delta.columnMapping.maxColumnId"] == "4"


@pytest.mark.protocol("CM-16")
def test_a_column_is_known_by_its_id_and_else_by_its_name() -> None:
    before = table(configuration=MAPPED)
    id_, p, n = before.schema.fields
    renamed = Field("m", n.type, metadata=n.metadata)
    after = changed_table(before, schema=StructType([id_, Field("p", "string"), renamed]))
    assert [physical_name(field) for field in after.schema] == [
        physical_name(field) for field in (id_, p, n)
    ]


@pytest.mark.protocol("CM-17")
def test_a_name_that_was_renamed_away_is_a_new_column() -> None:
    before = table(configuration=MAPPED)
    id_, p, n = before.schema.fields
    moved = Field("q", "string", metadata=p.metadata)
    after = changed_table(before, schema=StructType([id_, moved, n, Field("p", "string")]))
    assert [field_id(field) for field in after.schema] == [1, 2, 3, 4]
    assert physical_name(after.schema.fields[3]) != physical_name(p)


def test_ids_of_another_table_are_left_out() -> None:
    other = table(configuration=MAPPED)
    assert all(
        not field.metadata for _, field in walk(table(other.schema, configuration={}).schema)
    )
    before = table(configuration=MAPPED)
    stranger = Field("new", "long", metadata=other.schema.fields[0].metadata)
    after = changed_table(before, schema=StructType([*before.schema.fields, stranger]))
    assert field_id(after.schema.fields[3]) == 4
    assert physical_name(after.schema.fields[3]) != physical_name(stranger)


@pytest.mark.protocol("SCH-05")
def test_unknown_column_metadata_stays() -> None:
    schema = columns(Field("x", "long", metadata={"theirs": {"a": [1]}, "comment": "c"}))
    after = with_properties(table(schema), columnMapping__mode="name")
    assert after.schema.fields[1].metadata["theirs"] == {"a": [1]}


@pytest.mark.protocol("UPG-10")
def test_column_mapping_allows_any_name() -> None:
    before = table(configuration=MAPPED)
    after = changed_table(before, schema=StructType([*before.schema.fields, Field("a b", "long")]))
    assert after.schema.names == ("id", "p", "n", "a b")


def test_replaced_data_gets_columns_of_its_own() -> None:
    before = table(configuration=MAPPED)
    after = changed_table(before, schema=StructType([Field("id", "string")]), replaces_data=True)
    assert field_id(after.schema.fields[0]) == 4
    same = changed_table(before, schema=before.schema, replaces_data=True)
    assert same.schema == before.schema


def test_high_water_marks_of_another_table_are_left_out() -> None:
    field = Field("i", "long", metadata={**IDENTITY, "delta.identity.highWaterMark": 7})
    assert table(columns(field)).schema.fields[1].metadata == IDENTITY


@pytest.mark.protocol("B-53")
def test_parts_of_lists_and_maps_have_ids_for_iceberg() -> None:
    schema = StructType(
        [
            Field("a", ArrayType(StructType([Field("x", "integer")]))),
            Field("m", MapType("string", ArrayType("integer"))),
        ]
    )
    made = table(schema, configuration={"delta.enableIcebergCompatV2": "true"})
    (a, m), x = made.schema.fields, find_field(made.schema, "a.element.x")
    key = "delta.columnMapping.nested.ids"
    assert a.metadata[key] == {f"{physical_name(a)}.element": 4}
    assert m.metadata[key] == {
        f"{physical_name(m)}.key": 5,
        f"{physical_name(m)}.value": 6,
        f"{physical_name(m)}.value.element": 7,
    }
    assert x.metadata[key] == {}
    assert made.metadata.configuration["delta.columnMapping.maxColumnId"] == "7"
    more = changed_table(
        made, schema=StructType([*made.schema.fields, Field("b", ArrayType("long"))])
    )
    assert more.schema.fields[0] == a
    b = more.schema.fields[2]
    assert (field_id(b), b.metadata[key]) == (8, {f"{physical_name(b)}.element": 9})
