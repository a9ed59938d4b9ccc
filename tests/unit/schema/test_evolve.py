from __future__ import annotations

import pytest

from deltalog.errors import (
    InvalidInputError,
    InvalidMetadataError,
    SchemaMismatchError,
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
    add_column,
    as_type,
    can_promote,
    can_store,
    change_field,
    change_type,
    check_readable_changes,
    drop_column,
    find_field,
    is_widening,
    merge_schemas,
    move_column,
    new_field,
    rename_column,
    reorder,
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


def test_adding_columns() -> None:
    schema = StructType([Field("a", "long"), Field("l", ArrayType(one("x", "long")))])
    field = Field("n", "date", nullable=False)
    assert add_column(schema, field).names == ("a", "l", "n")
    assert add_column(schema, field, where="first").names == ("n", "a", "l")
    assert add_column(schema, field, where=("after", "A")).names == ("a", "n", "l")
    assert add_column(schema, field).fields[2].nullable
    nested = add_column(schema, field, parent="l.element", where="first")
    assert str(nested) == "struct<a:long,l:array<struct<n:date,x:long>>>"
    with pytest.raises(InvalidInputError, match="one already"):
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
