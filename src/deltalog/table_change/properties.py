"""Table properties to store: those that a user sets, and those that writers maintain.

Protocol: Table Properties, Row Tracking
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from deltalog.actions.properties import PROPERTIES, TableProperties
from deltalog.actions.settable import canonical_key, check_settable
from deltalog.column_mapping import HAS_DROPPED_OR_RENAMED_PROPERTY, USAGE_TRACKING
from deltalog.errors import InvalidInputError
from deltalog.features.protocol_change import requested_protocol, supported_features
from deltalog.features.registry import canonical_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.actions.model import Protocol
    from deltalog.configuration import TableConfiguration

_P: Final = TableProperties
_ENABLEMENT: Final = (
    _P.in_commit_timestamp_enablement_version.key,
    _P.in_commit_timestamp_enablement_timestamp.key,
)


def is_set_by_writers(key: str) -> bool:
    """Whether only writers may set the property."""
    known = PROPERTIES.get(key)
    return known is not None and not known.settable


def checked_configuration(
    current: Mapping[str, str], asked: Mapping[str, str], *, is_lenient: bool = False
) -> dict[str, str]:
    """Return the new table properties, after checking those that change.

    Only properties that change are checked: another writer may have set the others. Properties
    that only writers set stay, whether the user names them or not.

    Args:
        current: of the table.
        asked: the whole configuration that the user wants.
        is_lenient: whether unknown `delta.` properties are stored as they are.

    Raises:
        InvalidInputError: a property that changes is unknown, set by writers only, or has an
            invalid value.
    """
    given: Mapping[str, object] = asked  # callers may ignore the types
    odd = {key: value for key, value in given.items() if not isinstance(value, str)}
    if odd:
        raise InvalidInputError(f"expected table properties as texts, found {odd}")
    changes = {key: text for key, text in asked.items() if current.get(key) != text}
    unknown = {key: text for key, text in changes.items() if is_lenient and not _is_known(key)}
    wanted = check_settable({key: text for key, text in changes.items() if key not in unknown})
    unchanged = {
        key: text
        for key, text in current.items()
        if (key in asked and key not in changes) or is_set_by_writers(key)
    }
    return {**unchanged, **unknown, **wanted}


def _is_known(key: str) -> bool:
    try:
        canonical_key(key)
    except InvalidInputError:
        return False
    return True


def check_dialect(
    configuration: Mapping[str, str], current: Protocol, features: Sequence[str]
) -> None:
    """Raise if the draft's row ids are enabled on a table that does not support them yet.

    No other engine supports the draft's feature, so such a table could be written by deltalog only.

    Raises:
        InvalidInputError: `delta.enableRowIds` is set, and the table does not support the feature.
    """
    if not TableProperties(configuration).enable_row_ids:
        return
    _, requested = requested_protocol(configuration)
    named = {canonical_name(name) for name in (*features, *requested)}
    if "rowIds" not in named and "rowIds" not in supported_features(current):
        raise InvalidInputError(
            "cannot set delta.enableRowIds: it belongs to a draft of the protocol, and other "
            "engines could not write the table; set delta.enableRowTracking = true"
        )


def has_first_names(configuration: Mapping[str, str], protocol: Protocol) -> bool:
    """Whether no column was ever dropped or renamed, so that new ones may be stored by their names.

    Protocol: RFC Column Mapping Usage Tracking
    """
    tracked = USAGE_TRACKING in supported_features(protocol)
    return tracked and configuration.get(HAS_DROPPED_OR_RENAMED_PROPERTY) == "false"


def with_lost_names(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a table of which a column is dropped or renamed, if it tracks that.

    Protocol: RFC Column Mapping Usage Tracking
    """
    if HAS_DROPPED_OR_RENAMED_PROPERTY not in configuration:
        return dict(configuration)
    return {**configuration, HAS_DROPPED_OR_RENAMED_PROPERTY: "true"}


def stored_configuration(
    configuration: Mapping[str, str],
    protocol: Protocol,
    *,
    before: TableConfiguration | None = None,
) -> dict[str, str]:
    """Return the properties to store, with the names of the materialized row id columns.

    Delta Spark names the hidden columns as soon as the feature is supported. The names are random,
    so that they never collide with a column of the table. The commit records from which version
    on in-commit timestamps are enabled; what an earlier period left behind is removed.

    Protocol: Row Tracking (Materialized Row IDs)
    """
    features = supported_features(protocol)
    needed: dict[str, str] = {}
    if "rowTracking" in features:
        needed[_P.materialized_row_id_column_name.key] = f"_row-id-col-{uuid.uuid4()}"
        key = _P.materialized_row_commit_version_column_name.key
        needed[key] = f"_row-commit-version-col-{uuid.uuid4()}"
    if "rowIds" in features:
        needed[_P.row_ids_physical_column_name.key] = f"_row-id-col-{uuid.uuid4()}"
    found = {**needed, **configuration}
    if USAGE_TRACKING in features:
        if before is None:
            found.setdefault(HAS_DROPPED_OR_RENAMED_PROPERTY, "false")
        elif not before.supports(USAGE_TRACKING):
            # Of a table that is there, nobody has kept what was dropped or renamed.
            found[HAS_DROPPED_OR_RENAMED_PROPERTY] = "true"
    if before is None or before.in_commit_timestamps is None:
        for key in _ENABLEMENT:
            found.pop(key, None)
    return found
