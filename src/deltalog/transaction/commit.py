"""Commit a transaction, and run an operation again after a conflict.

This module implements idempotent writes and reruns. `commit_loop` retries one commit.

Protocol: Delta Log Entries, Transaction Identifiers
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from deltalog._util.observing import WorkKind, observed
from deltalog.errors import CommitConflictError
from deltalog.log.snapshot.snapshot import in_place
from deltalog.storage.faults import naming_the_operation
from deltalog.storage.pool import meanwhile
from deltalog.storage.store import is_local
from deltalog.transaction.assemble import check_base
from deltalog.transaction.commit_loop import CommitLoop, Committed, covers, skipped, tell_commit
from deltalog.transaction.committer import Backoff
from deltalog.transaction.pending import PendingTransaction, discard, discarding
from deltalog.transaction.post_commit import LogMaintenance, Maintenance
from deltalog.transaction.properties import USUAL, CommitProperties, PostCommitHookProperties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deltalog._util.clock import Clock
    from deltalog.log.snapshot import Snapshot
    from deltalog.transaction.properties import CommitOptions

__all__ = ["Committed", "Ran", "commit", "stage_and_commit"]

logger: logging.Logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran(Generic[T]):
    """The outcome of an operation.

    Args:
        value: the return value of `stage`; None if the operation was skipped before staging.
        committed: the outcome of the commit.
    """

    value: T | None
    committed: Committed


def commit(
    pending: PendingTransaction,
    options: CommitOptions = USUAL,
    *,
    maintenance: Maintenance | None = None,
    backoff: Backoff | None = None,
) -> Committed:
    """Commit a transaction as a new version of the table.

    If another commit wins the version, it is checked for conflicts, and the commit is retried. A
    blind append conflicts only with a change of protocol or metadata, or with a commit that records
    the same application.

    Args:
        pending: the content of the commit.
        options: properties of the commit, and the steps after it.
        maintenance: runs the steps after the commit that read many files; None maintains only the
            log.
        backoff: waiting times and limits; None means full jitter from 10 ms to 1 s, for at most
            10,000 retries and 10 minutes.

    Raises:
        CommitConflictError: a winning commit conflicts; the subclass names the kind of conflict.
        CommitRetriesExhaustedError: another commit won in every attempt.
        CommitOutcomeUnknownError: the store failed, and it is unknown whether the commit was made.
        InvalidInputError, DeltaProtocolError: the commit is not allowed.
        StorageError: the store rejected the request; nothing was committed.

    Cost: one request if no other commit wins; otherwise two for each winning commit, and one for
    each further attempt. Independent of the number of files in the table.
    """
    return commit_loop(pending, options, maintenance=maintenance, backoff=backoff).run()


def commit_loop(
    pending: PendingTransaction,
    options: CommitOptions = USUAL,
    *,
    maintenance: Maintenance | None = None,
    backoff: Backoff | None = None,
) -> CommitLoop:
    """Return a `CommitLoop`, which the caller runs; see `commit` for the arguments."""
    given = options.properties or CommitProperties()
    _apply(pending, given)
    return CommitLoop(
        pending,
        backoff=backoff or _backoff(pending.context.clock, given),
        hooks=options.hooks or PostCommitHookProperties(),
        maintenance=maintenance or LogMaintenance(),
    )


def stage_and_commit(
    load: Callable[[], Snapshot],
    stage: Callable[[PendingTransaction], T],
    *,
    operation: str,
    parameters: Mapping[str, Any] | None = None,
    options: CommitOptions = USUAL,
    skip_empty: bool = False,
    is_held: bool = False,
    maintenance: Maintenance | None = None,
) -> Ran[T]:
    """Stage an operation and commit it; after a conflict, stage it again on the latest version.

    Args:
        load: returns the snapshot for the first run. After a conflict, the snapshot is refreshed.
        stage: stages the operation into the transaction: writes data files, but commits nothing.
        operation: name of the operation in the history.
        parameters: parameters of the operation; `stage` may add more.
        options: options of the commit, and how many times a conflict leads to another run.
        skip_empty: whether to skip the commit if nothing was staged.
        is_held: whether `load` returns a snapshot that may be old. If the log no longer contains
            its version, the operation runs on the latest version of the same table.
        maintenance: see `commit`.

    Raises:
        CommitConflictError: the last run had a conflict, or `options` do not allow another run.
        TableNotFoundError: the table no longer exists, or was replaced by another table.
        DeltaError: any other error of `commit` or `stage`.

    Cost: with `is_held`, one request to check the version, in parallel to `stage` if another run is
    allowed.
    """
    reruns = 0
    snapshot = load()
    may_rerun = options.max_retries > 0
    if is_held and (is_local(snapshot.store) or not may_rerun or _is_known(snapshot, options)):
        snapshot, is_held = in_place(snapshot), False
    root = snapshot.store.root
    with (
        naming_the_operation(f"run {operation.removesuffix(' START')} on", root),
        observed(
            WorkKind.OPERATION, operation, table=root, operation=operation, is_skipped=True
        ) as work,
    ):
        while True:
            if _is_known(snapshot, options):
                return Ran(value=None, committed=skipped(snapshot))
            pending = PendingTransaction(
                snapshot.context, snapshot, operation=operation, parameters=parameters
            )
            try:
                with discarding(pending):
                    with _looking(snapshot if is_held else None):
                        value = stage(pending)
                    is_held = False
                    if skip_empty and pending.is_empty:
                        return Ran(value=value, committed=skipped(snapshot))
                    committed = commit(pending, options, maintenance=maintenance)
                    if committed.skipped:
                        discard(pending)
            except CommitConflictError as conflict:
                if reruns >= options.max_retries:
                    raise
                reruns += 1
                logger.info("running %s on %s again: %s", operation, root, conflict)
                snapshot, is_held = snapshot.refresh(same_table=True), False
            else:
                # Another writer may have recorded the application transaction since `_is_known`.
                if committed.skipped:
                    return Ran(value=None, committed=committed)
                version, num_retries = committed.version, committed.num_retries
                tell_commit(work, pending, version=version, num_retries=num_retries)
                return Ran(value=value, committed=committed)


def _apply(pending: PendingTransaction, given: CommitProperties) -> None:
    pending.custom_metadata.update(given.custom_metadata or {})
    for transaction in given.app_transactions or ():
        pending.set_app_transaction(transaction)


def _backoff(clock: Clock, given: CommitProperties) -> Backoff:
    if given.max_commit_retries is None:
        return Backoff(clock=clock)
    return Backoff(clock=clock, max_retries=given.max_commit_retries)


@contextmanager
def _looking(held: Snapshot | None) -> Iterator[None]:
    """While the block runs, check that the log still contains the snapshot's version.

    Raises:
        CommitConflictError: the log no longer contains the version.
    """
    if held is None:
        yield
        return
    answers: list[bool] = []
    with meanwhile(lambda: answers.append(held.is_in_place())):
        yield
    check_base(held, is_there=answers[0] if answers else held.is_in_place())


def _is_known(snapshot: Snapshot, options: CommitOptions) -> bool:
    """Return whether the table has already recorded the application transactions of a commit."""
    given = options.properties
    wanted = {} if given is None else {t.app_id: t.version for t in given.app_transactions or ()}
    if not wanted:
        return False
    known = {app_id: txn.version for app_id, txn in snapshot.app_transactions.items()}
    return covers(known, wanted, snapshot.store.root)
