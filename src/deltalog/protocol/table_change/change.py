"""Creating and changing a table's protocol and metadata.

Protocol: Change Metadata, Protocol Evolution, Column Mapping
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError
from deltalog.protocol.actions.model import Metadata, Protocol
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.column_mapping import Mode, field_id, has_lost_names
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features import iceberg_compat
from deltalog.protocol.features.protocol_change import (
    NEW_TABLE,
    least_protocol,
    merge,
    supported_features,
    with_features,
    without_requests,
)
from deltalog.protocol.features.support import misplaced_reader_features
from deltalog.protocol.features.type_widening import changes_own_type, record_type_changes
from deltalog.protocol.table_change import checks, columns
from deltalog.schema import ArrayType, DataType, Field, MapType, StructType, encode_schema
from deltalog.schema.collations import collations_of, renamed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.schema.columns import Path

_CLUSTERING: Final = "clustering"


def new_table(  # noqa: PLR0913  # the clauses of a CREATE statement
    schema: StructType,
    *,
    partition_columns: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    clustering_columns: Sequence[str | tuple[str, ...]] | None = None,
    features: Sequence[str] = (),
    created_time_ms: int,
    table_id: str | None = None,
    arbitrary_properties: bool = False,
    has_catalog: bool = False,
) -> TableConfiguration:
    """Return the configuration of a new table.

    Args:
        schema: the logical schema; ids and physical names of another table are removed from it.
        partition_columns: the names of the partition columns, in any case.
        configuration: the user's properties, including requests (`delta.feature.…`).
        name: the name of the table.
        description: the description of the table.
        clustering_columns: names or paths; None means no clustering. They are only checked here;
            the operation writes their domain.
        features: additional features to support.
        created_time_ms: milliseconds since 1970, UTC.
        table_id: the id of the table; a new one by default.
        arbitrary_properties: whether to store unknown `delta.` properties, too.
        has_catalog: whether a catalog creates the table, so that it may be catalog-managed.

    Raises:
        InvalidInputError: a property, column or feature is invalid, or they contradict each other.
        UnsupportedFeatureError: deltalog could not write the table.

    Protocol: Change Metadata
    """
    given = checks.checked_configuration({}, configuration or {}, is_lenient=arbitrary_properties)
    asked = iceberg_compat.with_writer_properties(given, TableProperties(given))
    asked = iceberg_compat.with_required_properties(asked, TableProperties(asked))
    wanted = (*features, *((_CLUSTERING,) if clustering_columns is not None else ()))
    checks.check_dialect(asked, NEW_TABLE, wanted)
    own = columns.without_table_metadata(schema)
    protocol = least_protocol(TableProperties(asked), own, current=with_features(NEW_TABLE, wanted))
    checks.warn_of_no_effect(asked, protocol, {})
    stored = checks.stored_configuration(without_requests(asked), protocol)
    names_new = checks.has_first_names(stored, protocol)
    mapped, stored = columns.with_mapping(own, stored, keep_names=False, names_new=names_new)
    made = TableConfiguration(
        protocol,
        Metadata(
            id=table_id or str(uuid.uuid4()),
            schema_string=encode_schema(mapped),
            partition_columns=columns.canonical_names(mapped, partition_columns),
            configuration=stored,
            name=name,
            description=description,
            created_time_ms=created_time_ms,
        ),
    )
    checks.check(made, clustering_columns=clustering_columns, has_catalog=has_catalog)
    return made


def changed_table(
    current: TableConfiguration,
    *,
    schema: StructType | None = None,
    partition_columns: Sequence[str] | None = None,
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
    features: Sequence[str] = (),
    protocol: Protocol | None = None,
    replaces_data: bool = False,
    arbitrary_properties: bool = False,
) -> TableConfiguration:
    """Return a table's configuration after a change. An argument that is None changes nothing.

    Args:
        current: the current table.
        schema: the whole new schema; existing fields must have their current metadata.
        partition_columns: the new partition columns; only if the data is replaced.
        configuration: all new properties, including requests (`delta.feature.…`). Properties that
            only writers set are always preserved.
        name: the name of the table.
        description: the description of the table.
        features: features to add.
        protocol: a protocol to merge with the current one.
        replaces_data: whether the same commit removes every row of the table; then columns, types
            and partitioning may change freely.
        arbitrary_properties: whether to store unknown `delta.` properties, too.

    Raises:
        InvalidInputError: the change is not allowed.
        UnsupportedFeatureError: deltalog could no longer write the table.

    Protocol: Change Metadata, Protocol Evolution
    """
    before = current.metadata
    asked = dict(before.configuration)
    if configuration is not None:
        asked = checks.checked_configuration(
            before.configuration, configuration, is_lenient=arbitrary_properties
        )
    # The protocol: "Clients must not remove the feature from the `protocol` action". So the new
    # protocol is merged with the current one.
    base = current.protocol if protocol is None else merge(current.protocol, protocol)
    if features:
        base = with_features(base, features)
    checks.check_dialect(asked, base, features)
    wanted, changed_columns = _next_schema(current, schema, asked, replaces_data=replaces_data)
    new_protocol = _next_protocol(
        current.protocol,
        least_protocol(TableProperties(asked), wanted, current=base),
        repairs=bool(features) or protocol is not None,
    )
    checks.warn_of_no_effect(asked, new_protocol, before.configuration)
    stored = checks.stored_configuration(without_requests(asked), new_protocol, before=current)
    if has_lost_names(current.schema, wanted):
        stored = checks.with_lost_names(stored)
    # When column mapping is enabled, the names in existing files become the physical names. Columns
    # that are added later get random physical names.
    mapped, stored = columns.with_mapping(
        wanted,
        stored,
        keep_names=current.column_mapping_mode is Mode.NONE and not replaces_data,
        names_new=checks.has_first_names(stored, new_protocol),
    )
    changed = TableConfiguration(
        new_protocol,
        replace(
            before,
            schema_string=before.schema_string
            if mapped == current.schema
            else encode_schema(mapped),
            partition_columns=columns.canonical_names(mapped, current.partition_columns)
            if partition_columns is None and replaces_data
            else _next_partition_columns(current, mapped, partition_columns),
            configuration=stored,
            name=before.name if name is None else name,
            description=before.description if description is None else description,
        ),
    )
    checks.check_change(current, changed, changed_columns, replaces_data=replaces_data)
    checks.check(changed, before=current)
    return changed


def _next_protocol(before: Protocol, least: Protocol, *, repairs: bool) -> Protocol:
    """Return the new protocol, or the current one if both support the same features.

    A protocol that names column mapping, which the current one implies by its reader version, is
    another one: only a request of reader version 3 leads to it. `repairs` is whether features or
    versions were asked for: then a feature that is in one list alone gets into both.
    """
    # Without a new feature, do not change the protocol, even if lower versions would suffice. A
    # protocol action would conflict with every concurrent commit.
    same = supported_features(before).keys() == supported_features(least).keys()
    if not same or least.min_reader_version > before.min_reader_version:
        return least
    return least if repairs and misplaced_reader_features(before) else before


def _next_schema(
    current: TableConfiguration,
    schema: StructType | None,
    asked: Mapping[str, str],
    *,
    replaces_data: bool,
) -> tuple[StructType, tuple[Path, ...]]:
    """Return the new schema, and the columns of the old schema that change."""
    if schema is None:
        return current.schema, ()
    if replaces_data:
        return columns.keep_ids(current, schema), ()

    found = change_schema(
        current,
        columns.match_ids(current, schema),
        widens=TableProperties(asked).enable_type_widening,
    )
    return found.schema, found.changed


def _next_partition_columns(
    current: TableConfiguration, schema: StructType, asked: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the new partition columns, with new names of renamed columns."""
    if asked is not None:
        return columns.canonical_names(schema, asked)
    if current.column_mapping_mode is Mode.NONE:
        return columns.canonical_names(schema, current.partition_columns)
    by_id = {field_id(field): field.name for field in schema.fields}
    kept = [by_id.get(field_id(field)) for field in current.partition_schema.fields]
    gone = [name for name, now in zip(current.partition_columns, kept, strict=True) if now is None]
    if gone:
        raise InvalidInputError(f"cannot drop the partition column(s) {', '.join(gone)}")
    return tuple(name for name in kept if name is not None)


# --- Changing the schema of a table with existing data files


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The new schema of a table, and what changed.

    Args:
        schema: the new schema, with every type change recorded in column metadata.
        changed: the old paths of columns that are dropped, renamed, or get another type or
            collation.
    """

    schema: StructType
    changed: tuple[Path, ...]


def change_schema(before: TableConfiguration, schema: StructType, *, widens: bool) -> SchemaChange:
    """Check a new schema against the current one, and record its type changes.

    Args:
        before: the current table.
        schema: the new schema; existing columns have their ids.
        widens: whether types may be widened.

    Raises:
        InvalidInputError: a column is dropped or renamed without column mapping, a new column is
            NOT NULL, or existing files cannot be read as the new type.

    Protocol: Type Widening, Column Mapping
    """
    changer = _SchemaChanger(is_mapped=before.column_mapping_mode is not Mode.NONE, widens=widens)
    changed_schema = changer.struct(before.schema, schema, ())
    return SchemaChange(changed_schema, tuple(changer.changed))


class _SchemaChanger:
    def __init__(self, *, is_mapped: bool, widens: bool) -> None:
        self.is_mapped = is_mapped
        self.widens = widens
        self.changed: list[Path] = []

    def struct(self, before: StructType, after: StructType, path: Path) -> StructType:
        left = {self._key(field): field for field in before.fields}
        fields: list[Field] = []
        for field in after.fields:
            known = left.pop(self._key(field), None)
            if known is None and not field.nullable:
                raise InvalidInputError(
                    f"cannot add the column {'.'.join((*path, field.name))!r} as NOT NULL: "
                    "existing rows have no value for it; add it, fill it, then set NOT NULL"
                )
            fields.append(field if known is None else self._field(known, field, path))
        for gone in left.values():
            self._drop((*path, gone.name))
        return StructType(fields)

    def _key(self, field: Field) -> int | str:
        # With column mapping, a column is identified by its id, otherwise by its name.
        number = field_id(field) if self.is_mapped else None
        if number is None:
            return f"new {field.name}" if self.is_mapped else name_key(field.name)
        return number

    def _field(self, before: Field, after: Field, parent: Path) -> Field:
        path = (*parent, before.name)
        if before.name != after.name:
            self._drop(path)
        recorded = record_type_changes(".".join(path), before, after, is_enabled=self.widens)
        own = collations_of(renamed(before, after.name))
        if changes_own_type(before, after) or own != collations_of(after):
            self.changed.append(path)
        return replace(recorded, type=self._type(before.type, recorded.type, path))

    def _type(self, before: DataType, after: DataType, path: Path) -> DataType:
        match before, after:
            case StructType(), StructType():
                return self.struct(before, after, path)
            case ArrayType(), ArrayType():
                self._check_null(before.contains_null, after.contains_null, path)
                inner = self._type(before.element_type, after.element_type, (*path, "element"))
                return replace(after, element_type=inner)
            case MapType(), MapType():
                self._check_null(before.value_contains_null, after.value_contains_null, path)
                key = self._type(before.key_type, after.key_type, (*path, "key"))
                value = self._type(before.value_type, after.value_type, (*path, "value"))
                return replace(after, key_type=key, value_type=value)
            case _:
                return after

    def _drop(self, path: Path) -> None:
        # Without column mapping, a later column of the same name would read the old column's data.
        if not self.is_mapped:
            raise InvalidInputError(
                f"cannot drop or rename the column {'.'.join(path)!r}: its files use this name; "
                "set delta.columnMapping.mode = name first, by table.alter.set_table_properties"
            )
        self.changed.append(path)

    @staticmethod
    def _check_null(before: object, after: object, path: Path) -> None:
        if before and not after:
            raise InvalidInputError(
                f"cannot forbid NULL inside {'.'.join(path)!r}: existing files may contain NULL"
            )
