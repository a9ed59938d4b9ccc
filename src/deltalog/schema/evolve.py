"""The schema of a table merged with the schema of data.

Owns what becomes a new column, which types fit and which widen. Whether the table's features
allow it, and ids and physical names of new columns, are the caller's to see to.

Protocol: Schema Serialization Format, Type Widening
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltalog.errors import SchemaMismatchError
from deltalog.names import name_key
from deltalog.schema.columns import map_fields
from deltalog.schema.primitives import Family
from deltalog.schema.types import (
    GENERATION_EXPRESSION_KEY,
    VOID,
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
)
from deltalog.schema.widening import TypeChange, is_widening, with_change

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.schema.columns import Path
    from deltalog.schema.types import DataType

# Belongs to the column of another table, not to its data.
_TABLE_BOUND: Final = ("delta.columnMapping.", "delta.typeChanges", "delta.identity.", "parquet.")


def can_promote(from_type: DataType, to_type: DataType) -> bool:
    """Return whether every value of one type is one of the other: same, void, or a widening."""
    return from_type in (to_type, VOID) or is_widening(from_type, to_type)


def can_store(from_type: DataType, to_type: DataType) -> bool:
    """Return whether a column of one type may take data of another, if each value fits exactly.

    `conform` then checks each value.
    """
    match from_type, to_type:
        case PrimitiveType(), PrimitiveType():
            known = from_type.primitive.stored_in
            return from_type in (to_type, VOID) or to_type.primitive.name in known
        case ArrayType(), ArrayType():
            return can_store(from_type.element_type, to_type.element_type)
        case MapType(), MapType():
            return can_store(from_type.key_type, to_type.key_type) and can_store(
                from_type.value_type, to_type.value_type
            )
        case StructType(), StructType():
            fields = _by_folded_name(to_type)
            return all(
                name_key(field.name) in fields
                and can_store(field.type, fields[name_key(field.name)].type)
                for field in from_type.fields
            )
        case _:
            return from_type in (to_type, VOID)


def merge_schemas(
    current: StructType,
    incoming: StructType,
    *,
    allow_widening: bool = False,
    casts: bool = False,
) -> StructType:
    """Return the table's schema, extended by the columns that only the data has.

    Names are compared without case, and the table's spelling and order stay. New columns and
    nested fields come last and are nullable, since the rows that exist have no value for them.

    Args:
        current: of the table.
        incoming: of the data.
        allow_widening: a wider type of the same kind widens the column, which remembers it.
        casts: a plain column whose data is of another plain type stays as it is, because the data
            is cast; whether it can be is for the caller to see to.

    Raises:
        SchemaMismatchError: the data's type cannot go into the column, or a new column is a
            generated one.

    Protocol: Type Widening
    """
    if casts:
        known = _by_folded_name(current)
        incoming = StructType(
            [
                field
                for field in incoming.fields
                if name_key(field.name) not in known
                or not _needs_cast(
                    field.type, known[name_key(field.name)].type, allow_widening=allow_widening
                )
            ]
        )
    return _merge_structs(current, incoming, (), allow_widening=allow_widening)


def new_field(field: Field) -> Field:
    """Return the field as a new column of a table with rows: nullable, free of other ids."""

    def fresh(found: Field) -> Field:
        metadata = {
            key: value for key, value in found.metadata.items() if not key.startswith(_TABLE_BOUND)
        }
        return Field(found.name, found.type, nullable=True, metadata=metadata)

    return map_fields(StructType([field]), fresh).fields[0]


def reorder(incoming: StructType, like: StructType) -> StructType:
    """Return the fields of `incoming` in the order and spelling of `like`, at every depth.

    Fields that `like` lacks come last.
    """
    fields = _by_folded_name(incoming)
    known = [
        replace(
            fields[name_key(field.name)],
            name=field.name,
            type=_reorder_type(fields[name_key(field.name)].type, field.type),
        )
        for field in like.fields
        if name_key(field.name) in fields
    ]
    names = {name_key(field.name) for field in like.fields}
    return StructType(
        [*known, *(new for new in incoming.fields if name_key(new.name) not in names)]
    )


def _by_folded_name(struct: StructType) -> dict[str, Field]:
    return {name_key(field.name): field for field in struct.fields}


def _needs_cast(from_type: DataType, to_type: DataType, *, allow_widening: bool) -> bool:
    return (
        isinstance(from_type, PrimitiveType)
        and isinstance(to_type, PrimitiveType)
        and to_type != VOID
        and not can_store(from_type, to_type)
        and not (allow_widening and _is_widening_of_kind(to_type, from_type))
    )


def _merge_structs(
    current: StructType, incoming: StructType, path: Path, *, allow_widening: bool
) -> StructType:
    fields = _by_folded_name(current)
    for field in incoming.fields:
        known = fields.get(name_key(field.name))
        fields[name_key(field.name)] = (
            _evolved_field(field)
            if known is None
            else _merge_field(known, field, path, allow_widening=allow_widening)
        )
    return StructType(list(fields.values()))


def _evolved_field(field: Field) -> Field:
    if GENERATION_EXPRESSION_KEY in field.metadata:
        raise SchemaMismatchError(
            f"cannot add the column {field.name!r} of the data: its metadata has "
            f"{GENERATION_EXPRESSION_KEY}, and rows that are there have no value for it; leave "
            "the metadata out, or create the table with the column"
        )
    return new_field(field)


def _merge_field(current: Field, incoming: Field, parent: Path, *, allow_widening: bool) -> Field:
    changes: list[TypeChange] = []
    path = (*parent, current.name)
    merged = _merge_types(current.type, incoming.type, path, changes if allow_widening else None)
    result = replace(current, type=merged)
    for change in changes:
        result = with_change(result, replace(change, path=change.path[len(path) :]))
    return result


def _merge_types(
    current: DataType, incoming: DataType, path: Path, changes: list[TypeChange] | None
) -> DataType:
    """The merged type; widenings up to the next struct field go to `changes` (None: forbidden)."""
    if isinstance(current, StructType) and isinstance(incoming, StructType):
        return _merge_structs(current, incoming, path, allow_widening=changes is not None)

    def merge(one: DataType, other: DataType, segment: str) -> DataType:
        return _merge_types(one, other, (*path, segment), changes)

    return _with_parts(current, incoming, merge) or _merge_leaves(current, incoming, path, changes)


def _with_parts(
    one: DataType, other: DataType, change: Callable[[DataType, DataType, str], DataType]
) -> DataType | None:
    """A list or map with parts made of those of two types; None unless both are lists or maps."""
    match one, other:
        case ArrayType(), ArrayType():
            element = change(one.element_type, other.element_type, "element")
            return replace(one, element_type=element)
        case MapType(), MapType():
            key = change(one.key_type, other.key_type, "key")
            value = change(one.value_type, other.value_type, "value")
            return replace(one, key_type=key, value_type=value)
        case _:
            return None


def _merge_leaves(
    current: DataType, incoming: DataType, path: Path, changes: list[TypeChange] | None
) -> DataType:
    if current == VOID:
        return new_field(Field("", incoming)).type
    if changes is not None and _is_widening_of_kind(current, incoming):
        changes.append(TypeChange(current, incoming, path))
        return incoming
    if can_store(incoming, current):
        return current
    raise SchemaMismatchError(
        f"column {'.'.join(path)!r} is of type {current}, and the data has {incoming}"
    )


def _is_widening_of_kind(current: DataType, incoming: DataType) -> bool:
    # As Delta Spark: a column does not turn from whole numbers to decimals or doubles unasked.
    return is_widening(current, incoming) and (not _is_integral(current) or _is_integral(incoming))


def _is_integral(data_type: DataType) -> bool:
    return isinstance(data_type, PrimitiveType) and data_type.primitive.family is Family.INTEGRAL


def _reorder_type(incoming: DataType, like: DataType) -> DataType:
    if isinstance(incoming, StructType) and isinstance(like, StructType):
        return reorder(incoming, like)
    found = _with_parts(incoming, like, lambda part, other, _: _reorder_type(part, other))
    return found or incoming
