"""A schema as people read it: a tree, and a row for each column at every depth.

Owns the words; types are named as Spark names them.

Protocol: Schema Serialization Format
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.schema.columns import walk
from deltalog.schema.types import ArrayType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.schema.types import DataType, Field


def schema_tree(schema: StructType) -> list[str]:
    r"""Return a line per column, and below it those of the structs inside.

    >>> from deltalog import Field, Schema
    >>> inner = Schema([Field("lat", "double"), Field("lon", "double")])
    >>> schema = Schema([Field("id", "long", nullable=False), Field("at", inner)])
    >>> print("\n".join(schema_tree(schema)))
    ├─ id: long not null
    └─ at: struct
       ├─ lat: double
       └─ lon: double
    """
    return list(_branches(schema, ""))


def schema_rows(schema: StructType) -> list[dict[str, Any]]:
    """Return a row per column, parents first: `column`, `type`, `nullable`, `comment`.

    Columns of structs inside lists and maps have `element`, `key` or `value` in their names.
    """
    return [
        {
            "column": ".".join(path),
            "type": str(field.type),
            "nullable": field.nullable,
            "comment": field.metadata.get("comment"),
        }
        for path, field in walk(schema)
    ]


def _branches(schema: StructType, margin: str) -> Iterator[str]:
    last = len(schema) - 1
    for number, field in enumerate(schema):
        yield f"{margin}{'└─' if number == last else '├─'} {_told(field)}"
        below = margin + ("   " if number == last else "│  ")
        for inner in _structs_in(field.type):
            yield from _branches(inner, below)


def _told(field: Field) -> str:
    comment = field.metadata.get("comment")
    return (
        f"{field.name}: {_short(field.type)}"
        + ("" if field.nullable else " not null")
        + (f"  -- {comment}" if comment else "")
    )


def _short(kind: DataType) -> str:
    """Return a type's name; the members of structs stand below."""
    match kind:
        case StructType():
            return "struct"
        case ArrayType():
            return f"array<{_short(kind.element_type)}>"
        case MapType():
            return f"map<{_short(kind.key_type)},{_short(kind.value_type)}>"
        case _:
            return str(kind)


def _structs_in(kind: DataType) -> Iterator[StructType]:
    """Yield the outermost structs of a type, those of a map's keys before those of its values."""
    match kind:
        case StructType():
            yield kind
        case ArrayType():
            yield from _structs_in(kind.element_type)
        case MapType():
            yield from _structs_in(kind.key_type)
            yield from _structs_in(kind.value_type)
        case _:
            return
