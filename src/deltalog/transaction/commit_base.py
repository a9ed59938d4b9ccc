"""The base of a commit attempt: first the transaction's snapshot, then each winning commit.

Owns the facts that change from attempt to attempt: version, protocol and metadata, timestamp of the
previous commit, row ids in use, what a backfill did to files.

Protocol: In-Commit Timestamps, Row Tracking
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.configuration import TableConfiguration
from deltalog.errors import CommitConflictError
from deltalog.features import row_ids
from deltalog.features.row_ids import BACKFILL, UNBACKFILL
from deltalog.paths import canonical_paths

if TYPE_CHECKING:
    from deltalog.snapshot import Snapshot
    from deltalog.transaction.pending import PendingTransaction
    from deltalog.transaction.winners import WinningCommit

NEW_TABLE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBase:
    """The version directly below a commit.

    Args:
        version: -1 below version 0.
        configuration: protocol and metadata of that version; None below version 0.
        previous_commit_timestamp_ms: when that version was committed; None if it is not needed.
        row_id_high_water_mark: the highest row id in use; None if there is none yet.
        gained_row_ids: whether a winner enabled row tracking.
        backfilled: path, baseRowId and defaultRowCommitVersion of files that a winning backfill
            added again.
        touched_paths: paths that winners added or removed; kept for backfills only.
    """

    version: int = NEW_TABLE
    configuration: TableConfiguration | None = None
    previous_commit_timestamp_ms: int | None = None
    row_id_high_water_mark: int | None = None
    gained_row_ids: bool = False
    backfilled: pa.Table | None = None
    touched_paths: pa.ChunkedArray[pa.StringScalar] | None = None


def check_base(snapshot: Snapshot, *, is_there: bool) -> None:
    """Refuse to commit on top of a version that the log does not have any more.

    The name of the next version may be free, too: a commit would be acknowledged that nobody reads.

    Args:
        snapshot: the version that was read.
        is_there: whether the log has it.

    Raises:
        TableNotFoundError: the table is gone, or is another one by now.
        CommitConflictError: the table was set back, or its old commits were cleaned up.
    """
    if is_there:
        return
    latest = snapshot.refresh(same_table=True)
    raise CommitConflictError(
        f"cannot commit to {snapshot.store.root} on top of version {snapshot.version}, which was "
        "read: the log has another commit of it by now, or none, because it was cleaned up or set "
        f"back; the latest version is {latest.version}; nothing was committed"
    )


def first_base(pending: PendingTransaction) -> CommitBase:
    """The base of the first attempt: the transaction's snapshot.

    Cost: one request on tables with in-commit timestamps; the small actions of the log on tables
    with row ids. Nothing per file.
    """
    snapshot = pending.snapshot
    if snapshot is None:
        return CommitBase()
    before, after = snapshot.configuration, pending.configuration
    needs_time = before.in_commit_timestamps or after.in_commit_timestamps
    needs_mark = before.row_id_dialect or after.row_id_dialect
    return CommitBase(
        version=snapshot.version,
        configuration=before,
        previous_commit_timestamp_ms=snapshot.commit_timestamp_ms if needs_time else None,
        row_id_high_water_mark=snapshot.row_id_high_water_mark if needs_mark else None,
    )


def advance(base: CommitBase, winner: WinningCommit, pending: PendingTransaction) -> CommitBase:
    """The base of the next attempt, after a winner that does not conflict."""
    before = base.configuration
    protocol, metadata = winner.protocol, winner.metadata
    after = before
    if before is not None and (protocol or metadata):
        after = TableConfiguration(protocol or before.protocol, metadata or before.metadata)
    has_row_ids = after is not None and after.row_id_dialect is not None
    return replace(
        base,
        version=winner.version,
        configuration=after,
        previous_commit_timestamp_ms=_time_of(winner, after),
        row_id_high_water_mark=_mark_after(base, winner, pending.snapshot, needed=has_row_ids),
        gained_row_ids=base.gained_row_ids
        or (
            before is not None
            and after is not None
            and after.row_ids_enabled
            and not before.row_ids_enabled
        ),
        backfilled=_backfilled(base, winner),
        touched_paths=_touched(base, winner, pending),
    )


def _time_of(winner: WinningCommit, configuration: TableConfiguration | None) -> int:
    own = winner.info.get("inCommitTimestamp")
    if isinstance(own, int) and configuration is not None and configuration.in_commit_timestamps:
        return own
    return winner.file.info.modified_ms


def _mark_after(
    base: CommitBase, winner: WinningCommit, snapshot: Snapshot | None, *, needed: bool
) -> int | None:
    known = base.row_id_high_water_mark
    if known is None and needed and snapshot is not None:
        known = snapshot.row_id_high_water_mark
    marks = winner.actions.high_water_marks
    found = row_ids.high_water_mark(winner.domains, marks[-1][1] if marks else None)
    return max((mark for mark in (known, found) if mark is not None), default=None)


def _backfilled(base: CommitBase, winner: WinningCommit) -> pa.Table | None:
    if winner.operation != BACKFILL:
        return base.backfilled
    found = winner.adds.select(["path", "baseRowId", "defaultRowCommitVersion"])
    return found if base.backfilled is None else pa.concat_tables([base.backfilled, found])


def _touched(
    base: CommitBase, winner: WinningCommit, pending: PendingTransaction
) -> pa.ChunkedArray[pa.StringScalar] | None:
    if pending.operation not in {BACKFILL, UNBACKFILL}:
        return None
    chunks: list[Any] = [] if base.touched_paths is None else list(base.touched_paths.chunks)
    for files in (winner.adds, winner.removes):
        found: Any = canonical_paths(files.column("path"), pending.store.root)
        chunks += found.chunks
    return pa.chunked_array(chunks, pa.string())
