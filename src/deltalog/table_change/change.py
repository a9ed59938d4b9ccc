"""Create and change a table's protocol and metadata.

Protocol: Change Metadata, Protocol Evolution, Column Mapping
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltalog.actions.model import Metadata
from deltalog.actions.properties import TableProperties
from deltalog.column_mapping import Mode, field_id, has_lost_names
from deltalog.configuration import TableConfiguration
from deltalog.errors import InvalidInputError
from deltalog.features import iceberg_compat, iceberg_writer_compat
from deltalog.features.protocol_change import (
    NEW_TABLE,
    least_protocol,
    merge,
    supported_features,
    with_features,
    without_requests,
)
from deltalog.schema import encode_schema
from deltalog.table_change import checks, columns, properties

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.actions.model import Protocol
    from deltalog.schema import StructType
    from deltalog.schema.columns import Path

_CLUSTERING: Final = "clustering"


def new_table(  # noqa: PLR0913  # what a statement can say of a table
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
        schema: logical; ids and physical names of another table are dropped.
        partition_columns: by name, in any case.
        configuration: properties as a user gives them, requests (`delta.feature.…`) included.
        name: of the table.
        description: of the table.
        clustering_columns: by name or path; None is a table without clustering. They are only
            checked here; the operation writes the domain that holds them.
        features: to support besides those that are needed.
        created_time_ms: milliseconds since 1970, UTC.
        table_id: of the table; a new one by default.
        arbitrary_properties: whether to store unknown `delta.` properties too.
        has_catalog: whether a catalog makes the table, which may then decide on its commits.

    Raises:
        InvalidInputError: a property, column or feature is invalid, or they contradict each other.
        UnsupportedFeatureError: deltalog could not write the table.

    Protocol: Change Metadata
    """
    given = properties.checked_configuration(
        {}, configuration or {}, is_lenient=arbitrary_properties
    )
    asked = iceberg_writer_compat.with_required_properties(given, TableProperties(given))
    asked = iceberg_compat.with_required_properties(asked, TableProperties(asked))
    wanted = (*features, *((_CLUSTERING,) if clustering_columns is not None else ()))
    properties.check_dialect(asked, NEW_TABLE, wanted)
    own = columns.without_table_metadata(schema)
    protocol = least_protocol(TableProperties(asked), own, current=with_features(NEW_TABLE, wanted))
    stored = properties.stored_configuration(without_requests(asked), protocol)
    names_new = properties.has_first_names(stored, protocol)
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
    """Return a table's configuration after a change; None keeps a value. Features are only added.

    Args:
        current: the table as it is.
        schema: the whole new one; fields that stay must carry their metadata.
        partition_columns: only where the data is replaced.
        configuration: the whole new mapping, requests (`delta.feature.…`) included; properties
            that only writers set stay by themselves.
        name: of the table.
        description: of the table.
        features: to support as well.
        protocol: to merge with the current one.
        replaces_data: whether the same commit removes every row of the table; then columns, types
            and partitioning are free.
        arbitrary_properties: whether to store unknown `delta.` properties too.

    Raises:
        InvalidInputError: the change is not allowed.
        UnsupportedFeatureError: deltalog could no longer write the table.

    Protocol: Change Metadata, Protocol Evolution
    """
    before = current.metadata
    asked = dict(before.configuration)
    if configuration is not None:
        asked = properties.checked_configuration(
            before.configuration, configuration, is_lenient=arbitrary_properties
        )
    # "Clients must not remove the feature from the `protocol` action": so protocols are merged.
    base = current.protocol if protocol is None else merge(current.protocol, protocol)
    if features:
        base = with_features(base, features)
    properties.check_dialect(asked, base, features)
    wanted, changed_columns = _next_schema(current, schema, asked, replaces_data=replaces_data)
    new_protocol = _next_protocol(
        current.protocol,
        least_protocol(TableProperties(asked), wanted, current=base),
    )
    stored = properties.stored_configuration(without_requests(asked), new_protocol, before=current)
    if has_lost_names(current.schema, wanted):
        stored = properties.with_lost_names(stored)
    # When column mapping is enabled, existing files use the columns' names; so these become the
    # physical names. Columns that are added later get random ones.
    mapped, stored = columns.with_mapping(
        wanted,
        stored,
        keep_names=current.column_mapping_mode is Mode.NONE and not replaces_data,
        names_new=properties.has_first_names(stored, new_protocol),
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


def _next_protocol(before: Protocol, least: Protocol) -> Protocol:
    """Return the new protocol, or the current one if both support the same features."""
    # Without a new feature there must be no new protocol action, even in a weaker form: every
    # concurrent commit would conflict with it.
    same = supported_features(before).keys() == supported_features(least).keys()
    return before if same else least


def _next_schema(
    current: TableConfiguration,
    schema: StructType | None,
    asked: Mapping[str, str],
    *,
    replaces_data: bool,
) -> tuple[StructType, tuple[Path, ...]]:
    """Return the new schema, and the columns of the old one that change."""
    if schema is None:
        return current.schema, ()
    if replaces_data:
        return columns.keep_ids(current, schema), ()
    from deltalog.table_change.schema_change import change_schema  # noqa: PLC0415  # of old tables

    found = change_schema(
        current,
        columns.match_ids(current, schema),
        widens=TableProperties(asked).enable_type_widening,
    )
    return found.schema, found.changed


def _next_partition_columns(
    current: TableConfiguration, schema: StructType, asked: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the new partition columns; a renamed one stays a partition column."""
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
