"""The columns of a table: their ids and physical names, and which schema may follow another.

Protocol: Column Mapping, Type Widening
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.actions.properties import TableProperties
from deltalog.column_mapping import (
    MAX_COLUMN_ID_PROPERTY,
    Mode,
    assign,
    map_fields,
    physical_name,
)
from deltalog.errors import InvalidInputError
from deltalog.schema import Field
from deltalog.schema.columns import canonical_path_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalog.configuration import TableConfiguration
    from deltalog.schema import StructType

_TABLE_BOUND: Final = ("delta.columnMapping.", "delta.typeChanges", "parquet.")
_HIGH_WATER_MARK: Final = "delta.identity.highWaterMark"


def unbound(schema: StructType) -> StructType:
    """The schema free of what belongs to the files of another table."""
    return map_fields(
        schema,
        lambda field: Field(
            field.name,
            field.type,
            field.nullable,
            {
                key: value
                for key, value in field.metadata.items()
                if not key.startswith(_TABLE_BOUND) and key != _HIGH_WATER_MARK
            },
        ),
    )


def with_mapping(
    schema: StructType, configuration: Mapping[str, str], *, keep_names: bool
) -> tuple[StructType, dict[str, str]]:
    """The schema with ids and physical names, where the table maps columns.

    Returns:
        The schema, and the configuration with the highest id ever given.

    Protocol: Writer Requirements for Column Mapping
    """
    properties = TableProperties(configuration)
    if Mode(properties.column_mapping_mode) is Mode.NONE:
        return schema, dict(configuration)
    mapped, highest = assign(schema, properties.column_mapping_max_column_id, keep_names=keep_names)
    return mapped, {**configuration, MAX_COLUMN_ID_PROPERTY: str(highest)}


def spelled(schema: StructType, columns: Sequence[str]) -> tuple[str, ...]:
    """Top-level columns in the schema's own spelling."""
    return tuple(canonical_path_of(schema, (column,))[0] for column in columns)


def check_reserved(schema: StructType, names: Iterable[str], why: str) -> None:
    """Refuse columns with a name that the table needs for itself.

    Raises:
        InvalidInputError: a column has the name, or its data has it in files.
    """
    reserved = {name.lower() for name in names}
    for path, field in walk(schema):
        if {path[-1].lower(), physical_name(field).lower()} & reserved:
            raise InvalidInputError(
                f"cannot have a column {'.'.join(path)!r}: {why}; rename it first"
            )


def remapped(
    before: TableConfiguration, schema: StructType, configuration: Mapping[str, str]
) -> tuple[StructType, dict[str, str]]:
    """The new schema with ids and physical names as the change of mode asks for.

    Columns of a table that gets column mapping keep their names in files; new columns of a mapped
    table get random ones.

    Protocol: Writer Requirements for Column Mapping
    """
    keep_names = before.column_mapping_mode is Mode.NONE
    return with_mapping(schema, configuration, keep_names=keep_names)
