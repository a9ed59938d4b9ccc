"""A schema as people read it: a tree, and a row for each column at every depth.

Owns the words; types are named as Spark names them.

Protocol: Schema Serialization Format
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.schema.columns import walk
from deltalog.schema.types import ArrayType, MapType, StructType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    return list(_branches(list(_fields_in(schema)), ""))


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


def _branches(named: Sequence[tuple[str, Field]], margin: str) -> Iterator[str]:
    for left, (name, field) in enumerate(named, start=1 - len(named)):
        yield f"{margin}{'├─' if left else '└─'} {name}: {_told(field)}"
        yield from _branches(list(_fields_in(field.type)), margin + ("│  " if left else "   "))


def _fields_in(kind: DataType, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield the fields of the outermost structs of a type, and how they are called there."""
    match kind:
        case StructType():
            yield from ((f"{prefix}{field.name}", field) for field in kind)
        case ArrayType():
            yield from _fields_in(kind.element_type, f"{prefix}element.")
        case MapType():
            yield from _fields_in(kind.key_type, f"{prefix}key.")
            yield from _fields_in(kind.value_type, f"{prefix}value.")
        case _:
            return


def _told(field: Field) -> str:
    comment = field.metadata.get("comment")
    return (
        _short(field.type)
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
