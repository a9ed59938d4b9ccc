from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.protocol.table_change.change import changed_table
from deltalog.schema import ArrayType, Field, MapType, StructType, find_field
from tests.support.table_changes import NESTED, PLAIN, columns, table


@pytest.mark.protocol("B-50")
def test_a_wider_type_is_remembered_once() -> None:
    before = table(NESTED, configuration={"delta.enableTypeWidening": "true"})
    wider = StructType(
        [
            NESTED.fields[0],
            Field("s", StructType([Field("x", "long"), Field("y", "string")])),
            Field("a", ArrayType(StructType([Field("z", "integer")]))),
        ]
    )
    after = changed_table(before, schema=wider)
    entry = {"toType": "long", "fromType": "integer"}
    assert find_field(after.schema, "s.x").metadata == {"delta.typeChanges": [entry]}
    assert len(find_field(after.schema, "a.element.z").metadata["delta.typeChanges"]) == 1
    assert changed_table(after, schema=after.schema).schema == after.schema


@pytest.mark.protocol("B-50")
def test_types_stay_where_widening_is_off_or_is_none() -> None:
    wider = StructType([*PLAIN.fields[:2], Field("n", "long")])
    with pytest.raises(InvalidInputError, match=r"delta\.enableTypeWidening"):
        changed_table(table(), schema=wider)
    on = table(configuration={"delta.enableTypeWidening": "true"})
    for other in ("short", "string", "boolean"):
        narrower = StructType([*PLAIN.fields[:2], Field("n", other)])
        with pytest.raises(InvalidInputError, match="not a wider type"):
            changed_table(on, schema=narrower)
    with pytest.raises(InvalidInputError, match="not a wider type"):
        changed_table(on, schema=StructType([*PLAIN.fields[:2], Field("n", ArrayType("long"))]))


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (StructType(PLAIN.fields[:2]), "cannot drop or rename the column 'n'"),
        (StructType([*PLAIN.fields[:2], Field("m", "integer")]), "cannot drop or rename"),
        (StructType([*PLAIN.fields[:2], Field("N", "integer")]), "cannot drop or rename"),
        (columns(*PLAIN.fields[1:], Field("x", "long", nullable=False)), "NOT NULL"),
        (columns(*PLAIN.fields[1:], Field("ID", "long")), "the same name"),
        (columns(*PLAIN.fields[1:], Field("a b", "long")), "column mapping"),
    ],
)
def test_schemas_that_files_cannot_follow(after: StructType, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        changed_table(table(), schema=after)


def test_nested_null_cannot_be_forbidden_while_files_stay() -> None:
    schema = columns(Field("a", ArrayType("long")), Field("m", MapType("string", "long")))
    after = columns(
        Field("a", ArrayType("long", contains_null=False)), Field("m", MapType("string", "long"))
    )
    with pytest.raises(InvalidInputError, match="NULL inside 'a'"):
        changed_table(table(schema), schema=after)
