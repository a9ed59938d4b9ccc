"""The columns of Iceberg tables in Delta's words, with the ids by which files hold them.

Owns which types have an equal in Delta, and by which columns rows can be deleted.

Protocol: Column Mapping, Primitive Types; Iceberg Table Spec: Schemas and Data Types, Equality
Delete Files
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyiceberg import types

from deltalog.column_mapping import ID_KEY, PHYSICAL_NAME_KEY
from deltalog.errors import UnsupportedTypeError
from deltalog.features.iceberg_compat import NESTED_IDS_KEY
from deltalog.iceberg.deletes import EqualityColumn, refused
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyiceberg.schema import Schema

    from deltalog.schema.types import DataType

_COMMENT: Final = "comment"

_TYPES: Final[dict[type[types.IcebergType], DataType]] = {
    types.BooleanType: BOOLEAN,
    types.IntegerType: INTEGER,
    types.LongType: LONG,
    types.FloatType: FLOAT,
    types.DoubleType: DOUBLE,
    types.DateType: DATE,
    types.TimestampType: TIMESTAMP_NTZ,
    types.TimestamptzType: TIMESTAMP,
    types.StringType: STRING,
    types.BinaryType: BINARY,
    types.FixedType: BINARY,
}


def delta_schema(fields: Sequence[types.NestedField], root: str) -> StructType:
    """The columns of a table, or of a struct.

    Args:
        fields: with their ids, which become those of column mapping.
        root: location of the table, for messages.

    Raises:
        InvalidInputError: a column has a default.
        UnsupportedTypeError: Delta has no such type.
    """
    return StructType([_field(field, root) for field in fields])


def equality_column(schemas: Iterable[Schema], number: int, root: str) -> EqualityColumn:
    """The column with an id by whose values rows are deleted; it may have been dropped since.

    Args:
        schemas: of the table: the first one that has the column tells its type.
        number: the id.
        root: location of the table, for messages.

    Raises:
        InvalidInputError: there is no such column, it has a default, or it cannot be compared.
        UnsupportedTypeError: Delta has no such type.
    """
    path = next((path for one in schemas if (path := _path_to(one.fields, number))), ())
    if not path:
        raise refused(
            root,
            f"rows are deleted by the values of column {number}, which is none of its columns, or "
            "a part of a list or map",
        )
    for one in path:
        _check_default(one, root)
    leaf = path[-1]
    kind = _type(leaf.field_type, leaf.name, root)
    if not isinstance(kind, PrimitiveType) or kind in {FLOAT, DOUBLE}:
        raise refused(
            root,
            f"rows are deleted by the values of column {leaf.name!r}, whose type {kind} cannot be "
            "compared for that",
        )
    field = Field(leaf.name, kind, metadata={ID_KEY: leaf.field_id})
    for one in reversed(path[:-1]):
        field = Field(one.name, StructType([field]), metadata={ID_KEY: one.field_id})
    inner = tuple(one.name for one in path[1:])
    return EqualityColumn(replace(field, name=str(leaf.field_id)), kind, inner)


def _path_to(fields: Sequence[types.NestedField], number: int) -> tuple[types.NestedField, ...]:
    """The column with an id and the structs around it; empty if there is none."""
    for field in fields:
        if field.field_id == number:
            return (field,)
        if isinstance(field.field_type, types.StructType):
            inner = _path_to(field.field_type.fields, number)
            if inner:
                return (field, *inner)
    return ()


def _field(field: types.NestedField, root: str) -> Field:
    _check_default(field, root)
    metadata: dict[str, Any] = {ID_KEY: field.field_id, PHYSICAL_NAME_KEY: field.name}
    nested = dict(_nested_ids(field.field_type, field.name))
    if nested:
        metadata[NESTED_IDS_KEY] = nested
    if field.doc is not None:
        metadata[_COMMENT] = field.doc
    kind = _type(field.field_type, field.name, root)
    return Field(field.name, kind, nullable=not field.required, metadata=metadata)


def _check_default(field: types.NestedField, root: str) -> None:
    if field.initial_default is not None or field.write_default is not None:
        raise refused(
            root,
            f"column {field.name!r} has a default, which files that were there before do not hold",
        )


def _nested_ids(kind: types.IcebergType, path: str) -> Iterator[tuple[str, int]]:
    """The ids of elements, keys and values by path, as files have them."""
    match kind:
        case types.ListType():
            yield f"{path}.element", kind.element_id
            yield from _nested_ids(kind.element_type, f"{path}.element")
        case types.MapType():
            yield f"{path}.key", kind.key_id
            yield f"{path}.value", kind.value_id
            yield from _nested_ids(kind.key_type, f"{path}.key")
            yield from _nested_ids(kind.value_type, f"{path}.value")
        case _:
            return


def _type(kind: types.IcebergType, name: str, root: str) -> DataType:
    match kind:
        case types.DecimalType():
            return decimal_type(kind.precision, kind.scale)
        case types.StructType():
            return delta_schema(kind.fields, root)
        case types.ListType():
            element = _type(kind.element_type, f"{name}.element", root)
            return ArrayType(element, contains_null=not kind.element_required)
        case types.MapType():
            key = _type(kind.key_type, f"{name}.key", root)
            value = _type(kind.value_type, f"{name}.value", root)
            return MapType(key, value, value_contains_null=not kind.value_required)
        case _:
            pass
    found = _TYPES.get(type(kind))
    if found is None:
        raise UnsupportedTypeError(
            f"cannot take over the Iceberg table at {root}: column {name!r} is of type {kind}, "
            "which Delta does not have"
        )
    return found
