from __future__ import annotations

import pytest

from deltalog.errors import InvalidMetadataError
from deltalog.schema import (
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    UnknownType,
    VariantType,
    encode_schema,
    encode_type,
    parse_schema,
    parse_type,
)

WORKED_EXAMPLE = (
    '{"type":"struct","fields":['
    '{"name":"a","type":"integer","nullable":false,"metadata":{}},'
    '{"name":"b","type":{"type":"struct","fields":['
    '{"name":"d","type":"integer","nullable":false,"metadata":{}}]},"nullable":true,"metadata":{}},'
    '{"name":"c","type":{"type":"array","elementType":"integer","containsNull":false},'
    '"nullable":true,"metadata":{}},'
    '{"name":"e","type":{"type":"array","elementType":{"type":"struct","fields":['
    '{"name":"d","type":"integer","nullable":false,"metadata":{}}]},"containsNull":true},'
    '"nullable":true,"metadata":{}},'
    '{"name":"f","type":{"type":"map","keyType":"string","valueType":"string",'
    '"valueContainsNull":true},"nullable":true,"metadata":{}}]}'
)


def one_column(json_type: str) -> str:
    return (
        '{"type":"struct","fields":[{"name":"x","type":'
        + json_type
        + ',"nullable":true,"metadata":{}}]}'
    )


@pytest.mark.protocol("SCH-02", "SCH-03")
def test_the_protocols_worked_example_round_trips() -> None:
    schema = parse_schema(WORKED_EXAMPLE)
    assert schema.names == ("a", "b", "c", "e", "f")
    assert schema.fields[0] == Field("a", "integer", nullable=False)
    assert schema.fields[2].type == ArrayType(PrimitiveType("integer"), contains_null=False)
    assert schema.fields[4].type == MapType(PrimitiveType("string"), PrimitiveType("string"))
    assert encode_schema(schema) == WORKED_EXAMPLE


@pytest.mark.protocol("SCH-01", "SCH-06")
@pytest.mark.parametrize(
    "name",
    [
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "decimal(10,2)",
        "boolean",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "void",
    ],
)
def test_primitive_names(name: str) -> None:
    assert parse_type(f'"{name}"') == PrimitiveType(name)
    assert encode_type(PrimitiveType(name)) == f'"{name}"'


@pytest.mark.protocol("SCH-01", "SCH-04")
def test_a_bare_decimal_has_ten_digits() -> None:
    assert parse_type('"decimal"') == PrimitiveType("decimal(10,0)")
    assert parse_type('"decimal( 38 , 10 )"') == PrimitiveType("decimal(38,10)")


@pytest.mark.protocol("SCH-04")
@pytest.mark.parametrize("name", ["decimal(39,0)", "decimal(5,6)", "decimal(0,0)", "decimal(x)"])
def test_a_decimal_out_of_range_is_invalid(name: str) -> None:
    with pytest.raises(InvalidMetadataError, match=r"fields\[0\] \(x\)\.type"):
        parse_schema(one_column(f'"{name}"'))


@pytest.mark.protocol("SCH-03")
def test_absent_nullability_means_that_null_is_allowed() -> None:
    text = '{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"long"}}'
    assert parse_type(text) == MapType("string", ArrayType("long"))
    assert encode_type(parse_type(text)) == (
        '{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"long",'
        '"containsNull":true},"valueContainsNull":true}'
    )


@pytest.mark.protocol("SCH-05", "CM-04", "D-39")
def test_field_metadata_is_kept_whole_and_in_order() -> None:
    metadata = (
        '{"z":1,"delta.columnMapping.id":5,"delta.columnMapping.physicalName":"col-a7",'
        '"__CHAR_VARCHAR_TYPE_STRING":"varchar(3)","a":[{"b":null}],"delta.identity.start":1,'
        '"comment":"ü \\"q\\""}'
    )
    text = one_column('"string"').replace('"metadata":{}', f'"metadata":{metadata}')
    assert encode_schema(parse_schema(text)) == text


@pytest.mark.protocol("SCH-05")
def test_numbers_beyond_64_bits_in_metadata_survive() -> None:
    text = one_column('"long"').replace('"metadata":{}', '"metadata":{"n":123456789012345678901}')
    assert encode_schema(parse_schema(text)) == text


@pytest.mark.protocol("SCH-01")
@pytest.mark.parametrize(
    "json_type",
    [
        '"geography(OGC:CRS84, STRAIGHT)"',
        '"interval month to day"',
        '{"type":"udt","class":"org.example.Point","sqlType":{"type":"struct","fields":[]}}',
    ],
)
def test_unknown_types_are_kept(json_type: str) -> None:
    schema = parse_schema(one_column(json_type))
    assert isinstance(schema.fields[0].type, UnknownType)
    assert encode_schema(schema) == one_column(json_type)


@pytest.mark.protocol("B-51")
def test_variant_by_name() -> None:
    assert parse_type('"variant"') == VariantType()
    assert encode_type(VariantType()) == '"variant"'


def test_a_name_of_old_delta_rs_is_understood() -> None:
    assert parse_type('"timestampNtz"') == PrimitiveType("timestamp_ntz")


@pytest.mark.protocol("SCH-07")
def test_deep_nesting() -> None:
    deep: PrimitiveType | StructType | ArrayType | MapType = PrimitiveType("long")
    for level in range(10):
        deep = StructType([Field(f"s{level}", MapType(PrimitiveType("string"), ArrayType(deep)))])
    schema = StructType([Field("top", deep)])
    assert parse_schema(encode_schema(schema)) == schema


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{", "schemaString"),
        ("[]", "schemaString"),
        ('"long"', "expected a struct"),
        ('{"type":"struct"}', r"schemaString\.fields"),
        ('{"type":"struct","fields":[3]}', r"fields\[0\]"),
        ('{"type":"struct","fields":[{"type":"long"}]}', r"fields\[0\]\.name"),
        ('{"type":"struct","fields":[{"name":"x"}]}', r"fields\[0\] \(x\)\.type"),
        ('{"type":"struct","fields":[{"name":"x","type":7}]}', r"\(x\)\.type"),
        (
            '{"type":"struct","fields":[{"name":"x","type":"long","nullable":"yes"}]}',
            r"fields\[0\]\.nullable",
        ),
        (
            '{"type":"struct","fields":[{"name":"x","type":"long","metadata":[]}]}',
            r"fields\[0\]\.metadata",
        ),
        (one_column('{"type":"array"}'), r"\(x\)\.type\.elementType"),
        (one_column('{"type":"map","keyType":"string"}'), r"\(x\)\.type\.valueType"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(text: str, where: str) -> None:
    with pytest.raises(InvalidMetadataError, match=where):
        parse_schema(text)


def nested(kind: str, times: int) -> str:
    """A schema of one column, whose type is nested so many times."""
    inner = '"long"'
    for _ in range(times):
        inner = {
            "struct": f'{{"type":"struct","fields":[{{"name":"a","type":{inner}}}]}}',
            "array": f'{{"type":"array","elementType":{inner}}}',
            "map": f'{{"type":"map","keyType":"string","valueType":{inner}}}',
        }[kind]
    return f'{{"type":"struct","fields":[{{"name":"a","type":{inner}}}]}}'


@pytest.mark.parametrize(("kind", "most"), [("struct", 89), ("array", 44), ("map", 44)])
def test_types_are_as_deep_as_files_can_be_read(kind: str, most: int) -> None:
    assert parse_schema(nested(kind, most)).names == ("a",)
    for times in (most + 1, 200, 5_000):
        with pytest.raises(InvalidMetadataError, match=r"schemaString"):
            parse_schema(nested(kind, times))


@pytest.mark.parametrize("digits", [19, 5_000])
def test_a_decimal_of_absurd_precision_is_refused(digits: int) -> None:
    with pytest.raises(InvalidMetadataError, match="precision"):
        parse_type(f'"decimal({"9" * digits},2)"')
