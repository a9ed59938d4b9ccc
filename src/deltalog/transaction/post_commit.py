"""What follows a commit, whichever door it came through: one list of steps, each with its switch.

Owns the order and when each step is due. None of them can fail the commit, which is made: failures
are logged. Work that goes through many files is handed in (`Maintenance`), since tasks of a cluster
may do it.

Protocol: Checkpoints, Version Checksum File, Metadata Cleanup
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from deltalog.log.names import commit_path
from deltalog.snapshot import load_snapshot
from deltalog.upkeep import cleanup_metadata, create_checkpoint, write_checksum

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.snapshot import Snapshot
    from deltalog.transaction.pending import PendingTransaction
    from deltalog.transaction.properties import PostCommitHookProperties

logger = logging.getLogger(__name__)

_MANY_COMMITS: Final = 200


class Maintenance(Protocol):
    """Who does the work after a commit that goes through many files."""

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint of a version; whether this process went through all its files.

        Args:
            snapshot: the version.
            at_ms: milliseconds since 1970, UTC; tombstones that have expired by then are left out.
        """
        ...

    def compact(self, snapshot: Snapshot, hooks: PostCommitHookProperties) -> Snapshot:
        """Put small files together where that is worth a commit; the version to go on with."""
        ...


class LogMaintenance:
    """The maintenance of a commit that has no engine: of the log alone, in this process."""

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """`upkeep.create_checkpoint`."""
        create_checkpoint(snapshot, at_ms=at_ms)
        return True

    def compact(self, snapshot: Snapshot, hooks: PostCommitHookProperties) -> Snapshot:
        """Leave files as they are: nobody is there to rewrite them."""
        del hooks
        return snapshot


@dataclass(slots=True, kw_only=True)
class _Committed:
    """A commit that was just made, while its steps are done.

    Args:
        pending: what it held.
        snapshot: its version, or a later one that a step made.
        hooks: what is wanted.
        maintenance: does what goes through files.
        txn_id: name of the commit attempt.
        has_checkpoint: whether a step wrote one.
        was_read_whole: whether this process went through all files of the version for it.
    """

    pending: PendingTransaction
    snapshot: Snapshot
    hooks: PostCommitHookProperties
    maintenance: Maintenance
    txn_id: str
    has_checkpoint: bool = False
    was_read_whole: bool = False

    def now_ms(self) -> int:
        return self.pending.context.clock.now_ms()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One thing to do after commits.

    Args:
        name: for the log.
        is_due: whether it is switched on, and this commit calls for it.
        act: does it.
        needs_published: whether the commit has to stand in `_delta_log` under its own name: what a
            catalog has not published yet gets neither checkpoint nor checksum.
    """

    name: str
    is_due: Callable[[_Committed], bool]
    act: Callable[[_Committed], None]
    needs_published: bool = True


def _is_checkpoint_due(done: _Committed) -> bool:
    version = done.snapshot.version
    interval = done.snapshot.configuration.properties.checkpoint_interval
    return done.hooks.create_checkpoint and version > 0 and version % interval == 0


def _checkpoint(done: _Committed) -> None:
    done.was_read_whole = done.maintenance.write_checkpoint(done.snapshot, done.now_ms())
    done.has_checkpoint = True


def _checksum(done: _Committed) -> None:
    """Write the version's checksum, carried on from the one before where that is known.

    Where all files were gone through for a checkpoint, it is made anew from them.
    """
    before, snapshot = done.pending.snapshot, done.snapshot
    whole = done.was_read_whole
    previous = None
    if before is not None and before.version == snapshot.version - 1:
        previous = before.known_checksum
        if previous is None and before.segment.checksum is None and not whole:
            return
    snapshot.known_checksum = write_checksum(
        snapshot, previous=previous, whole=whole, txn_id=done.txn_id
    )


def _is_cleanup_due(done: _Committed) -> bool:
    wanted = done.hooks.cleanup_expired_logs
    if wanted is None:
        wanted = done.snapshot.configuration.properties.enable_expired_log_cleanup
    return done.has_checkpoint and wanted


def _clean_up(done: _Committed) -> None:
    cleanup_metadata(done.snapshot, at_ms=done.now_ms())


def _is_long(done: _Committed) -> bool:
    return done.has_checkpoint and len(done.snapshot.segment.commits) > _MANY_COMMITS


def _reopen(done: _Committed) -> None:
    """Go on from the new checkpoint: who commits for days need not carry every commit along."""
    done.snapshot = load_snapshot(done.snapshot.context, version=done.snapshot.version)


def _may_compact(done: _Committed) -> bool:
    wanted = done.hooks.auto_compact
    if wanted is None:
        wanted = done.snapshot.configuration.properties.auto_compact
    return bool(wanted) and done.pending.data_change


def _compact(done: _Committed) -> None:
    done.snapshot = done.maintenance.compact(done.snapshot, done.hooks)


_STEPS: Final = (
    _Step(name="checkpoint", is_due=_is_checkpoint_due, act=_checkpoint),
    _Step(name="checksum", is_due=lambda done: done.hooks.write_checksum, act=_checksum),
    _Step(name="cleanup", is_due=_is_cleanup_due, act=_clean_up),
    _Step(name="reading", is_due=_is_long, act=_reopen),
    _Step(name="compaction", is_due=_may_compact, act=_compact, needs_published=False),
)


def after_commit(
    pending: PendingTransaction,
    snapshot: Snapshot,
    hooks: PostCommitHookProperties,
    maintenance: Maintenance,
    *,
    txn_id: str,
) -> Snapshot:
    """Do every step that is due; the snapshot to go on with.

    Args:
        pending: what was committed.
        snapshot: the version just committed.
        hooks: what is wanted.
        maintenance: does what goes through files.
        txn_id: name of the commit attempt.

    Cost: one request for the checksum; every so many commits as `upkeep.create_checkpoint` and
    `upkeep.cleanup_metadata`; where the table asks for it, a compaction.
    """
    target = snapshot.segment.target_commit
    is_published = target is not None and target.path == commit_path(snapshot.version)
    done = _Committed(
        pending=pending, snapshot=snapshot, hooks=hooks, maintenance=maintenance, txn_id=txn_id
    )
    for step in _STEPS:
        if not is_published and step.needs_published:
            continue
        try:
            if step.is_due(done):
                step.act(done)
        except Exception:  # the commit is made, whatever happens to what follows
            logger.exception(
                "%s of version %d of %s failed; the commit stands",
                step.name,
                snapshot.version,
                snapshot.store.root,
            )
    return done.snapshot
