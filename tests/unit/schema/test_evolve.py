from __future__ import annotations

import pytest

from deltalog.errors import (
    SchemaMismatchError,
)
from deltalog.schema import (
    ArrayType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    VariantType,
    can_store,
    check_readable_changes,
    find_field,
    merge_schemas,
    reorder,
)


def one(name: str, data_type: DataType | str) -> StructType:
    return StructType([Field(name, data_type)])


@pytest.mark.protocol("B-33", "D-38")
def test_merging_keeps_the_tables_spelling_and_puts_new_columns_last() -> None:
    current = StructType([Field("Id", "long", nullable=False), Field("s", one("A", "long"))])
    incoming = StructType(
        [
            Field(
                "new",
                "string",
                nullable=False,
                metadata={"comment": "c", "delta.columnMapping.id": 9},
            ),
            Field("S", StructType([Field("b", "date", nullable=False), Field("a", "long")])),
            Field("ID", "long"),
        ]
    )
    assert merge_schemas(current, incoming) == StructType(
        [
            Field("Id", "long", nullable=False),
            Field("s", StructType([Field("A", "long"), Field("b", "date")])),
            Field("new", "string", metadata={"comment": "c"}),
        ]
    )


@pytest.mark.protocol("B-50")
def test_merging_widens_where_that_is_allowed_and_remembers_it() -> None:
    current = StructType(
        [
            Field("a", "byte"),
            Field("l", ArrayType(MapType("short", one("x", "float")))),
            Field("d", "decimal(5,2)"),
            Field("n", "long"),
        ]
    )
    incoming = StructType(
        [
            Field("a", "long"),
            Field("l", ArrayType(MapType("integer", one("x", "double")))),
            Field("d", "decimal(10,4)"),
            Field("n", "byte"),
        ]
    )
    merged = merge_schemas(current, incoming, allow_widening=True)
    assert str(merged) == (
        "struct<a:long,l:array<map<integer,struct<x:double>>>,d:decimal(10,4),n:long>"
    )
    assert merged.fields[0].metadata == {
        "delta.typeChanges": [{"toType": "long", "fromType": "byte"}]
    }
    assert merged.fields[1].metadata == {
        "delta.typeChanges": [
            {"toType": "integer", "fromType": "short", "fieldPath": "element.key"}
        ]
    }
    assert find_field(merged, "l.element.value.x").metadata == {
        "delta.typeChanges": [{"toType": "double", "fromType": "float"}]
    }
    assert merged.fields[3].metadata == {}
    assert merge_schemas(current, incoming) == current
    check_readable_changes(merged)


@pytest.mark.protocol("B-50")
@pytest.mark.parametrize("after", ["double", "decimal(20,0)"])
def test_merging_does_not_turn_integers_into_other_numbers(after: str) -> None:
    current = one("a", "integer")
    assert merge_schemas(current, one("a", after), allow_widening=True) == current


@pytest.mark.parametrize(
    ("current", "incoming"),
    [("integer", "string"), ("string", "integer"), ("timestamp", "date"), ("boolean", "byte")],
)
def test_types_that_do_not_fit_are_named_by_their_path(current: str, incoming: str) -> None:
    with pytest.raises(SchemaMismatchError, match=rf"'s\.l\.element'.*{current}.*{incoming}"):
        merge_schemas(
            one("s", one("l", ArrayType(current))),
            one("s", one("l", ArrayType(incoming))),
            allow_widening=True,
        )


def test_plain_columns_stay_as_they_are_where_data_is_cast() -> None:
    current = StructType(
        [Field("A", "byte"), Field("b", "string"), Field("c", "byte"), Field("v", "void")]
    )
    incoming = StructType(
        [Field("a", "string"), Field("b", "long"), Field("c", "long"), Field("v", "date")]
    )
    merged = merge_schemas(current, incoming, allow_widening=True, casts=True)
    assert str(merged) == "struct<A:byte,b:string,c:long,v:date>"
    with pytest.raises(SchemaMismatchError, match="'b' is of type string"):
        merge_schemas(current, one("b", one("x", "long")), casts=True)


def test_what_can_be_stored() -> None:
    assert can_store(one("A", "long"), StructType([Field("a", "byte"), Field("b", "date")]))
    assert not can_store(one("c", "long"), one("a", "long"))
    assert can_store(MapType("string", "float"), MapType("string", "double"))
    assert not can_store(VariantType(), PrimitiveType("string"))
    assert can_store(VariantType(), VariantType())


def test_reordering_follows_the_table_at_every_depth() -> None:
    table = StructType(
        [
            Field("A", "long"),
            Field("l", ArrayType(StructType([Field("x", "long"), Field("y", "long")]))),
        ]
    )
    data = StructType(
        [
            Field("new", "long"),
            Field("L", ArrayType(StructType([Field("Y", "byte"), Field("X", "byte")]))),
            Field("a", "byte"),
        ]
    )
    assert str(reorder(data, table)) == "struct<A:byte,l:array<struct<x:byte,y:byte>>,new:long>"
