"""The `commitInfo` action of a commit.

Owns its members, in the order and form that Delta Spark gives them, since readers of other engines
parse them.

Protocol: Commit Provenance Information
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalog._json import dumps
from deltalog._version import __version__
from deltalog.errors import InvalidInputError
from deltalog.features.identity_columns import IDENTITY_TAG
from deltalog.features.row_ids import PRESERVED_TAG, Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.configuration import TableConfiguration
    from deltalog.transaction.commit_base import CommitBase
    from deltalog.transaction.pending import PendingTransaction

COMMIT_INFO_MEMBERS: Final = frozenset(
    {
        "inCommitTimestamp",
        "timestamp",
        "operation",
        "isolationLevel",
        "isBlindAppend",
        "operationMetrics",
        "tags",
        "engineInfo",
        "txnId",
        "version",
    }
)
"""The members that every commit sets, or may set."""
_PARAMETERS: Final = "operationParameters"


ENGINE_INFO: Final = f"deltalog/{__version__}"


def commit_info(
    pending: PendingTransaction,
    base: CommitBase,
    configuration: TableConfiguration,
    *,
    txn_id: str,
    now_ms: int,
    in_commit_timestamp_ms: int | None,
    isolation_level: str,
) -> dict[str, Any]:
    """Return the members of `commitInfo`, without nulls but those of the caller.

    Args:
        pending: the content of the commit.
        base: the version below it.
        configuration: protocol and metadata after it.
        txn_id: id of the transaction.
        now_ms: milliseconds since 1970, UTC.
        in_commit_timestamp_ms: its in-commit timestamp; None if the table has none.
        isolation_level: as `commitInfo` names it.

    Raises:
        InvalidInputError: custom metadata has the name of a member that every commit sets.
    """
    taken = sorted(COMMIT_INFO_MEMBERS & pending.custom_metadata.keys())
    if taken:
        raise InvalidInputError(
            f"custom metadata cannot have the name(s) {', '.join(taken)}: every commit sets them"
        )
    custom = dict(pending.custom_metadata)
    asked = {name: _as_text(value) for name, value in custom.pop(_PARAMETERS, {}).items()}
    read_version = None if pending.snapshot is None else pending.snapshot.version
    ours = {
        "inCommitTimestamp": in_commit_timestamp_ms,
        "timestamp": now_ms,
        "operation": pending.operation,
        _PARAMETERS: asked
        | {name: _parameter(value) for name, value in pending.parameters.items()},
        "readVersion": custom.pop("readVersion", read_version),
        "isolationLevel": isolation_level,
        "isBlindAppend": pending.is_blind_append,
        "operationMetrics": {name: str(value) for name, value in pending.metrics.items()},
    }
    last = {
        "tags": _tags(pending, base, configuration) or None,
        "engineInfo": ENGINE_INFO,
        "txnId": txn_id,
    }
    return {**_without_nulls(ours), **custom, **_without_nulls(last)}


def _without_nulls(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _parameter(value: Any) -> Any:
    """Encode lists and objects as JSON strings, as Delta Spark does."""
    return dumps(value).decode() if isinstance(value, dict | list | tuple) else value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value).decode()


def _tags(
    pending: PendingTransaction, base: CommitBase, configuration: TableConfiguration
) -> Mapping[str, str]:
    tags = dict(pending.tags)
    if configuration.row_id_dialect is Dialect.CURRENT and configuration.row_ids_enabled:
        # Rows copied before row tracking was enabled had no ids that could be kept.
        preserved = pending.preserves_row_ids and not base.gained_row_ids
        tags.setdefault(PRESERVED_TAG, "true" if preserved else "false")
    if pending.changes_identity_marks_only:
        tags.setdefault(IDENTITY_TAG, "true")
    return tags
