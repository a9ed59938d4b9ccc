"""The schema of a table, altered column by column.

Owns the edits: add, drop, rename, move, retype. Whether the table's features allow them, and ids
and physical names of new columns, are the caller's to see to.

Protocol: Schema Serialization Format, Type Widening
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from deltalog.errors import InvalidInputError
from deltalog.names import name_key
from deltalog.schema.collations import renamed
from deltalog.schema.columns import Path, canonical_path_of, find_field
from deltalog.schema.evolve import new_field
from deltalog.schema.types import VOID, ArrayType, Field, MapType, StructType
from deltalog.schema.widening import TypeChange, is_widening, with_change

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.schema.types import DataType

Where = Literal["first", "last"] | tuple[Literal["after"], str]


def add_column(
    schema: StructType, field: Field, *, parent: str | Path = (), where: Where = "last"
) -> StructType:
    """Return the schema with one more column, or one more field of the struct at `parent`.

    Raises:
        InvalidInputError: the name is taken, the parent is no struct, or the column to come after
            does not exist.
    """

    def add(struct: StructType) -> StructType:
        if name_key(field.name) in {name_key(known.name) for known in struct.fields}:
            raise InvalidInputError(f"cannot add the column {field.name!r}: there is one already")
        return StructType(_insert(struct.fields, new_field(field), where))

    return _edit_struct(schema, parent, add)


def drop_column(schema: StructType, path: str | Path) -> StructType:
    """Return the schema without a column or nested field.

    Raises:
        InvalidInputError: there is no such column, or it is the last one of its struct.
    """
    *parent, name = canonical_path_of(schema, path)

    def drop(struct: StructType) -> StructType:
        if len(struct) == 1:
            raise InvalidInputError(f"cannot drop {name!r}: a struct needs at least one field")
        return StructType([field for field in struct.fields if field.name != name])

    return _edit_struct(schema, tuple(parent), drop)


def rename_column(schema: StructType, path: str | Path, new_name: str) -> StructType:
    """Return the schema with another display name for a column or nested field.

    Raises:
        InvalidInputError: there is no such column, or the new name is taken.
    """
    *parent, name = canonical_path_of(schema, path)

    def rename(struct: StructType) -> StructType:
        taken = {name_key(field.name) for field in struct.fields if field.name != name}
        if name_key(new_name) in taken:
            raise InvalidInputError(f"cannot rename {name!r} to {new_name!r}: the name is taken")
        return _replace_field(struct, name, lambda field: renamed(field, new_name))

    return _edit_struct(schema, tuple(parent), rename)


def move_column(schema: StructType, path: str | Path, where: Where) -> StructType:
    """Return the schema with a column or nested field at another place in its struct.

    Raises:
        InvalidInputError: one of the columns does not exist.
    """
    *parent, name = canonical_path_of(schema, path)

    def move(struct: StructType) -> StructType:
        (moved,) = [field for field in struct.fields if field.name == name]
        others = tuple(field for field in struct.fields if field.name != name)
        return StructType(_insert(others, moved, where))

    return _edit_struct(schema, tuple(parent), move)


def change_field(
    schema: StructType, path: str | Path, change: Callable[[Field], Field]
) -> StructType:
    """Return the schema with one struct field replaced: its comment, default or nullability.

    Raises:
        InvalidInputError: there is no such column, or the path ends inside a list or map.
    """
    *parent, name = canonical_path_of(schema, path)
    return _edit_struct(schema, tuple(parent), lambda struct: _replace_field(struct, name, change))


def change_type(schema: StructType, path: str | Path, to_type: DataType) -> StructType:
    """Return the schema with a wider type at a path; it may end in `element`, `key` or `value`.

    The nearest struct field remembers the change; a void column becomes any type without that.

    Raises:
        InvalidInputError: there is no such column, or the type would not become wider.

    Protocol: Writer Requirements for Type Widening
    """
    canonical = canonical_path_of(schema, path)
    before = find_field(schema, canonical).type
    if before == to_type:
        return schema
    if before != VOID and not is_widening(before, to_type):
        raise InvalidInputError(
            f"cannot change the type of {'.'.join(canonical)!r} from {before} to {to_type}: "
            "that is no widening; write the data into a new column"
        )
    depth = _depth_of_field(schema, canonical)
    inner = canonical[depth:]

    def widen(field: Field) -> Field:
        widened = replace(field, type=_edit_type(field.type, inner, lambda _: to_type))
        if before == VOID:
            return widened
        return with_change(widened, TypeChange(before, to_type, inner))

    return change_field(schema, canonical[:depth], widen)


def _insert(fields: Sequence[Field], field: Field, where: Where) -> list[Field]:
    if where == "first":
        return [field, *fields]
    if where == "last":
        return [*fields, field]
    given: object = where
    if not (isinstance(given, tuple) and len(given) == 2 and given[0] == "after"):
        raise InvalidInputError(
            f"where: expected 'first', 'last' or ('after', name), found {where!r}"
        )
    _, name = where
    at = canonical_path_of(StructType(fields), (name,))[0]
    place = 1 + [other.name for other in fields].index(at)
    return [*fields[:place], field, *fields[place:]]


def _replace_field(struct: StructType, name: str, change: Callable[[Field], Field]) -> StructType:
    if name not in struct.names:
        raise InvalidInputError(f"there is no column {name!r}")
    return StructType([change(field) if field.name == name else field for field in struct.fields])


def _edit_struct(
    schema: StructType, parent: str | Path, change: Callable[[StructType], StructType]
) -> StructType:
    path = canonical_path_of(schema, parent) if parent else ()

    def edit(found: DataType) -> DataType:
        if not isinstance(found, StructType):
            raise InvalidInputError(f"{found} has no fields: expected a struct")
        return change(found)

    result = _edit_type(schema, path, edit)
    return result if isinstance(result, StructType) else schema


def _edit_type(data_type: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    if not path:
        return change(data_type)
    return _set_child(data_type, path[0], lambda child: _edit_type(child, path[1:], change))


def _set_child(data_type: Any, name: str, change: Callable[[DataType], DataType]) -> DataType:
    match data_type:
        case StructType():
            return _replace_field(
                data_type, name, lambda field: replace(field, type=change(field.type))
            )
        case ArrayType():
            return replace(data_type, element_type=change(data_type.element_type))
        case MapType() if name == "key":
            return replace(data_type, key_type=change(data_type.key_type))
        case MapType():
            return replace(data_type, value_type=change(data_type.value_type))
        case _:
            raise InvalidInputError(f"{data_type} has no field {name!r}")


def _depth_of_field(schema: StructType, path: Path) -> int:
    """The number of segments that lead to the last struct field on the path."""
    current: DataType = schema
    depth = 0
    for at, segment in enumerate(path, start=1):
        if isinstance(current, StructType):
            depth = at
        current = find_field(StructType([Field("x", current)]), ("x", segment)).type
    return depth
