"""SQL types: `decimal(10, 2)`, `array<struct<a: int>>`.

Owns the conversion of sqlglot's type nodes, the lengths of `char(n)` and `varchar(n)`, which are
not types in Delta, and the collations of texts, which belong to fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from deltalog.errors import InvalidInputError
from deltalog.schema.collation_names import BY_BYTES, collation_named
from deltalog.schema.collations import with_collations
from deltalog.schema.primitives import PRIMITIVES, primitive_in_sql, primitive_named
from deltalog.schema.types import ArrayType, DataType, Field, MapType, StructType, as_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot.expressions import Expr

Limit = tuple[tuple[str, ...], str, int]
_LIMITED: Final = frozenset({"char", "character", "varchar"})
# The parts of each nested type, as paths name them.
_PARTS: Final = {"array": ("element",), "map": ("key", "value")}


def to_type(node: Expr) -> DataType:
    """The type of a node.

    Raises:
        InvalidInputError: there is no such type.
    """
    name, parts = _read(node)
    if name == "struct":
        return StructType([_field(part) for part in parts])
    if name in _PARTS:
        first, last = to_type(parts[0]), to_type(parts[-1])
        return ArrayType(first) if name == "array" else MapType(first, last)
    if name in _LIMITED:
        raise InvalidInputError("char and varchar are no types of an expression; use STRING")
    row = PRIMITIVES.get(name)
    if row is None or not parts:
        return as_type(name)
    parameters = [*(part.name for part in parts), *row.defaults[len(parts) :]]
    return as_type(f"{name}({','.join(parameters)})")


def is_narrower(node: Expr) -> bool:
    """Whether a type is an interval of fewer fields than columns have: numbers count its last."""
    found = primitive_named(node.this)
    return found is not None and found.is_ordered and node.this != found.name


def limits(node: Expr, path: tuple[str, ...] = ()) -> Iterator[Limit]:
    """Each `char(n)` and `varchar(n)` of a type: its path in the type, its name and length.

    Raises:
        InvalidInputError: there is no such type.
    """
    name, parts = _read(node)
    if name == "struct":
        for part in parts:
            yield from limits(part.args["kind"], (*path, part.name))
    elif name in _PARTS:
        for step, part in zip(_PARTS[name], parts, strict=True):
            yield from limits(part, (*path, step))
    elif name in _LIMITED:
        yield path, "varchar" if name == "varchar" else "char", int(parts[0].name)


def collations(node: Expr, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The collation that a type says of each text, by its path, but for those of structs.

    Raises:
        InvalidInputError: there is no such type or collation.
    """
    name, parts = _read(node)
    for step, part in zip(_PARTS.get(name, ()), parts, strict=False):
        yield from collations(part, (*path, step))
    given = node.args.get("collate")
    if given is not None:
        yield path, collation_named(given.name)


def texts_by_bytes(node: Expr, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of each text of which a type says the default collation, in structs too.

    Raises:
        InvalidInputError: there is no such type or collation.
    """
    name, parts = _read(node)
    if name == "struct":
        for part in parts:
            yield from texts_by_bytes(part.args["kind"], (*path, part.name))
    for step, part in zip(_PARTS.get(name, ()), parts, strict=False):
        yield from texts_by_bytes(part, (*path, step))
    given = node.args.get("collate")
    if given is not None and collation_named(given.name) == BY_BYTES:
        yield path


def has_collation(node: Expr) -> bool:
    """Whether COLLATE stands anywhere in a type."""
    return any(part.args.get("collate") is not None for part in node.walk())


def _read(node: Expr) -> tuple[str, list[Expr]]:
    """The name and the parts of a type, whose number is checked."""
    row, parts = primitive_in_sql(node.this), node.expressions
    name = row.name if row else node.this
    is_nested = bool(node.args.get("nested"))
    if name == "struct":
        is_right = is_nested
    elif name in _PARTS:
        is_right = is_nested and len(parts) == len(_PARTS[name])
    elif row and row.defaults:
        is_right = not is_nested and len(parts) <= len(row.defaults)
    else:
        is_right = not is_nested and len(parts) == (name in _LIMITED)
    if not is_right:
        raise InvalidInputError(f"expected a type, found {name} with other parts than it has")
    if not is_nested and not all(part.is_int for part in parts):
        raise InvalidInputError(f"the brackets of {name} hold whole numbers")
    return name, parts


def _field(node: Expr) -> Field:
    said = {type(one): one for one in node.args.get("constraints") or ()}
    comment = said.get(exp.CommentColumnConstraint)
    field = Field(
        node.this,
        to_type(node.args["kind"]),
        nullable=exp.NotNullColumnConstraint not in said,
        metadata=None if comment is None else {"comment": comment.name},
    )
    return with_collations(field, dict(collations(node.args["kind"])))
