"""The Iceberg schema, partition spec and name mapping of a table.

Columns have the ids that column mapping gave them, which the data files hold as field ids, so both
formats find the same columns by the same numbers.

Protocol: Column Mapping, Iceberg Compatibility V2 (`delta.columnMapping.nested.ids`); Iceberg
Table Spec: Schemas and Data Types, Partitioning, Column Projection (name mapping)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyiceberg import types
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform

from deltalog._json import dumps
from deltalog.column_mapping import field_id, physical_name
from deltalog.errors import InvalidMetadataError, UnsupportedTypeError
from deltalog.features.iceberg_compat import NESTED_IDS_KEY
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    MapType,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.configuration import TableConfiguration
    from deltalog.schema.types import DataType, Field

FIRST_PARTITION_ID: Final = 1000
_COMMENT: Final = "comment"

# Narrow integers are integers there; what the format has no type for is refused by name.
_PRIMITIVES: Final[Mapping[PrimitiveType, types.PrimitiveType]] = {
    STRING: types.StringType(),
    BYTE: types.IntegerType(),
    SHORT: types.IntegerType(),
    INTEGER: types.IntegerType(),
    LONG: types.LongType(),
    FLOAT: types.FloatType(),
    DOUBLE: types.DoubleType(),
    BOOLEAN: types.BooleanType(),
    BINARY: types.BinaryType(),
    DATE: types.DateType(),
    TIMESTAMP: types.TimestamptzType(),
    TIMESTAMP_NTZ: types.TimestampType(),
}


def iceberg_schema(schema: StructType, schema_id: int = 0) -> Schema:
    """Return the Iceberg schema of a table's logical schema.

    Args:
        schema: with the ids of column mapping.
        schema_id: its number in the Iceberg table.

    Raises:
        InvalidMetadataError: a column, element, key or value has no id.
        UnsupportedTypeError: Iceberg has no such type.
    """
    return Schema(*[_nested_field(field) for field in schema.fields], schema_id=schema_id)


def partition_spec(configuration: TableConfiguration, spec_id: int = 0) -> PartitionSpec:
    """Return the partition spec: the identity of each partition column."""
    fields = configuration.partition_schema.fields
    if not fields:
        return UNPARTITIONED_PARTITION_SPEC
    return PartitionSpec(
        *[
            PartitionField(
                source_id=column_id(field),
                field_id=FIRST_PARTITION_ID + number,
                transform=IdentityTransform(),
                name=field.name,
            )
            for number, field in enumerate(fields)
        ],
        spec_id=spec_id,
    )


def name_mapping(schema: StructType) -> str:
    """Return the name mapping as JSON: how columns are found in data files without field ids.

    Those were written before the table had column mapping, under the names that are the physical
    ones since: a column that was renamed has its old name there.

    Args:
        schema: with the ids and physical names of column mapping.
    """
    return dumps([_mapped(field) for field in schema.fields]).decode()


def column_id(field: Field) -> int:
    """Return the id that column mapping gave a column.

    Raises:
        InvalidMetadataError: it has none.
    """
    number = field_id(field)
    if number is None:
        raise InvalidMetadataError(
            f"cannot show column {field.name!r} as Iceberg: expected an id of column mapping, "
            "found none; set delta.columnMapping.mode = name"
        )
    return number


def _mapped(field: Field) -> dict[str, Any]:
    name = physical_name(field)
    return _mapping(column_id(field), name, _mapped_parts(field.type, field, name))


def _mapped_parts(data_type: DataType, field: Field, path: str) -> list[dict[str, Any]]:
    match data_type:
        case StructType():
            return [_mapped(inner) for inner in data_type.fields]
        case ArrayType():
            parts = {"element": data_type.element_type}
        case MapType():
            parts = {"key": data_type.key_type, "value": data_type.value_type}
        case _:
            parts = {}
    return [
        _mapping(
            _nested_id(field, f"{path}.{name}"), name, _mapped_parts(part, field, f"{path}.{name}")
        )
        for name, part in parts.items()
    ]


def _mapping(number: int, name: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"field-id": number, "names": [name]}
    return {**found, "fields": parts} if parts else found


def _nested_field(field: Field) -> types.NestedField:
    comment = field.metadata.get(_COMMENT)
    return types.NestedField(
        field_id=column_id(field),
        name=field.name,
        field_type=_type(field.type, field, physical_name(field)),
        required=not field.nullable,
        doc=comment if isinstance(comment, str) else None,
    )


def _type(data_type: DataType, field: Field, path: str) -> types.IcebergType:
    """The type; `field` holds the ids of the lists and maps in it, by physical path."""
    match data_type:
        case PrimitiveType():
            if data_type.is_decimal:
                return types.DecimalType(data_type.precision, data_type.scale)
            found = _PRIMITIVES.get(data_type)
            if found is not None:
                return found
        case StructType():
            return types.StructType(*[_nested_field(inner) for inner in data_type.fields])
        case ArrayType():
            return types.ListType(
                element_id=_nested_id(field, f"{path}.element"),
                element_type=_type(data_type.element_type, field, f"{path}.element"),
                element_required=not data_type.contains_null,
            )
        case MapType():
            return types.MapType(
                key_id=_nested_id(field, f"{path}.key"),
                key_type=_type(data_type.key_type, field, f"{path}.key"),
                value_id=_nested_id(field, f"{path}.value"),
                value_type=_type(data_type.value_type, field, f"{path}.value"),
                value_required=not data_type.value_contains_null,
            )
        case _:
            pass
    raise UnsupportedTypeError(
        f"cannot show column {field.name!r} as Iceberg: it has no type for {data_type}"
    )


def _nested_id(field: Field, path: str) -> int:
    ids: Any = field.metadata.get(NESTED_IDS_KEY)
    number = ids.get(path) if isinstance(ids, dict) else None
    if number is None:
        raise InvalidMetadataError(
            f"cannot show column {field.name!r} as Iceberg: expected an id of {path!r} in "
            f"{NESTED_IDS_KEY}, found none; set delta.enableIcebergCompatV2 = true"
        )
    return int(number)
