"""Post-commit steps: checkpoint, checksum, clean-up, Iceberg metadata, manifests, compaction.

This module defines the order of the steps and when each step is due. The commit is already made, so
a failure of a step is logged and not raised. The caller provides the steps that read many files
(`Maintenance`), because tasks on a cluster may do this work.

Protocol: Checkpoints, Version Checksum File, Metadata Cleanup
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from deltalog._util.observing import WorkKind, observed
from deltalog.errors import InvalidInputError
from deltalog.log.branches import branch_of
from deltalog.log.context import MaintenanceOperation
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.storage.pool import meanwhile
from deltalog.storage.store import is_local
from deltalog.transaction.maintenance.checksum import (
    allows_maintenance,
    read_checksum,
    write_checksum,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deltalog.protocol.actions import AddFile
    from deltalog.transaction.pending import PendingTransaction
    from deltalog.transaction.properties import PostCommitHookProperties

logger: logging.Logger = logging.getLogger(__name__)

_MANY_COMMITS: Final = 200


class Maintenance(Protocol):
    """The work after a commit that reads many files."""

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint; return whether this process read the file list of the version.

        Args:
            snapshot: the version.
            at_ms: milliseconds since 1970, UTC; tombstones that have expired at this time are
                omitted.
        """
        ...

    def compact(self, snapshot: Snapshot, hooks: PostCommitHookProperties) -> Snapshot:
        """Compact small files if auto-compaction is due; return the newest snapshot."""
        ...

    def index_keys(self, snapshot: Snapshot, adds: Sequence[AddFile]) -> None:
        """Index the keys of new files that their writer has not indexed.

        Args:
            snapshot: the version, whose table has a key index.
            adds: the new files.
        """
        ...


class LogMaintenance:
    """Maintenance without an engine: it writes checkpoints, but does not compact files."""

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Call `maintenance.create_checkpoint`."""
        from deltalog.transaction.maintenance.checkpoint import create_checkpoint  # noqa: PLC0415  # rarely needed

        create_checkpoint(snapshot, at_ms=at_ms)
        return True

    def compact(self, snapshot: Snapshot, hooks: PostCommitHookProperties) -> Snapshot:
        """Return the snapshot: without an engine, files are not compacted."""
        del hooks
        return snapshot

    def index_keys(self, snapshot: Snapshot, adds: Sequence[AddFile]) -> None:
        """Do nothing: without an engine, keys are not read."""


@dataclass(slots=True, kw_only=True)
class _PostCommit:
    """The state of the post-commit steps.

    Args:
        pending: the committed transaction.
        snapshot: the committed version, or a later version that a step has committed.
        hooks: the caller's options of the steps.
        maintenance: runs the steps that read many files.
        txn_id: id of the transaction.
        has_checkpoint: whether a step has written a checkpoint.
        was_read_whole: whether this process read the file list of the version for the checkpoint.
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
    """One post-commit step.

    Args:
        name: name of the step in log messages.
        is_due: returns whether the step is enabled and due after this commit.
        act: runs the step.
        needs_published: whether the step is skipped if the commit is ratified but not yet
            published.
    """

    name: str
    is_due: Callable[[_PostCommit], bool]
    act: Callable[[_PostCommit], None]
    needs_published: bool = True


def _is_checkpoint_due(done: _PostCommit) -> bool:
    version = done.snapshot.version
    interval = done.snapshot.configuration.properties.checkpoint_interval
    return done.hooks.create_checkpoint and version > 0 and version % interval == 0


def _checkpoint(done: _PostCommit) -> None:
    done.was_read_whole = done.maintenance.write_checkpoint(done.snapshot, done.now_ms())
    done.has_checkpoint = True


def _checksum(done: _PostCommit) -> None:
    """Write the version checksum.

    It is computed from the file list if this process read the list for a checkpoint. Otherwise it
    is derived from the previous version's checksum.
    """
    before, snapshot = done.pending.snapshot, done.snapshot
    whole = done.was_read_whole
    previous = None
    if before is not None and before.version == snapshot.version - 1:
        previous = before.known_checksum
        if previous is None and not whole:
            if before.segment.checksum is None:
                return
            # Another writer wrote that checksum, so prefer a list of all files (`whole`).
            previous = done.pending.checksum_before
    snapshot.known_checksum = write_checksum(
        snapshot, previous=previous, whole=whole, txn_id=done.txn_id
    )


def _is_cleanup_due(done: _PostCommit) -> bool:
    wanted = done.hooks.cleanup_expired_logs
    if wanted is None:
        wanted = done.snapshot.configuration.properties.enable_expired_log_cleanup
    is_allowed = allows_maintenance(done.snapshot, MaintenanceOperation.METADATA_CLEANUP)
    return done.has_checkpoint and wanted and is_allowed


def _clean_up(done: _PostCommit) -> None:
    from deltalog.transaction.maintenance.cleanup import cleanup_once_a_day  # noqa: PLC0415  # rarely needed

    cleanup_once_a_day(done.snapshot, at_ms=done.now_ms())


def _is_long(done: _PostCommit) -> bool:
    return done.has_checkpoint and len(done.snapshot.segment.commits) > _MANY_COMMITS


def _reopen(done: _PostCommit) -> None:
    """Reload from the new checkpoint, so that a long-lived writer does not cache all commits."""
    done.snapshot = load_snapshot(done.snapshot.context, version=done.snapshot.version)


def _may_compact(done: _PostCommit) -> bool:
    wanted = done.hooks.auto_compact
    if wanted is None:
        wanted = done.snapshot.configuration.properties.auto_compact
    is_allowed = allows_maintenance(done.snapshot, MaintenanceOperation.DATA_REORGANIZATION)
    return bool(wanted) and done.pending.data_change and is_allowed


def _compact(done: _PostCommit) -> None:
    done.snapshot = done.maintenance.compact(done.snapshot, done.hooks)


def _is_shown_as_iceberg(done: _PostCommit) -> bool:
    formats = done.snapshot.configuration.properties.universal_format_enabled_formats
    # Iceberg's metadata shows main, also if a branch is committed.
    return "iceberg" in formats and branch_of(done.snapshot.store) is None


def _show_as_iceberg(done: _PostCommit) -> None:
    try:
        from deltalog.iceberg import sync  # noqa: PLC0415  # needs PyIceberg, which is slow to import
    except ModuleNotFoundError as error:
        logger.warning(
            "cannot write Iceberg metadata for version %d of %s: %s is not installed; install "
            "deltalog[iceberg]; the next commit or sync_iceberg() then writes the metadata",
            done.snapshot.version,
            done.snapshot.store.root,
            error.name,
        )
        return
    sync(done.snapshot)


def _has_manifests(done: _PostCommit) -> bool:
    pending = done.pending
    changes = pending.adds or pending.removes or pending.changes_metadata
    is_wanted = done.snapshot.configuration.properties.symlink_manifest_enabled
    # Readers of manifests read main, also if a branch is committed.
    return is_wanted and bool(changes) and branch_of(done.snapshot.store) is None


def _write_manifests(done: _PostCommit) -> None:
    from deltalog.transaction.maintenance.manifests import generate_symlink_manifest  # noqa: PLC0415  # rarely needed

    try:
        generate_symlink_manifest(done.snapshot)
    except InvalidInputError as error:  # deletion vectors
        logger.warning(
            "the manifests of %s remain those of an earlier version than %d: %s",
            done.snapshot.store.root,
            done.snapshot.version,
            error,
        )


def _has_new_keys(done: _PostCommit) -> bool:
    has_key = done.snapshot.configuration.properties.key_index_columns is not None
    return has_key and bool(done.pending.adds)


def _index_keys(done: _PostCommit) -> None:
    done.maintenance.index_keys(done.snapshot, done.pending.adds)


_STEPS: Final = (
    _Step(name="checkpoint", is_due=_is_checkpoint_due, act=_checkpoint),
    _Step(name="checksum", is_due=lambda done: done.hooks.write_checksum, act=_checksum),
    _Step(name="cleanup", is_due=_is_cleanup_due, act=_clean_up),
    _Step(name="Iceberg metadata", is_due=_is_shown_as_iceberg, act=_show_as_iceberg),
    _Step(name="manifests", is_due=_has_manifests, act=_write_manifests),
    _Step(name="key index", is_due=_has_new_keys, act=_index_keys, needs_published=False),
    _Step(name="reading", is_due=_is_long, act=_reopen),
    _Step(name="compaction", is_due=_may_compact, act=_compact, needs_published=False),
)


@contextmanager
def reading_ahead(pending: PendingTransaction, hooks: PostCommitHookProperties) -> Iterator[None]:
    """While the block sends the commit, read the checksum of the previous version.

    The post-commit steps need this checksum. For a local table, nothing is read ahead.

    Args:
        pending: the transaction that is being committed.
        hooks: the caller's options of the steps.

    Cost: one request, in parallel to those of the block.
    """
    before = pending.snapshot
    if (
        before is None
        or not hooks.write_checksum
        or before.known_checksum is not None
        or before.segment.checksum is None
        or is_local(before.store)
    ):
        yield
        return
    known = before

    def ask() -> None:
        pending.checksum_before = read_checksum(known, known.version)

    with meanwhile(ask):
        yield


def after_commit(
    pending: PendingTransaction,
    snapshot: Snapshot,
    hooks: PostCommitHookProperties,
    maintenance: Maintenance,
    *,
    txn_id: str,
) -> Snapshot:
    """Run every step that is due; return the newest snapshot.

    Args:
        pending: the committed transaction.
        snapshot: the committed version.
        hooks: the caller's options of the steps.
        maintenance: runs the steps that read many files.
        txn_id: id of the transaction.

    Cost: one request for the checksum. At every checkpoint interval, also the costs of
    `maintenance.create_checkpoint` and `maintenance.cleanup_once_a_day`. If enabled, also a
    compaction, and a manifest for each partition.
    """
    target = snapshot.segment.target_commit
    is_published = target is not None and target.path == commit_path(snapshot.version)
    done = _PostCommit(
        pending=pending, snapshot=snapshot, hooks=hooks, maintenance=maintenance, txn_id=txn_id
    )
    table, version = snapshot.store.root, snapshot.version
    for step in _STEPS:
        if not is_published and step.needs_published:
            continue
        try:
            if step.is_due(done):
                with observed(WorkKind.AFTER_COMMIT, step.name, table=table, version=version):
                    step.act(done)
        except Exception:  # the commit has succeeded, so no error may be raised
            logger.exception(
                "%s of version %d of %s failed; the commit is valid",
                step.name,
                version,
                table,
            )
    return done.snapshot
