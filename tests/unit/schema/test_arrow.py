from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError, UnsupportedTypeError
from deltalog.schema import (
    VARIANT,
    VARIANT_STORAGE,
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    Schema,
    StructType,
    UnknownType,
    VariantExtensionType,
    VariantType,
    from_arrow_schema,
    from_arrow_type,
    to_arrow_schema,
    to_arrow_type,
)

PRIMITIVES: list[tuple[str, pa.DataType]] = [
    ("string", pa.string()),
    ("long", pa.int64()),
    ("integer", pa.int32()),
    ("short", pa.int16()),
    ("byte", pa.int8()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("decimal(10,2)", pa.decimal128(10, 2)),
    ("boolean", pa.bool_()),
    ("binary", pa.binary()),
    ("date", pa.date32()),
    ("timestamp", pa.timestamp("us", "UTC")),
    ("timestamp_ntz", pa.timestamp("us")),
    ("void", pa.null()),
]


@pytest.mark.protocol("SCH-01")
@pytest.mark.parametrize(("name", "arrow_type"), PRIMITIVES, ids=str)
def test_primitives_both_ways(name: str, arrow_type: pa.DataType) -> None:
    assert to_arrow_type(PrimitiveType(name)) == arrow_type
    assert from_arrow_type(arrow_type) == PrimitiveType(name)


@pytest.mark.parametrize(
    ("arrow_type", "name"),
    [
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "long"),
        (pa.float16(), "float"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.large_binary(), "binary"),
        (pa.binary_view(), "binary"),
        (pa.binary(16), "binary"),
        (pa.date64(), "date"),
        (pa.timestamp("ns", "Europe/Berlin"), "timestamp"),
        (pa.timestamp("s"), "timestamp_ntz"),
        (pa.dictionary(pa.int32(), pa.large_string()), "string"),
        (pa.run_end_encoded(pa.int32(), pa.int16()), "short"),
        (pa.decimal256(50, 3), "decimal(38,3)"),
        (pa.decimal128(3, -2), "decimal(5,0)"),
        (pa.uuid(), "binary"),
        (pa.json_(), "string"),
    ],
    ids=str,
)
def test_other_flavours_have_a_type(arrow_type: pa.DataType, name: str) -> None:
    assert from_arrow_type(arrow_type) == PrimitiveType(name)


@pytest.mark.parametrize(
    "list_type",
    [
        pa.list_(pa.int64()),
        pa.large_list(pa.int64()),
        pa.list_(pa.int64(), 3),
        pa.list_view(pa.int64()),
        pa.large_list_view(pa.int64()),
    ],
    ids=str,
)
def test_every_list_is_an_array(list_type: pa.DataType) -> None:
    assert from_arrow_type(list_type) == ArrayType(PrimitiveType("long"))


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.time32("s"),
        pa.time64("us"),
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.dense_union([pa.field("a", pa.int64())]),
        pa.decimal256(50, 40),
    ],
    ids=str,
)
def test_what_delta_lacks_is_refused_with_the_columns_path(arrow_type: pa.DataType) -> None:
    schema = pa.schema([("a", pa.struct([("b", pa.list_(arrow_type))]))])
    with pytest.raises(InvalidInputError, match=r"'a\.b\.element'"):
        from_arrow_schema(schema)


@pytest.mark.protocol("SCH-02", "SCH-03", "SCH-07")
def test_nested_types() -> None:
    schema = StructType(
        [
            Field(
                "m",
                MapType(
                    PrimitiveType("string"),
                    ArrayType(
                        StructType([Field("x", "date", nullable=False)]), contains_null=False
                    ),
                    value_contains_null=False,
                ),
                nullable=False,
            )
        ]
    )
    arrow = to_arrow_schema(schema)
    map_type: Any = arrow.field("m").type
    assert not arrow.field("m").nullable
    assert not map_type.item_field.nullable
    assert map_type.item_type.value_field.name == "element"
    assert not map_type.item_type.value_field.nullable
    assert from_arrow_schema(arrow) == schema


def test_large_types_on_request() -> None:
    schema = StructType([Field("a", ArrayType(PrimitiveType("string"))), Field("b", "binary")])
    arrow = to_arrow_schema(schema, as_large_types=True)
    assert arrow.field("a").type == pa.large_list(pa.field("element", pa.large_string()))
    assert arrow.field("b").type == pa.large_binary()
    assert schema.to_arrow(as_large_types=True) == arrow


@pytest.mark.protocol("B-51")
def test_a_variant_is_the_canonical_extension_type() -> None:
    kind = to_arrow_type(VariantType())
    assert isinstance(kind, VariantExtensionType)
    assert (kind.extension_name, kind.storage_type) == ("arrow.parquet.variant", VARIANT_STORAGE)
    assert from_arrow_type(kind) == VariantType()
    assert len({kind, VariantExtensionType()}) == 1


@pytest.mark.protocol("B-51")
def test_a_variant_column_crosses_ipc_and_pickle() -> None:
    storage = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x00"}, None], VARIANT_STORAGE)
    table = pa.table({"v": pa.ExtensionArray.from_storage(VARIANT, storage)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert pa.ipc.open_stream(sink.getvalue()).read_all() == table
    assert pickle.loads(pickle.dumps(table)) == table


def test_an_unknown_type_is_refused_by_its_path() -> None:
    schema = StructType([Field("s", StructType([Field("g", UnknownType("geometry"))]))])
    with pytest.raises(UnsupportedTypeError, match=r"'s\.g' has the type 'geometry'"):
        to_arrow_schema(schema)


def test_metadata_travels_as_text() -> None:
    field = Field(
        "x",
        "long",
        metadata={
            "comment": "4",
            "delta.columnMapping.id": 4,
            "delta.columnMapping.physicalName": "7",
            "delta.typeChanges": [{"toType": "long", "fromType": "short"}],
        },
    )
    arrow = field.to_arrow()
    assert arrow.metadata[b"delta.columnMapping.id"] == b"4"
    assert Field.from_arrow(arrow) == field
    assert to_arrow_schema(StructType([field])).field("x").metadata is None


@pytest.mark.parametrize("text", ["10", "null", '"x"', "true", "[1]", '{"a":1}'])
@pytest.mark.parametrize(
    "key",
    [
        "delta.generationExpression",
        "delta.columnMapping.physicalName",
        "delta.invariants",
        "__CHAR_VARCHAR_TYPE_STRING",
        "CURRENT_DEFAULT",
    ],
)
def test_what_is_a_text_by_the_protocol_is_no_json(key: str, text: str) -> None:
    field = Field.from_arrow(pa.field("x", pa.int64(), metadata={key: text}))
    assert field.metadata == {key: text}
    assert field.to_arrow().metadata == {key.encode(): text.encode()}


def test_metadata_of_files_stays_outside() -> None:
    arrow = pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "3", "comment": "c"})
    assert Field.from_arrow(arrow).metadata == {"comment": "c"}


def test_methods_as_in_deltalake() -> None:
    schema = Schema([Field("x", "long"), Field("v", "variant", nullable=False)])
    anything: Any = schema  # the stubs know __arrow_c_schema__ in some places only
    assert pa.schema(anything) == schema.to_arrow()
    assert pa.field(anything.fields[0]) == schema.fields[0].to_arrow()
    assert Schema.from_arrow(schema) == schema
    assert PrimitiveType.from_arrow(pa.int64()) == PrimitiveType("long")
    assert ArrayType.from_arrow(pa.list_(pa.int64())) == ArrayType(PrimitiveType("long"))
    with pytest.raises(InvalidInputError, match="cannot make a MapType"):
        MapType.from_arrow(pa.int64())
    with pytest.raises(InvalidInputError, match="__arrow_c_schema__"):
        Schema.from_arrow("x")


@pytest.mark.protocol("SCH-06", "D-28")
def test_void_is_always_nullable_in_arrow() -> None:
    schema = StructType([Field("v", "void", nullable=False), Field("l", ArrayType("void", False))])
    arrow = to_arrow_schema(schema)
    assert arrow.field("v").nullable
    assert arrow.field("l").type == pa.list_(pa.null())
    with pytest.raises(UnsupportedTypeError, match="'m' has keys of type void"):
        to_arrow_schema(StructType([Field("m", MapType("void", "long"))]))
