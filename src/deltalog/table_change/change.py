"""A table's protocol and metadata, made and changed so that they agree.

Protocol: Change Metadata, Protocol Evolution, Column Mapping
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltalog.actions.model import Metadata
from deltalog.actions.properties import TableProperties
from deltalog.column_mapping import Mode, field_id
from deltalog.configuration import TableConfiguration
from deltalog.errors import InvalidInputError
from deltalog.features import iceberg_compat
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
from deltalog.table_change.follow import followed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.actions.model import Protocol
    from deltalog.schema import StructType
    from deltalog.schema.columns import Path

_CLUSTERING: Final = "clustering"


def new_table(
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
) -> TableConfiguration:
    """The configuration of a table that is to be created.

    Args:
        schema: logical; ids and physical names of another table are left out.
        partition_columns: by name, in any case.
        configuration: properties as a user gives them, requests (`delta.feature.…`) included.
        name: of the table.
        description: of the table.
        clustering_columns: by name or path; None is a table without clustering. They are checked
            here; the domain that holds them is the operation's to write.
        features: to support beyond what is needed.
        created_time_ms: milliseconds since 1970, UTC.
        table_id: of the table; a new one by default.
        arbitrary_properties: whether `delta.` properties that nobody knows are stored as well.

    Raises:
        InvalidInputError: a property, column or feature is none, or some do not go together.
        UnsupportedFeatureError: deltalog could not write the table.

    Protocol: Change Metadata
    """
    given = properties.checked_change({}, configuration or {}, is_lenient=arbitrary_properties)
    asked = iceberg_compat.with_required_properties(given, TableProperties(given))
    wanted = (*features, *((_CLUSTERING,) if clustering_columns is not None else ()))
    properties.check_dialect(asked, NEW_TABLE, wanted)
    own = columns.unbound(schema)
    protocol = least_protocol(TableProperties(asked), own, current=with_features(NEW_TABLE, wanted))
    stored = properties.completed(without_requests(asked), protocol)
    mapped, stored = columns.with_mapping(own, stored, keep_names=False)
    made = TableConfiguration(
        protocol,
        Metadata(
            id=table_id or str(uuid.uuid4()),
            schema_string=encode_schema(mapped),
            partition_columns=columns.spelled(mapped, partition_columns),
            configuration=stored,
            name=name,
            description=description,
            created_time_ms=created_time_ms,
        ),
    )
    checks.check(made, clustering_columns=clustering_columns)
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
    """The configuration of a table after a change. What is None stays; no feature is ever lost.

    Args:
        current: what the table is now.
        schema: the whole new one; fields that stay carry their metadata.
        partition_columns: only where the data is replaced.
        configuration: the whole new mapping, requests (`delta.feature.…`) included; what only
            writers set stays by itself.
        name: of the table.
        description: of the table.
        features: to support as well.
        protocol: to be merged in.
        replaces_data: every row of the table is removed by the same commit, so that columns,
            types and partitioning need not follow the old ones.
        arbitrary_properties: whether `delta.` properties that nobody knows are stored as well.

    Raises:
        InvalidInputError: the change is none that is allowed.
        UnsupportedFeatureError: deltalog could not write the table any more.

    Protocol: Change Metadata, Protocol Evolution
    """
    before = current.metadata
    asked = dict(before.configuration)
    if configuration is not None:
        asked = properties.checked_change(
            before.configuration, configuration, is_lenient=arbitrary_properties
        )
    base = current.protocol if protocol is None else merge(current.protocol, protocol)
    if features:
        base = with_features(base, features)
    properties.check_dialect(asked, base, features)
    wanted, touched = _next_schema(current, schema, asked, replaces_data=replaces_data)
    new_protocol = _next_protocol(
        current.protocol,
        least_protocol(TableProperties(asked), wanted, current=base),
    )
    stored = properties.completed(without_requests(asked), new_protocol, before=current)
    mapped, stored = columns.with_mapping(
        wanted, stored, keep_names=current.column_mapping_mode is Mode.NONE and not replaces_data
    )
    changed = TableConfiguration(
        new_protocol,
        replace(
            before,
            schema_string=before.schema_string
            if mapped == current.schema
            else encode_schema(mapped),
            partition_columns=columns.spelled(mapped, current.partition_columns)
            if partition_columns is None and replaces_data
            else _next_partition_columns(current, mapped, partition_columns),
            configuration=stored,
            name=before.name if name is None else name,
            description=before.description if description is None else description,
        ),
    )
    checks.check_change(current, changed, touched, replaces_data=replaces_data)
    checks.check(changed, before=current)
    return changed


def _next_protocol(before: Protocol, least: Protocol) -> Protocol:
    """The protocol to be; one that says the same in other words stays as it is."""
    same = supported_features(before).keys() == supported_features(least).keys()
    return before if same else least


def _next_schema(
    current: TableConfiguration,
    schema: StructType | None,
    asked: Mapping[str, str],
    *,
    replaces_data: bool,
) -> tuple[StructType, tuple[Path, ...]]:
    """The schema to be, and the columns of before that are no longer the same."""
    if schema is None:
        return current.schema, ()
    if replaces_data:
        return columns.replaced(current, schema), ()
    found = followed(
        current,
        columns.adopted(current, schema),
        widens=TableProperties(asked).enable_type_widening,
    )
    return found.schema, found.touched


def _next_partition_columns(
    current: TableConfiguration, schema: StructType, asked: Sequence[str] | None
) -> tuple[str, ...]:
    """The partition columns to be; those that were renamed stay partition columns."""
    if asked is not None:
        return columns.spelled(schema, asked)
    if current.column_mapping_mode is Mode.NONE:
        return columns.spelled(schema, current.partition_columns)
    by_id = {field_id(field): field.name for field in schema.fields}
    kept = [by_id.get(field_id(field)) for field in current.partition_schema.fields]
    gone = [name for name, now in zip(current.partition_columns, kept, strict=True) if now is None]
    if gone:
        raise InvalidInputError(f"cannot drop the partition column(s) {', '.join(gone)}")
    return tuple(name for name in kept if name is not None)
