"""Drop a table feature from protocol and metadata. There is no other way to downgrade a protocol.

This module lists the features that can be dropped, with the properties and column metadata of each.
The operation itself must remove all uses of the feature from files and history.

Protocol: Table Features, Checkpoint Protection
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.protocol.actions.properties import Property, TableProperties
from deltalog.protocol.column_mapping import strip
from deltalog.protocol.configuration import TableConfiguration
from deltalog.protocol.features import protocol_change
from deltalog.protocol.features.registry import canonical_name, find_feature
from deltalog.protocol.features.row_ids import Dialect
from deltalog.protocol.features.support import CHECKPOINT_PROTECTION
from deltalog.protocol.features.type_widening import without_type_changes
from deltalog.protocol.table_change import checks
from deltalog.protocol.table_change.checks import check_usable, stored_configuration
from deltalog.schema import StructType, encode_schema
from deltalog.schema.columns import map_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_P = TableProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class Droppable:
    """A feature that can be dropped.

    Args:
        properties: the properties that are removed with the feature.
        schema: removes the feature's column metadata from a schema.
        has_history: whether readers of older versions need the feature, so that the operation must
            truncate or protect history.
    """

    properties: tuple[Property[Any], ...] = ()
    schema: Callable[[StructType], StructType] | None = None
    has_history: bool = False


DROPPABLE: Final[Mapping[str, Droppable]] = {
    "checkConstraints": Droppable(),
    "checkpointProtection": Droppable(
        properties=(_P.require_checkpoint_protection_before_version,)
    ),
    "columnMapping": Droppable(
        properties=(_P.column_mapping_mode, _P.column_mapping_max_column_id),
        schema=strip,
        has_history=True,
    ),
    "deletionVectors": Droppable(properties=(_P.enable_deletion_vectors,), has_history=True),
    "domainMetadata": Droppable(),
    "inCommitTimestamp": Droppable(
        properties=(
            _P.enable_in_commit_timestamps,
            _P.in_commit_timestamp_enablement_version,
            _P.in_commit_timestamp_enablement_timestamp,
        )
    ),
    "materializePartitionColumns": Droppable(properties=(_P.enable_materialize_partition_columns,)),
    "rowTracking": Droppable(
        properties=(
            _P.enable_row_tracking,
            _P.row_tracking_suspended,
            _P.materialized_row_id_column_name,
            _P.materialized_row_commit_version_column_name,
        )
    ),
    "typeWidening": Droppable(
        properties=(_P.enable_type_widening,),
        schema=lambda schema: map_fields(schema, without_type_changes),
        has_history=True,
    ),
    "v2Checkpoint": Droppable(properties=(_P.checkpoint_policy,), has_history=True),
    "vacuumProtocolCheck": Droppable(has_history=True),
}
"""The features that can be dropped, by current name, as in Delta Spark."""


def check_droppable(current: TableConfiguration, feature: str) -> Droppable:
    """Return how to drop a feature; raise if it cannot be dropped.

    Raises:
        InvalidInputError: the feature is unknown, the table does not have it, another feature
            requires it, or it cannot be dropped at all.
    """
    if find_feature(feature) is None:
        hint = protocol_change.similar_feature(feature)
        raise InvalidInputError(f"cannot drop {feature!r}: there is no such table feature{hint}")
    protocol_change.without_feature(current.protocol, feature)
    found = DROPPABLE.get(canonical_name(feature))
    if found is None:
        raise InvalidInputError(
            f"cannot drop the table feature {feature!r}: it cannot be dropped; the features that "
            f"can are {', '.join(DROPPABLE)}"
        )
    return found


def deactivated(current: TableConfiguration, feature: str) -> TableConfiguration:
    """Return the configuration in which the feature is supported, but not active.

    Raises:
        InvalidInputError: see `check_droppable`; or the table needs the feature for constraints,
            for names that only column mapping allows, or for Iceberg compatibility.
    """
    found = check_droppable(current, feature)
    keys = {key for known in found.properties for key in (known.key, *known.aliases)}
    schema = current.schema if found.schema is None else found.schema(current.schema)
    metadata = replace(
        current.metadata,
        schema_string=current.metadata.schema_string
        if schema == current.schema
        else encode_schema(schema),
        configuration={
            key: text for key, text in current.metadata.configuration.items() if key not in keys
        },
    )
    after = TableConfiguration(current.protocol, metadata)
    if after.is_active(feature) and canonical_name(feature) in protocol_change.needed_features(
        after.properties, after.schema
    ):
        raise InvalidInputError(
            f"cannot drop the table feature {feature!r}: the table still uses it"
            + _why(canonical_name(feature), after)
        )
    checks.check(after, before=current, is_whole=True)
    return after


def without_feature(
    current: TableConfiguration, feature: str, *, protected_before_version: int | None = None
) -> TableConfiguration:
    """Return the configuration without a feature.

    Args:
        current: the table.
        feature: the feature to drop, by any of its names.
        protected_before_version: the version that drops the feature, if older versions that need
            the feature remain in the history; their checkpoints are then protected.

    Raises:
        InvalidInputError: see `deactivated`.

    Protocol: Checkpoint Protection
    """
    after = deactivated(current, feature)
    protocol = protocol_change.without_feature(after.protocol, feature)
    configuration = dict(after.metadata.configuration)
    if protected_before_version is not None:
        protocol = protocol_change.with_features(protocol, [CHECKPOINT_PROTECTION])
        key = _P.require_checkpoint_protection_before_version.key
        configuration[key] = str(protected_before_version)
    made = TableConfiguration(protocol, replace(after.metadata, configuration=configuration))
    check_usable(made, before=current)
    return made


def with_current_row_ids(current: TableConfiguration) -> TableConfiguration:
    """Return the configuration with row tracking instead of the draft's row ids; ids are preserved.

    Raises:
        InvalidInputError: the table does not have the draft's row ids.

    Protocol: Row Tracking; Row IDs (draft)
    """
    protocol = protocol_change.without_feature(current.protocol, Dialect.DRAFT.value)
    protocol = protocol_change.with_features(protocol, [Dialect.CURRENT.value])
    drafts = (_P.enable_row_ids.key, _P.row_ids_physical_column_name.key)
    configuration = {
        key: text for key, text in current.metadata.configuration.items() if key not in drafts
    }
    # In a table with both dialects of row tracking, preserve the row ids of the enabled dialect.
    was_draft = current.properties.enable_row_ids and not current.properties.enable_row_tracking
    column = current.properties.row_ids_physical_column_name
    if column is not None and (was_draft or current.row_id_dialect is Dialect.DRAFT):
        configuration[_P.materialized_row_id_column_name.key] = column
    if was_draft or current.row_ids_enabled:
        configuration[_P.enable_row_tracking.key] = "true"
    stored = stored_configuration(configuration, protocol, before=current)
    made = TableConfiguration(protocol, replace(current.metadata, configuration=stored))
    check_usable(made, before=current)
    return made


def with_row_ids_of(other: TableConfiguration, current: TableConfiguration) -> TableConfiguration:
    """Return a configuration with row ids in the dialect of the current table.

    Args:
        other: the configuration of another version or table.
        current: the current configuration; if it has only today's row ids, row ids of the draft in
            `other` are converted to today's dialect.
    """
    drafts, ours = (Dialect.DRAFT.value in made.features for made in (other, current))
    if drafts and not ours and current.row_id_dialect is Dialect.CURRENT:
        return with_current_row_ids(other)
    return other


def _why(feature: str, table: TableConfiguration) -> str:
    if feature == "checkConstraints":
        return f"; drop the constraints {', '.join(table.properties.constraints)} first"
    return ""
