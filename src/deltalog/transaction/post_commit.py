"""What follows a commit: version checksum, checkpoint, cleanup of the log.

Owns when. None of it can fail the commit, which is made: failures are logged.

Protocol: Checkpoints, Version Checksum File, Metadata Cleanup
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from deltalog.log.names import commit_path
from deltalog.snapshot import load_snapshot
from deltalog.upkeep import cleanup_metadata, create_checkpoint, write_checksum

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.clock import Clock
    from deltalog.snapshot import Snapshot
    from deltalog.transaction.properties import PostCommitHookProperties

logger = logging.getLogger(__name__)

_MANY_COMMITS: Final = 200


def after_commit(
    before: Snapshot | None,
    snapshot: Snapshot,
    hooks: PostCommitHookProperties,
    clock: Clock,
    *,
    txn_id: str,
) -> Snapshot:
    """Look after the log; the snapshot to go on with.

    Args:
        before: what the commit was made on, if that was a table.
        snapshot: the version just committed.
        hooks: what is wanted.
        clock: tells the time.
        txn_id: name of the commit attempt.

    Cost: one request for the checksum; every so many commits as `upkeep.create_checkpoint` and
    `upkeep.cleanup_metadata`.
    """
    target, version = snapshot.segment.target_commit, snapshot.version
    if target is None or target.path != commit_path(version):
        return snapshot  # what a catalog has not published yet gets neither
    interval = snapshot.configuration.properties.checkpoint_interval
    is_due = hooks.create_checkpoint and version > 0 and version % interval == 0
    write = hooks.checkpoint_by or _checkpoint_here
    made = is_due and _tried("checkpoint", snapshot, lambda: write(snapshot, clock.now_ms()))
    # Who has others write checkpoints does not want to go through all files here for a sum either.
    whole = made and hooks.checkpoint_by is None
    _tried("checksum", snapshot, lambda: _write_checksum(before, snapshot, txn_id, whole=whole))
    if not made:
        return snapshot
    if _cleans_up(snapshot, hooks):
        _tried("cleanup", snapshot, lambda: cleanup_metadata(snapshot, at_ms=clock.now_ms()))
    # Who commits for days need not carry every commit along.
    return _reopened(snapshot) if len(snapshot.segment.commits) > _MANY_COMMITS else snapshot


def _checkpoint_here(snapshot: Snapshot, at_ms: int) -> None:
    create_checkpoint(snapshot, at_ms=at_ms)


def _write_checksum(
    before: Snapshot | None, snapshot: Snapshot, txn_id: str, *, whole: bool
) -> None:
    """Write the version's checksum, carried on from the one before where that is known."""
    previous = None
    if before is not None and before.version == snapshot.version - 1:
        previous = before.known_checksum
        if previous is None and before.segment.checksum is None and not whole:
            return
    snapshot.known_checksum = write_checksum(
        snapshot, previous=previous, whole=whole, txn_id=txn_id
    )


def _cleans_up(snapshot: Snapshot, hooks: PostCommitHookProperties) -> bool:
    if hooks.cleanup_expired_logs is not None:
        return hooks.cleanup_expired_logs
    return snapshot.configuration.properties.enable_expired_log_cleanup


def _tried(what: str, snapshot: Snapshot, act: Callable[[], object]) -> bool:
    try:
        act()
    except Exception:  # the commit is made, whatever happens to what follows
        logger.exception(
            "%s of version %d of %s failed; the commit stands",
            what,
            snapshot.version,
            snapshot.store.root,
        )
        return False
    return True


def _reopened(snapshot: Snapshot) -> Snapshot:
    found = [snapshot]
    _tried("reading", snapshot, lambda: found.append(_loaded(snapshot)))
    return found[-1]


def _loaded(snapshot: Snapshot) -> Snapshot:
    return load_snapshot(snapshot.context, version=snapshot.version)
