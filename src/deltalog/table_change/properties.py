"""The configuration of a table: what a user asks for, and what writers add to it.

Protocol: Table Properties, Row Tracking
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from deltalog.actions.properties import PROPERTIES, TableProperties
from deltalog.actions.settable import canonical_key, check_settable
from deltalog.errors import InvalidInputError
from deltalog.features.protocol_change import requested_protocol, supported_features
from deltalog.features.registry import canonical_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.actions.model import Protocol
    from deltalog.configuration import TableConfiguration

_ROW_ID_COLUMN: Final = "delta.rowTracking.materializedRowIdColumnName"
_ROW_COMMIT_VERSION_COLUMN: Final = "delta.rowTracking.materializedRowCommitVersionColumnName"
_DRAFT_ROW_ID_COLUMN: Final = "delta.rowIds.physicalColumnName"
_ENABLEMENT: Final = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)


def kept_by_writers(key: str) -> bool:
    """Whether only writers may set the property."""
    known = PROPERTIES.get(key)
    return known is not None and not known.settable


def checked_change(
    current: Mapping[str, str], asked: Mapping[str, str], *, is_lenient: bool = False
) -> dict[str, str]:
    """The whole configuration that is asked for, in place of the current one.

    What stays as it is needs no check: other writers may have put it there. What only writers set
    stays whether it is asked for or not.

    Args:
        current: of the table.
        asked: all of it.
        is_lenient: whether `delta.` properties that nobody knows are stored as they are.

    Raises:
        InvalidInputError: a property that changes is unknown, not for users, or has a bad value.
    """
    given: Mapping[str, object] = asked  # what callers bring is not what types promise
    odd = {key: value for key, value in given.items() if not isinstance(value, str)}
    if odd:
        raise InvalidInputError(f"expected table properties as texts, found {odd}")
    changes = {key: text for key, text in asked.items() if current.get(key) != text}
    unknown = {key: text for key, text in changes.items() if is_lenient and not _is_known(key)}
    wanted = check_settable({key: text for key, text in changes.items() if key not in unknown})
    unchanged = {
        key: text
        for key, text in current.items()
        if (key in asked and key not in changes) or kept_by_writers(key)
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
    """Refuse the draft's row ids on a table that does not have them: only old drafts know them.

    Raises:
        InvalidInputError: `delta.enableRowIds` is set and nothing asks for the feature.
    """
    if not TableProperties(configuration).enable_row_ids:
        return
    _, requested = requested_protocol(configuration)
    named = {canonical_name(name) for name in (*features, *requested)}
    if "rowIds" not in named and "rowIds" not in supported_features(current):
        raise InvalidInputError(
            "cannot set delta.enableRowIds: it is a draft's word, and other engines could not "
            "write the table; set delta.enableRowTracking = true"
        )


def completed(
    configuration: Mapping[str, str],
    protocol: Protocol,
    *,
    before: TableConfiguration | None = None,
) -> dict[str, str]:
    """The configuration with what the features need: names of the hidden columns of row ids.

    Delta Spark names them as soon as the feature is supported; names are random, so that no
    column of the table ever has one. When in-commit timestamps began is for the commit to say, and
    what is left of an earlier time goes.

    Protocol: Row Tracking (Materialized Row IDs)
    """
    features = supported_features(protocol)
    needed: dict[str, str] = {}
    if "rowTracking" in features:
        needed[_ROW_ID_COLUMN] = f"_row-id-col-{uuid.uuid4()}"
        needed[_ROW_COMMIT_VERSION_COLUMN] = f"_row-commit-version-col-{uuid.uuid4()}"
    if "rowIds" in features:
        needed[_DRAFT_ROW_ID_COLUMN] = f"_row-id-col-{uuid.uuid4()}"
    found = {**needed, **configuration}
    if before is None or before.in_commit_timestamps is None:
        for key in _ENABLEMENT:
            found.pop(key, None)
    return found
