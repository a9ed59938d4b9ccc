"""Type widening: what the protocol allows, and how a field remembers it."""

from __future__ import annotations

import pytest

from deltalog.errors import (
    InvalidMetadataError,
    UnsupportedTypeError,
)
from deltalog.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    TypeChange,
    VariantType,
    can_promote,
    check_readable_changes,
    is_widening,
    widening_changes,
)

INTEGERS = ["byte", "short", "integer", "long"]


TYPES = [
    *INTEGERS,
    "float",
    "double",
    "decimal(3,0)",
    "decimal(10,0)",
    "decimal(10,2)",
    "decimal(11,1)",
    "decimal(12,1)",
    "decimal(20,0)",
    "decimal(20,1)",
    "decimal(21,1)",
    "string",
    "binary",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "void",
]


ALLOWED = {
    "byte": "short integer long double decimal(10,0) decimal(11,1) decimal(12,1) decimal(20,0) "
    "decimal(20,1) decimal(21,1)",
    "short": "integer long double decimal(10,0) decimal(11,1) decimal(12,1) decimal(20,0) "
    "decimal(20,1) decimal(21,1)",
    "integer": "long double decimal(10,0) decimal(11,1) decimal(12,1) decimal(20,0) decimal(20,1) "
    "decimal(21,1)",
    "long": "decimal(20,0) decimal(21,1)",
    "float": "double",
    "date": "timestamp_ntz",
    "decimal(3,0)": "decimal(10,0) decimal(10,2) decimal(11,1) decimal(12,1) decimal(20,0) "
    "decimal(20,1) decimal(21,1)",
    "decimal(10,0)": "decimal(11,1) decimal(12,1) decimal(20,0) decimal(20,1) decimal(21,1)",
    "decimal(10,2)": "",
    "decimal(11,1)": "decimal(12,1) decimal(20,1) decimal(21,1)",
    "decimal(12,1)": "decimal(20,1) decimal(21,1)",
    "decimal(20,0)": "decimal(21,1)",
    "decimal(20,1)": "decimal(21,1)",
}


def one(name: str, data_type: DataType | str) -> StructType:
    return StructType([Field(name, data_type)])


@pytest.mark.protocol("B-50")
@pytest.mark.parametrize("before", TYPES)
def test_the_table_of_widenings(before: str) -> None:
    wider = {after for after in TYPES if is_widening(PrimitiveType(before), PrimitiveType(after))}
    assert wider == set(ALLOWED.get(before, "").split())


@pytest.mark.protocol("B-50")
def test_nested_types_do_not_widen_as_a_whole() -> None:
    assert not is_widening(ArrayType("byte"), ArrayType("short"))
    assert not is_widening(PrimitiveType("long"), VariantType())
    assert can_promote(PrimitiveType("void"), ArrayType("short"))
    assert not can_promote(PrimitiveType("long"), PrimitiveType("integer"))


@pytest.mark.protocol("B-50", "D-68")
def test_changes_are_read_from_the_metadata() -> None:
    field = Field(
        "m",
        MapType("string", ArrayType("long")),
        metadata={
            "delta.typeChanges": [
                {"fromType": "short", "toType": "integer", "fieldPath": "value.element"},
                {"toType": "long", "fromType": "integer", "tableVersion": 2},
            ]
        },
    )
    assert widening_changes(field) == (
        TypeChange(PrimitiveType("short"), PrimitiveType("integer"), ("value", "element")),
        TypeChange(PrimitiveType("integer"), PrimitiveType("long")),
    )
    check_readable_changes(StructType([field]))
    assert widening_changes(Field("x", "long")) == ()


@pytest.mark.protocol("B-50")
def test_early_writers_decimals_are_readable() -> None:
    change = {"fromType": "byte", "toType": "decimal(4,1)"}
    check_readable_changes(
        StructType([Field("x", "decimal(4,1)", metadata={"delta.typeChanges": [change]})])
    )


@pytest.mark.protocol("B-50")
@pytest.mark.parametrize(
    ("before", "after"),
    [("string", "long"), ("long", "integer"), ("short", "decimal(5,1)"), ("geo", "x")],
)
def test_an_unknown_change_is_refused_by_its_path(before: str, after: str) -> None:
    change = {"fromType": before, "toType": after, "fieldPath": "element"}
    inner = Field("x", ArrayType("long"), metadata={"delta.typeChanges": [change]})
    with pytest.raises(UnsupportedTypeError, match="x"):
        check_readable_changes(one("s", StructType([inner])))


@pytest.mark.parametrize(
    "entry", ["x", [3], [{"fromType": "byte"}], [{"fromType": 1, "toType": 2}]]
)
def test_malformed_changes(entry: object) -> None:
    with pytest.raises(InvalidMetadataError, match=r"delta\.typeChanges"):
        widening_changes(Field("x", "long", metadata={"delta.typeChanges": entry}))
