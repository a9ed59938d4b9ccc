from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.protocol.column_mapping import (
    Mode,
    PhysicalNames,
    assign,
    field_id,
    physical_name,
    physical_path,
    strip,
    to_physical_schema,
    validate,
)
from deltalog.schema import (
    DataType,
    Field,
    PrimitiveType,
    Schema,
    StructType,
    canonical_path_of,
    conform_array,
    encode_schema,
    find_field,
    from_arrow_type,
    is_widening,
    merge_schemas,
    new_field,
    parse_schema,
    project,
    reorder,
    to_arrow_schema,
    to_arrow_type,
    walk,
)
from deltalog.schema.columns import map_fields
from tests.property.schema_strategies import PARTITION_TYPES, SCHEMAS, TYPES, values
from tests.support.examples import examples


@pytest.mark.protocol("SCH-01", "SCH-02", "SCH-03", "SCH-05", "SCH-07")
@given(SCHEMAS)
def test_json_gives_the_schema_back(schema: StructType) -> None:
    text = encode_schema(schema)
    assert parse_schema(text) == schema
    assert encode_schema(parse_schema(text)) == text


@pytest.mark.protocol("SCH-01", "SCH-02", "SCH-03", "SCH-07")
@given(SCHEMAS)
def test_arrow_gives_the_schema_back(schema: StructType) -> None:
    assert Schema.from_arrow(schema.to_arrow()) == schema
    assert Schema.from_arrow(schema.to_arrow(as_large_types=True)) == schema


@given(TYPES)
def test_conform_takes_nulls_and_empty_arrays_of_every_type(data_type: DataType) -> None:
    target = to_arrow_type(data_type)
    assert from_arrow_type(target) == _bare(data_type)
    for count in (0, 2):
        array = conform_array(pa.nulls(count), target)
        assert (array.type, array.null_count) == (target, count)


@settings(max_examples=examples(60))
@given(st.data())
def test_conform_undoes_every_encoding(data: st.DataObject) -> None:
    kind = data.draw(PARTITION_TYPES)
    target: Any = to_arrow_type(kind)
    cells = data.draw(st.lists(st.none() | values(kind), max_size=6))
    plain: Any = pa.array(cells, target)
    start = data.draw(st.integers(0, len(cells)))
    for array in (plain, plain.dictionary_encode(), pa.chunked_array([plain.dictionary_encode()])):
        result = conform_array(array.slice(start), target)
        assert result.type == target
        assert repr(result.to_pylist()) == repr(plain.to_pylist()[start:])


@given(SCHEMAS)
@pytest.mark.protocol("B-33")
def test_every_field_is_found_by_its_path_in_any_case(schema: StructType) -> None:
    for path, field in walk(schema):
        assert find_field(schema, path) == field
        shouted = tuple(segment.upper() for segment in path)
        assert canonical_path_of(schema, shouted) == path


@given(SCHEMAS)
def test_projecting_all_columns_changes_nothing(schema: StructType) -> None:
    assert project(schema, [(name,) for name in schema.names]) == schema


@given(SCHEMAS, st.sampled_from(PhysicalNames))
@pytest.mark.protocol("CM-03", "CM-06", "CM-07", "B-34")
def test_assigned_mappings_are_valid_and_stay(schema: StructType, names: PhysicalNames) -> None:
    bare = strip(schema)
    mapped, highest = assign(bare, max_id=5, names=names)
    validate(mapped, Mode.NAME, max_id=highest)
    assert assign(mapped, highest) == (mapped, highest)
    ids = [field_id(field) for _, field in walk(mapped)]
    assert sorted(number or 0 for number in ids) == list(range(6, 6 + len(ids)))
    assert strip(mapped) == bare
    physical = to_physical_schema(mapped, Mode.NAME)
    for path, field in walk(mapped):
        found = find_field(physical, physical_path(mapped, path, Mode.NAME))
        assert found.name == physical_name(field)
        assert field_id(found) == field_id(field)


@given(SCHEMAS)
def test_merging_a_schema_with_itself_changes_nothing(schema: StructType) -> None:
    assert merge_schemas(schema, schema, allow_widening=True) == schema
    assert merge_schemas(schema, StructType()) == schema
    assert reorder(schema, schema) == schema
    backwards = StructType(schema.fields[::-1])
    assert reorder(backwards, schema) == schema
    # New columns with unknown entries of `delta.` are refused.
    bare = map_fields(schema, lambda found: Field(found.name, found.type, found.nullable))
    fresh = StructType([new_field(field) for field in bare.fields])
    assert merge_schemas(StructType(), bare) == fresh


@given(PARTITION_TYPES, PARTITION_TYPES, PARTITION_TYPES)
@pytest.mark.protocol("B-50")
def test_widening_is_an_order(
    first: PrimitiveType, second: PrimitiveType, third: PrimitiveType
) -> None:
    assert not is_widening(first, first)
    assert not (is_widening(first, second) and is_widening(second, first))
    if is_widening(first, second) and is_widening(second, third):
        assert is_widening(first, third)


WIDENINGS = [
    (before, after)
    for before in map(
        PrimitiveType, ["byte", "short", "integer", "long", "float", "date", "decimal(7,3)"]
    )
    for after in map(
        PrimitiveType,
        [
            "short",
            "integer",
            "long",
            "double",
            "timestamp_ntz",
            "decimal(12,2)",
            "decimal(12,3)",
            "decimal(38,18)",
        ],
    )
    if is_widening(before, after)
]


@settings(max_examples=examples(60))
@given(st.sampled_from(WIDENINGS), st.data())
@pytest.mark.protocol("B-50", "D-68")
def test_widening_loses_no_value(
    widening: tuple[PrimitiveType, PrimitiveType], data: st.DataObject
) -> None:
    before, after = widening
    source: Any = pa.array(data.draw(st.lists(values(before), max_size=5)), to_arrow_type(before))
    widened = conform_array(source, to_arrow_type(after))
    assert widened.type == to_arrow_type(after)
    assert repr(widened.cast(source.type).to_pylist()) == repr(source.to_pylist())


def _bare(data_type: DataType) -> DataType:
    schema = StructType([Field("x", data_type)])
    return Schema.from_arrow(to_arrow_schema(schema)).fields[0].type
