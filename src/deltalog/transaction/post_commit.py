"""What follows a commit: version checksum, checkpoint, cleanup of the log.

Owns when. None of it can fail the commit, which is made: failures are logged.

Protocol: Checkpoints, Version Checksum File, Metadata Cleanup
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from deltalog.log.names import commit_path
from deltalog.snapshot import load_snapshot
from deltalog.upkeep import create_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.clock import Clock
    from deltalog.snapshot import Snapshot
    from deltalog.transaction.properties import PostCommitHookProperties

logger = logging.getLogger(__name__)

_MANY_COMMITS: Final = 200


def after_commit(
    before: Snapshot | None, snapshot: Snapshot, hooks: PostCommitHookProperties, clock: Clock
) -> Snapshot:
    """Look after the log; the snapshot to go on with.

    Args:
        before: what the commit was made on, if that was a table.
        snapshot: the version just committed.
        hooks: what is wanted.
        clock: tells the time.

    Cost: nothing but every so many commits; then as `upkeep.create_checkpoint`.
    """
    del before
    if not _is_due(snapshot, hooks):
        return snapshot
    made = _tried("checkpoint", snapshot, lambda: create_checkpoint(snapshot, at_ms=clock.now_ms()))
    if made and len(snapshot.segment.commits) > _MANY_COMMITS:
        # Who commits for days need not carry every commit along.
        return _reopened(snapshot)
    return snapshot


def _is_due(snapshot: Snapshot, hooks: PostCommitHookProperties) -> bool:
    target, version = snapshot.segment.target_commit, snapshot.version
    if not hooks.create_checkpoint or not version or target is None:
        return False
    # A catalog's commits may have checkpoints only after they are published.
    is_published = target.path == commit_path(version)
    interval = snapshot.configuration.properties.checkpoint_interval
    return is_published and version % interval == 0


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
    return load_snapshot(snapshot.store, version=snapshot.version, log_tail=snapshot.log_tail)
