"""A table without a feature: the only way in which a protocol shrinks.

Owns which features can be dropped, and what of the metadata goes with each. Whether files and
history still hold traces is the operation's to see to.

Protocol: Table Features, Checkpoint Protection
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.actions.properties import TableProperties
from deltalog.column_mapping import strip
from deltalog.configuration import TableConfiguration
from deltalog.errors import InvalidInputError
from deltalog.features import protocol_change
from deltalog.features.checkpoint_protection import (
    CHECKPOINT_PROTECTION,
    PROTECTED_BEFORE_PROPERTY,
)
from deltalog.features.registry import canonical_name, find_feature
from deltalog.features.row_ids import Dialect
from deltalog.features.type_widening import forget_changes
from deltalog.schema import encode_schema
from deltalog.schema.columns import map_fields
from deltalog.table_change import checks
from deltalog.table_change.access import check_usable
from deltalog.table_change.properties import completed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.actions.properties import Property
    from deltalog.schema import StructType

_P = TableProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class Droppable:
    """A feature that can leave a table.

    Args:
        properties: that go with it.
        schema: what becomes of the schema.
        has_history: whether readers of old versions must know it, so that history counts.
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
        schema=lambda schema: map_fields(schema, forget_changes),
        has_history=True,
    ),
    "v2Checkpoint": Droppable(properties=(_P.checkpoint_policy,), has_history=True),
    "vacuumProtocolCheck": Droppable(has_history=True),
}
"""Current name → what goes with the feature; the same ones as in Delta Spark."""


def check_droppable(current: TableConfiguration, feature: str) -> Droppable:
    """What goes with a feature.

    Raises:
        InvalidInputError: nobody knows it, the table does not have it, another feature requires
            it, or it stays in every table that ever had it.
    """
    if find_feature(feature) is None:
        raise InvalidInputError(f"cannot drop {feature!r}: there is no such table feature")
    protocol_change.without_feature(current.protocol, feature)  # raises what stands against it
    found = DROPPABLE.get(canonical_name(feature))
    if found is None:
        raise InvalidInputError(
            f"cannot drop the table feature {feature!r}: it stays in a table that has it; those "
            f"that can be dropped are {', '.join(DROPPABLE)}"
        )
    return found


def unused(current: TableConfiguration, feature: str) -> TableConfiguration:
    """The table with the feature supported still, and nothing that puts it to use.

    Raises:
        InvalidInputError: as `check_droppable`, or something else needs it: constraints, names
            that only column mapping allows, Iceberg compatibility.
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
            f"cannot drop the table feature {feature!r}: the table uses it still"
            + _why(canonical_name(feature), after)
        )
    # Names and types must be such as a table without the feature may have.
    checks.check(after, before=current, is_whole=True)
    return after


def without_feature(
    current: TableConfiguration, feature: str, *, protected_before_version: int | None = None
) -> TableConfiguration:
    """The table without a feature.

    Args:
        current: the table.
        feature: to drop, by any of its names.
        protected_before_version: of the commit that drops it, where older versions of the history
            need the feature and stay.

    Raises:
        InvalidInputError: as `unused`.

    Protocol: Checkpoint Protection
    """
    after = unused(current, feature)
    protocol = protocol_change.without_feature(after.protocol, feature)
    configuration = dict(after.metadata.configuration)
    if protected_before_version is not None:
        protocol = protocol_change.with_features(protocol, [CHECKPOINT_PROTECTION])
        configuration[PROTECTED_BEFORE_PROPERTY] = str(protected_before_version)
    made = TableConfiguration(protocol, replace(after.metadata, configuration=configuration))
    check_usable(made, before=current)
    return made


def with_current_row_ids(current: TableConfiguration) -> TableConfiguration:
    """The table with today's row tracking in place of the draft's row ids; hidden ids stay.

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
    if current.row_id_dialect is Dialect.DRAFT and current.row_id_column is not None:
        configuration[_P.materialized_row_id_column_name.key] = current.row_id_column
    if current.row_ids_enabled:
        configuration[_P.enable_row_tracking.key] = "true"
    stored = completed(configuration, protocol, before=current)
    made = TableConfiguration(protocol, replace(current.metadata, configuration=stored))
    check_usable(made, before=current)
    return made


def _why(feature: str, table: TableConfiguration) -> str:
    if feature == "checkConstraints":
        return f"; drop the constraints {', '.join(table.properties.constraints)} first"
    return ""
