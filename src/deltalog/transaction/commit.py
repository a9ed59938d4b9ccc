"""Commit a transaction, and run an operation again if a conflicting commit won.

This module owns idempotent writes and reruns. Retrying one commit is the job of `commit_loop`.

Protocol: Delta Log Entries, Transaction Identifiers
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from deltalog._util.observing import WorkKind, observed
from deltalog.errors import CommitConflictError
from deltalog.log.snapshot.snapshot import in_place
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
MAX_RERUNS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran(Generic[T]):
    """The outcome of an operation.

    Args:
        value: what `stage` returned: an operation's `Outcome`, or in `DeltaTable.run` the result of
            the caller's function; None if the operation was skipped before staging.
        committed: its commit.
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

    A lost race is retried after every winning commit was checked for conflicts. A blind append
    succeeds unless a winner changed protocol or metadata, or recorded the same application.

    Args:
        pending: the content of the commit.
        options: properties of the commit, and the steps after it.
        maintenance: runs the steps after it that read many files; None maintains the log alone.
        backoff: None means full jitter from 10 ms to 1 s, 10,000 times or 10 minutes.

    Raises:
        CommitConflictError: a winner is incompatible; the subclass names the conflict.
        CommitRetriesExhaustedError: every attempt lost.
        CommitOutcomeUnknownError: the store failed, and it is unknown whether the commit was made.
        InvalidInputError, DeltaProtocolError: the commit is not allowed.
        StorageError: the store refused the request; nothing was committed.

    Cost: one request without a race; two for each winner, and one more for every lost race.
    Nothing per file of the table.
    """
    return commit_loop(pending, options, maintenance=maintenance, backoff=backoff).run()


def commit_loop(
    pending: PendingTransaction,
    options: CommitOptions = USUAL,
    *,
    maintenance: Maintenance | None = None,
    backoff: Backoff | None = None,
) -> CommitLoop:
    """Return a commit whose steps the caller runs one by one; arguments as for `commit`."""
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
    max_reruns: int = MAX_RERUNS,
    skip_empty: bool = False,
    is_held: bool = False,
    maintenance: Maintenance | None = None,
) -> Ran[T]:
    """Stage an operation and commit it; stage it again if a conflicting commit won.

    Args:
        load: returns the version to begin with; after a conflict it is refreshed.
        stage: plans the operation into the transaction; writes data files, commits nothing.
        operation: its name in the history of the table.
        parameters: parameters of the operation; `stage` may add some.
        options: options of the commit, and whether a conflict leads to another run or is raised.
        max_reruns: the maximum number of runs after the first.
        skip_empty: commit nothing if nothing was staged.
        is_held: whether `load` returns a version that was read some time ago. If the log no longer
            has it, the operation runs on the latest version of the same table.
        maintenance: as for `commit`.

    Raises:
        CommitConflictError: the last run met a conflict, or `options` do not allow another run.
        TableNotFoundError: the table is gone, or was replaced by another table.
        DeltaError: also whatever `commit` and `stage` raise.

    Cost: with `is_held`, a request for the version's commit, in parallel to `stage` if repeatable.
    """
    reruns = 0
    snapshot = load()
    may_rerun = options.on_conflict != "raise" and max_reruns > 0
    if is_held and (is_local(snapshot.store) or not may_rerun or _is_known(snapshot, options)):
        snapshot, is_held = in_place(snapshot), False
    with observed(
        WorkKind.OPERATION,
        operation,
        table=snapshot.store.root,
        operation=operation,
        is_skipped=True,
    ) as work:
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
                if options.on_conflict == "raise" or reruns >= max_reruns:
                    raise
                reruns += 1
                logger.info(
                    "evaluating %s of %s again: %s", operation, snapshot.store.root, conflict
                )
                snapshot, is_held = snapshot.refresh(same_table=True), False
            else:
                # Another writer may have recorded the application's transaction meanwhile.
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
    """While the block stages on a version, check that the log still has it.

    Raises:
        CommitConflictError: the log no longer has it.
    """
    if held is None:
        yield
        return
    answers: list[bool] = []
    with meanwhile(lambda: answers.append(held.is_in_place())):
        yield
    check_base(held, is_there=answers[0] if answers else held.is_in_place())


def _is_known(snapshot: Snapshot, options: CommitOptions) -> bool:
    """Whether the application transactions of a commit are recorded already."""
    given = options.properties
    wanted = {} if given is None else {t.app_id: t.version for t in given.app_transactions or ()}
    if not wanted:
        return False
    known = {app_id: txn.version for app_id, txn in snapshot.app_transactions.items()}
    return covers(known, wanted, snapshot.store.root)
