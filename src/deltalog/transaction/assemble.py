"""Assemble the bytes of a commit from a pending transaction and the version below it.

Owns which actions a commit holds and in which order, the assignment of row ids and in-commit
timestamps, and the final checks. Runs again for every attempt, so that ids and timestamps follow
the version that the attempt builds on. Does no I/O.

Protocol: Delta Log Entries, Actions, Commit Provenance Information, In-Commit Timestamps, Row
Tracking
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.actions import CommitInfo, SetTransaction, encode_actions
from deltalog.actions.properties import TableProperties
from deltalog.configuration import TableConfiguration
from deltalog.errors import InvalidInputError
from deltalog.features import in_commit_timestamps
from deltalog.features.row_ids import BACKFILL, UNBACKFILL
from deltalog.features.support import check_protocol, check_writable
from deltalog.kernels import compute
from deltalog.log.names import MAX_VERSION
from deltalog.replay import file_keys
from deltalog.transaction.commit_checks import check_parts
from deltalog.transaction.file_lines import add_lines, remove_lines
from deltalog.transaction.provenance import commit_info
from deltalog.transaction.read_set import SNAPSHOT_ISOLATION
from deltalog.transaction.row_id_assignment import assign_row_ids

if TYPE_CHECKING:
    from deltalog.actions import Action
    from deltalog.transaction.commit_base import CommitBase
    from deltalog.transaction.pending import PendingTransaction

_ENABLEMENT_KEYS: Final = (
    TableProperties.in_commit_timestamp_enablement_version.key,
    TableProperties.in_commit_timestamp_enablement_timestamp.key,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The bytes of one commit attempt.

    Args:
        version: the version that it would create.
        data: newline-delimited JSON, `commitInfo` first.
        configuration: protocol and metadata of that version.
        in_commit_timestamp_ms: its in-commit timestamp; None if the table has none.
    """

    version: int
    data: bytes
    configuration: TableConfiguration
    in_commit_timestamp_ms: int | None


def assemble(
    pending: PendingTransaction,
    base: CommitBase,
    *,
    txn_id: str,
    now_ms: int,
    has_log_tail: bool = False,
) -> Assembled:
    """Assemble the commit that follows `base`.

    Args:
        pending: the content of the commit.
        base: the version below it.
        txn_id: id of the transaction, the same for every attempt.
        now_ms: milliseconds since 1970, UTC.
        has_log_tail: whether a catalog decides which commits are part of the table.

    Raises:
        InvalidInputError: the parts contradict each other, or the table.
        DeltaProtocolError: the table cannot be written.

    Cost: one pass over the files that the commit names, existing files in batches. No I/O.
    """
    version = base.version + 1
    if version > MAX_VERSION:
        raise InvalidInputError(
            f"cannot commit to {pending.store.root}: its version {base.version} is the last one "
            "that 64 bits hold"
        )
    configuration = effective_configuration(pending, base)
    time_ms = None
    if configuration.in_commit_timestamps is not None:
        time_ms = in_commit_timestamps.next_timestamp_ms(now_ms, base.previous_commit_timestamp_ms)
    configuration = _with_timestamp_enablement(configuration, base, version, time_ms)
    check_protocol(configuration.protocol)
    check_writable(
        configuration, table=pending.store.root, version=version, has_log_tail=has_log_tail
    )
    rows = _without_touched(pending, base)
    given = assign_row_ids(pending, base, configuration, rows, version)
    info = commit_info(
        pending,
        base,
        configuration,
        txn_id=txn_id,
        now_ms=now_ms,
        in_commit_timestamp_ms=time_ms,
        isolation_level=isolation_level(pending, configuration),
    )
    # The protocol says: with in-commit timestamps, commitInfo must be the first action.
    actions: list[Action] = [CommitInfo(values=info), *_table_actions(configuration, base)]
    actions += [
        SetTransaction(
            app_id=txn.app_id,
            version=txn.version,
            last_updated_ms=now_ms if txn.last_updated is None else txn.last_updated,
        )
        for txn in pending.app_transactions.values()
    ]
    actions += pending.domains.values()
    actions += given.actions
    actions += given.adds
    actions += pending.cdc
    check_parts(pending, configuration, actions, given.rows, before=base.configuration)
    lines = [encode_actions(actions), *add_lines(given.rows)]
    for files, data_change in pending.removes:
        lines += remove_lines(
            given.with_ids(files), data_change=data_change, deletion_timestamp_ms=now_ms
        )
    return Assembled(
        version=version,
        data=b"".join(lines),
        configuration=configuration,
        in_commit_timestamp_ms=time_ms,
    )


def effective_configuration(pending: PendingTransaction, base: CommitBase) -> TableConfiguration:
    """Protocol and metadata after the commit: what it sets; else those of the version below."""
    now = base.configuration
    if now is None:
        return pending.configuration
    protocol, metadata = pending.changes_protocol, pending.changes_metadata
    if not protocol and not metadata:
        return now
    mine = pending.configuration
    return TableConfiguration(
        mine.protocol if protocol else now.protocol, mine.metadata if metadata else now.metadata
    )


def isolation_level(pending: PendingTransaction, configuration: TableConfiguration) -> str:
    """The table's isolation level; snapshot isolation if no row changes (ledger D-35)."""
    if pending.names_files and not pending.data_change:
        return SNAPSHOT_ISOLATION
    return configuration.properties.isolation_level


def _with_timestamp_enablement(
    configuration: TableConfiguration, base: CommitBase, version: int, time_ms: int | None
) -> TableConfiguration:
    """Record since which version and time the table has in-commit timestamps.

    Protocol: In-Commit Timestamps (enablement)
    """
    texts = dict(configuration.metadata.configuration)
    before = base.configuration
    kept: dict[str, str] = {}
    if time_ms is not None and before is not None:
        if before.in_commit_timestamps is None:
            kept = dict(zip(_ENABLEMENT_KEYS, (str(version), str(time_ms)), strict=True))
        else:
            old = before.metadata.configuration
            kept = {key: old[key] for key in _ENABLEMENT_KEYS if key in old}
    changed = {key: text for key, text in texts.items() if key not in _ENABLEMENT_KEYS} | kept
    if changed == texts:
        return configuration
    metadata = replace(configuration.metadata, configuration=changed)
    return TableConfiguration(configuration.protocol, metadata)


def _table_actions(configuration: TableConfiguration, base: CommitBase) -> list[Action]:
    now = base.configuration
    found: list[Action] = []
    if now is None or now.metadata != configuration.metadata:
        found.append(configuration.metadata)
    if now is None or now.protocol != configuration.protocol:
        found.append(configuration.protocol)
    return found


def _without_touched(pending: PendingTransaction, base: CommitBase) -> pa.Table:
    """Files to add again; a backfill leaves out files that winners have added or removed."""
    rows = pending.files_added_again
    if base.touched_paths is None or pending.operation not in {BACKFILL, UNBACKFILL}:
        return rows
    keys = file_keys(rows.column("path"), None, pending.store.root)
    touched = compute.is_in(keys, value_set=base.touched_paths.combine_chunks())
    return rows.filter(compute.invert(touched))
