"""The schema of a table, merged with that of data.

Owns what becomes a new column, which types fit and which widen. Whether the table's features
allow it, and ids and physical names of new columns, are the caller's to see to.

Protocol: Schema Serialization Format, Type Widening
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltalog.errors import SchemaMismatchError
from deltalog.schema.primitives import Family
from deltalog.schema.types import VOID, ArrayType, Field, MapType, PrimitiveType, StructType
from deltalog.schema.widening import TypeChange, is_widening, with_change

if TYPE_CHECKING:
    from deltalog.schema.columns import Path
    from deltalog.schema.types import DataType

# Belongs to the column of another table, not to its data.
_TABLE_BOUND: Final = ("delta.columnMapping.", "delta.typeChanges", "delta.identity.", "parquet.")


def can_promote(from_type: DataType, to_type: DataType) -> bool:
    """Whether every value of one type is a value of the other: the same, void, or a widening."""
    return from_type in (to_type, VOID) or is_widening(from_type, to_type)


def can_store(from_type: DataType, to_type: DataType) -> bool:
    """Whether data of one type may go into a column of the other, where the values fit exactly.

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
                field.name.lower() in fields
                and can_store(field.type, fields[field.name.lower()].type)
                for field in from_type.fields
            )
        case _:
            return from_type in (to_type, VOID)


def merge_schemas(
    current: StructType, incoming: StructType, *, allow_widening: bool = False
) -> StructType:
    """The table's schema, with the columns that only the data has.

    Names are compared without case, and the table's spelling and order stay. New columns and
    nested fields come last and are nullable, since the rows that exist have no value for them.

    Args:
        current: of the table.
        incoming: of the data.
        allow_widening: a wider type of the same kind widens the column, which remembers it.

    Raises:
        SchemaMismatchError: the data's type cannot go into the column.

    Protocol: Type Widening
    """
    return _merge_structs(current, incoming, (), allow_widening=allow_widening)


def new_field(field: Field) -> Field:
    """The field as a new column of a table that has rows: nullable, free of another table's ids."""
    metadata = {
        key: value for key, value in field.metadata.items() if not key.startswith(_TABLE_BOUND)
    }
    return Field(field.name, _new_type(field.type), nullable=True, metadata=metadata)


def reorder(incoming: StructType, like: StructType) -> StructType:
    """The fields of `incoming` in the order and spelling of `like`, at every depth.

    Fields that `like` lacks come last.
    """
    fields = _by_folded_name(incoming)
    known = [
        replace(
            fields[field.name.lower()],
            name=field.name,
            type=_reorder_type(fields[field.name.lower()].type, field.type),
        )
        for field in like.fields
        if field.name.lower() in fields
    ]
    names = {field.name.lower() for field in like.fields}
    return StructType([*known, *(new for new in incoming.fields if new.name.lower() not in names)])


def _by_folded_name(struct: StructType) -> dict[str, Field]:
    return {field.name.lower(): field for field in struct.fields}


def _merge_structs(
    current: StructType, incoming: StructType, path: Path, *, allow_widening: bool
) -> StructType:
    fields = _by_folded_name(current)
    for field in incoming.fields:
        known = fields.get(field.name.lower())
        fields[field.name.lower()] = (
            new_field(field)
            if known is None
            else _merge_field(known, field, path, allow_widening=allow_widening)
        )
    return StructType(list(fields.values()))


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
    match current, incoming:
        case StructType(), StructType():
            return _merge_structs(current, incoming, path, allow_widening=changes is not None)
        case ArrayType(), ArrayType():
            element = _merge_types(
                current.element_type, incoming.element_type, (*path, "element"), changes
            )
            return replace(current, element_type=element)
        case MapType(), MapType():
            return replace(
                current,
                key_type=_merge_types(current.key_type, incoming.key_type, (*path, "key"), changes),
                value_type=_merge_types(
                    current.value_type, incoming.value_type, (*path, "value"), changes
                ),
            )
        case _:
            return _merge_leaves(current, incoming, path, changes)


def _merge_leaves(
    current: DataType, incoming: DataType, path: Path, changes: list[TypeChange] | None
) -> DataType:
    if current == VOID:
        return _new_type(incoming)
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


def _new_type(data_type: DataType) -> DataType:
    match data_type:
        case StructType():
            return StructType([new_field(field) for field in data_type.fields])
        case ArrayType():
            return replace(data_type, element_type=_new_type(data_type.element_type))
        case MapType():
            return replace(
                data_type,
                key_type=_new_type(data_type.key_type),
                value_type=_new_type(data_type.value_type),
            )
        case _:
            return data_type


def _reorder_type(incoming: DataType, like: DataType) -> DataType:
    match incoming, like:
        case StructType(), StructType():
            return reorder(incoming, like)
        case ArrayType(), ArrayType():
            return replace(
                incoming, element_type=_reorder_type(incoming.element_type, like.element_type)
            )
        case MapType(), MapType():
            return replace(
                incoming,
                key_type=_reorder_type(incoming.key_type, like.key_type),
                value_type=_reorder_type(incoming.value_type, like.value_type),
            )
        case _:
            return incoming
