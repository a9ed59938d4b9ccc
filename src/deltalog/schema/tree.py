"""A schema as people read it: a tree, its notebook card, and a row for each column at every depth.

Owns the words; types are named as Spark names them.

Protocol: Schema Serialization Format
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from deltalog.cards import card, grid, indented
from deltalog.schema.columns import walk
from deltalog.schema.types import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    ArrayType,
    MapType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.schema.types import DataType, Field

_MOST_SHOWN: Final = 300
_LIMITED_KEY: Final = "__CHAR_VARCHAR_TYPE_STRING"
_PHYSICAL_KEY: Final = "delta.columnMapping.physicalName"


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


def schema_card(schema: StructType) -> str:
    """Return the notebook card: the tree, with what is told of each column."""
    rows = _deep(schema, 0)
    shown = [
        (
            indented(name, depth),
            str(field.metadata.get(_LIMITED_KEY, _short(field.type))),
            "" if field.nullable else "not null",
            _about(field),
        )
        for depth, name, field in islice(rows, _MOST_SHOWN)
    ]
    more = sum(1 for _ in rows)
    if more:
        shown.append((indented(f"… {more} more", 0), "", "", ""))
    columns = "1 column" if len(schema) == 1 else f"{len(schema)} columns"
    return card(columns, grid(shown, ("column", "type", "", "about")))


def _deep(kind: DataType, depth: int) -> Iterator[tuple[int, str, Field]]:
    for name, field in _fields_in(kind):
        yield depth, name, field
        yield from _deep(field.type, depth + 1)


def _about(field: Field) -> str:
    """Tell what the log says of a column, whatever it holds there."""
    known = field.metadata
    told = [str(known["comment"])] if known.get("comment") is not None else []
    if (default := known.get(CURRENT_DEFAULT_KEY)) is not None:
        told.append(f"default {default}")
    if (expression := known.get(GENERATION_EXPRESSION_KEY)) is not None:
        told.append(f"generated as {expression}")
    if (start := known.get(IDENTITY_START_KEY)) is not None:
        told.append(f"identity from {start} by {known.get(IDENTITY_STEP_KEY)}")
    stored = known.get(_PHYSICAL_KEY)
    if stored is not None and stored != field.name:
        told.append(f"stored as {stored}")
    return "; ".join(told)


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
