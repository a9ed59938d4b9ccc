"""Metadata changes that do not conflict with concurrent writes.

Owns the list of properties that may be enabled while another transaction writes: files written
before the change stay valid after it. Pure.

Protocol: none; ledger D-34
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from deltalog.actions.properties import TableProperties
from deltalog.column_mapping import MAX_COLUMN_ID_PROPERTY, MODE_PROPERTY, Mode, strip
from deltalog.configuration import TableConfiguration
from deltalog.schema import encode_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.actions import Metadata, Protocol

_P = TableProperties
_ROW_TRACKING_COLUMNS: Final = (
    _P.materialized_row_id_column_name.key,
    _P.materialized_row_commit_version_column_name.key,
)
_TIMESTAMP_PROVENANCE: Final = (
    _P.in_commit_timestamp_enablement_version.key,
    _P.in_commit_timestamp_enablement_timestamp.key,
)


def is_harmless_change(
    before: TableConfiguration, found: Metadata, *, protocol: Protocol | None
) -> bool:
    """Whether files written for `before` may be committed after the metadata `found`.

    Args:
        before: protocol and metadata that the writer built on.
        found: the metadata of the winning commit.
        protocol: the protocol of the same commit, if it sets one.
    """
    mine = before.metadata
    same_but_these = replace(
        found, configuration=mine.configuration, schema_string=mine.schema_string
    )
    if same_but_these != mine:
        return False
    after = TableConfiguration(before.protocol if protocol is None else protocol, found)
    if mine.configuration.keys() - found.configuration.keys():
        return False
    changed = {
        key for key, value in found.configuration.items() if mine.configuration.get(key) != value
    }
    if not all(key in _HARMLESS and _HARMLESS[key](before, after) for key in changed):
        return False
    return found.schema_string == mine.schema_string or _gained_names_only(before, after)


def _gained_names_only(before: TableConfiguration, after: TableConfiguration) -> bool:
    """Whether the schema gained only ids and physical names, as column mapping was enabled."""
    same = encode_schema(strip(after.schema)) == encode_schema(before.schema)
    return same and _mapping_was_switched_on(before, after)


def _mapping_was_switched_on(before: TableConfiguration, after: TableConfiguration) -> bool:
    modes = before.column_mapping_mode, after.column_mapping_mode
    return modes == (Mode.NONE, Mode.NAME)


def _gives_row_ids(_before: TableConfiguration, after: TableConfiguration) -> bool:
    return after.row_ids_enabled


def _keeps_timestamps(_before: TableConfiguration, after: TableConfiguration) -> bool:
    return after.in_commit_timestamps is not None


def _allows_deletion_vectors(_before: TableConfiguration, after: TableConfiguration) -> bool:
    return after.writes_deletion_vectors


def _has_new_checkpoints(_before: TableConfiguration, after: TableConfiguration) -> bool:
    return after.properties.checkpoint_policy == "v2" and after.supports("v2Checkpoint")


_HARMLESS: Final[Mapping[str, Callable[[TableConfiguration, TableConfiguration], bool]]] = {
    _P.enable_row_tracking.key: _gives_row_ids,
    **dict.fromkeys(_ROW_TRACKING_COLUMNS, _gives_row_ids),
    MODE_PROPERTY: _mapping_was_switched_on,
    MAX_COLUMN_ID_PROPERTY: _mapping_was_switched_on,
    _P.enable_deletion_vectors.key: _allows_deletion_vectors,
    _P.enable_in_commit_timestamps.key: _keeps_timestamps,
    **dict.fromkeys(_TIMESTAMP_PROVENANCE, _keeps_timestamps),
    _P.checkpoint_policy.key: _has_new_checkpoints,
}
