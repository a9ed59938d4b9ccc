"""Assign ids and physical names to columns when a schema is created or changed.

Protocol: Column Mapping
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.column_mapping import (
    MAX_COLUMN_ID_PROPERTY,
    Mode,
    PhysicalNames,
    assign,
    field_id,
    physical_name,
    strip,
    without_metadata,
)
from deltalog.protocol.features.iceberg_compat import enabled_versions, with_nested_ids
from deltalog.schema import ArrayType, DataType, Field, MapType, StructType
from deltalog.schema.columns import canonical_path_of, map_fields, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from deltalog.protocol.configuration import TableConfiguration

_MAPPING: Final = "delta.columnMapping."
_TABLE_BOUND: Final = (_MAPPING, "delta.typeChanges", "parquet.", "PARQUET:")
_HIGH_WATER_MARK: Final = "delta.identity.highWaterMark"


def without_table_metadata(schema: StructType) -> StructType:
    """Return the schema without column metadata that is only valid for another table's files."""
    return map_fields(
        schema, lambda field: without_metadata(field, (*_TABLE_BOUND, _HIGH_WATER_MARK))
    )


def match_ids(before: TableConfiguration, schema: StructType) -> StructType:
    """Return the new schema with the ids and physical names of the table's columns.

    A field with the id and the physical name of a column of this table is matched with that column.
    Any other field is matched with the column of the same name, unless that column is already
    matched. A field without a match is a new column; its id belongs to another table and is
    removed.
    """
    if before.column_mapping_mode is Mode.NONE:
        return strip(schema)
    known = {_identity(field) for _, field in walk(before.schema)}
    claimed = {_identity(field) for _, field in walk(schema)} & known
    return _IdMatcher(known, claimed).struct(schema, before.schema)


def keep_ids(before: TableConfiguration, schema: StructType) -> StructType:
    """Return the new schema for an overwrite of all rows, without ids of other tables.

    Columns are not matched by name, because a column with the same name may be a different column.
    """
    known = {_identity(field) for _, field in walk(before.schema)}
    bare = ("delta.typeChanges",)
    return map_fields(
        schema,
        lambda field: without_metadata(
            field, bare if _identity(field) in known else (*bare, _MAPPING)
        ),
    )


def with_mapping(
    schema: StructType,
    configuration: Mapping[str, str],
    *,
    keep_names: bool,
    names_new: bool = False,
) -> tuple[StructType, dict[str, str]]:
    """Return the schema with ids and physical names, if the table has column mapping.

    Args:
        schema: the schema with the ids assigned so far.
        configuration: the properties of the new table.
        keep_names: whether column mapping is enabled on an existing table, so that the names in its
            files become physical names.
        names_new: whether physical names of new columns are their names, because no column was ever
            dropped or renamed. Otherwise they are random.

    Returns:
        The schema, and the configuration with the highest id ever assigned.

    Protocol: Writer Requirements for Column Mapping
    """
    properties = TableProperties(configuration)
    if properties.column_mapping_mode == Mode.NONE:
        return schema, dict(configuration)
    own = strip(schema) if keep_names else schema
    mapped, highest = assign(
        own,
        properties.column_mapping_max_column_id,
        names=_names(properties, keep_names=keep_names, names_new=names_new),
    )
    if set(enabled_versions(properties)) & {2, 3}:
        mapped, highest = with_nested_ids(mapped, highest)
    # The protocol: "This value must increase monotonically as new columns are introduced." So do
    # not decrease it when the column with the highest id is dropped.
    return mapped, {**configuration, MAX_COLUMN_ID_PROPERTY: str(highest)}


def _names(properties: TableProperties, *, keep_names: bool, names_new: bool) -> PhysicalNames:
    if keep_names:
        return PhysicalNames.LOGICAL
    if properties.enable_iceberg_writer_compat_v1:
        return PhysicalNames.BY_ID
    return PhysicalNames.FIRST if names_new else PhysicalNames.RANDOM


def canonical_names(schema: StructType, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of top-level columns, spelled as in the schema.

    Raises:
        InvalidInputError: there is no such column, or it is a field of another column.
    """
    for column in columns:
        outer = column.partition(".")[0]
        if not schema.fields_named(column) and schema.fields_named(outer) and outer != column:
            raise InvalidInputError(
                f"cannot partition by {column!r}: only top-level columns can be partition columns; "
                f"copy the field of {outer!r} into a column of its own"
            )
    return tuple(canonical_path_of(schema, (column,))[0] for column in columns)


def check_reserved(schema: StructType, names: Iterable[str | None]) -> None:
    """Raise for columns with the name of a materialized row id column.

    Raises:
        InvalidInputError: a column has such a logical or physical name.

    Protocol: Row Tracking (Materialized Row IDs)
    """
    # The protocol about the name: "It must not be equal to the name of any other column in the
    # table's schema" and "must remain unique in all future versions of the table."
    hidden = {name_key(name) for name in names if name}
    for field in schema.fields:
        if hidden & {name_key(field.name), name_key(physical_name(field))}:
            raise InvalidInputError(
                f"cannot have a column {field.name!r}: its files store row ids under that name"
            )


class _IdMatcher:
    def __init__(self, known: set[Any], claimed: set[Any]) -> None:
        self.known = known
        self.claimed = claimed

    def struct(self, new: StructType, old: StructType) -> StructType:
        by_name = {name_key(field.name): field for field in old.fields}
        by_identity = {_identity(field): field for field in old.fields}
        fields: list[Field] = []
        for field in new.fields:
            found: Field | None
            if _identity(field) in self.known:
                found, kept = by_identity.get(_identity(field)), field
            else:
                found, kept = (
                    by_name.get(name_key(field.name)),
                    without_metadata(field, (_MAPPING,)),
                )
                # The column with this name is already matched with another field, because it was
                # renamed. The current field is a new column with the old name.
                if found is not None and _identity(found) in self.claimed:
                    found = None
                if found is not None:
                    kept = _with_mapping_of(kept, found)
            inner = StructType() if found is None else found.type
            fields.append(replace(kept, type=self.type(kept.type, inner)))
        return StructType(fields)

    def type(self, new: DataType, old: DataType) -> DataType:
        match new, old:
            case StructType(), _:
                return self.struct(new, old if isinstance(old, StructType) else StructType())
            case ArrayType(), _:
                inner = old.element_type if isinstance(old, ArrayType) else StructType()
                return replace(new, element_type=self.type(new.element_type, inner))
            case MapType(), _:
                key, value = (
                    (old.key_type, old.value_type)
                    if isinstance(old, MapType)
                    else (StructType(), StructType())
                )
                return replace(
                    new,
                    key_type=self.type(new.key_type, key),
                    value_type=self.type(new.value_type, value),
                )
            case _:
                return new


def _identity(field: Field) -> tuple[int, str] | None:
    number = field_id(field)
    return None if number is None else (number, physical_name(field))


def _with_mapping_of(field: Field, known: Field) -> Field:
    mapping = {key: value for key, value in known.metadata.items() if key.startswith(_MAPPING)}
    return replace(field, metadata={**field.metadata, **mapping})
