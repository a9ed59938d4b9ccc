"""What follows a commit: checkpoint, version checksum, cleanup of the log.

Owns when. None of it can fail the commit, which is made: failures are logged.

Protocol: Checkpoints, Version Checksum File, Metadata Cleanup
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalog.clock import Clock
    from deltalog.snapshot import Snapshot
    from deltalog.transaction.properties import PostCommitHookProperties


def after_commit(
    before: Snapshot | None, snapshot: Snapshot, hooks: PostCommitHookProperties, clock: Clock
) -> Snapshot:
    """Look after the log; the snapshot to go on with.

    Args:
        before: what the commit was made on, if that was a table.
        snapshot: the version just committed.
        hooks: what is wanted.
        clock: tells the time.
    """
    del before, hooks, clock
    return snapshot
