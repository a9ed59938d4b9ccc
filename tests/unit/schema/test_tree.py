"""A schema as a tree, and as rows."""

from __future__ import annotations

from deltalog import ArrayType, Field, MapType, Schema
from deltalog.schema.columns import schema_rows, schema_tree

INNER = Schema([Field("x", "long", nullable=False)])
SCHEMA = Schema(
    [
        Field("plain", "string", metadata={"comment": "what it is"}),
        Field("pairs", MapType(INNER, ArrayType(INNER))),
        Field("last", INNER),
    ]
)


def test_structs_stand_below_the_column_that_holds_them() -> None:
    assert schema_tree(SCHEMA) == [
        "├─ plain: string  -- what it is",
        "├─ pairs: map<struct,array<struct>>",
        "│  ├─ key.x: long not null",
        "│  └─ value.element.x: long not null",
        "└─ last: struct",
        "   └─ x: long not null",
    ]
    assert schema_tree(Schema([])) == []


def test_rows_are_at_every_depth() -> None:
    rows = schema_rows(SCHEMA)
    assert [row["column"] for row in rows] == [
        "plain",
        "pairs",
        "pairs.key.x",
        "pairs.value.element.x",
        "last",
        "last.x",
    ]
    assert rows[0] == {
        "column": "plain",
        "type": "string",
        "nullable": True,
        "comment": "what it is",
    }
