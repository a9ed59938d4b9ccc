"""Committing a transaction, and evaluating an operation anew where a winner made it wrong.

Owns idempotent writes and reruns. How one commit gets through is `commit_loop`'s.

Protocol: Delta Log Entries, Transaction Identifiers
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from deltalog.errors import CommitConflictError
from deltalog.transaction.backoff import Backoff
from deltalog.transaction.commit_loop import CommitLoop, Committed, covers, skipped
from deltalog.transaction.discard import discard, discarding
from deltalog.transaction.pending import PendingTransaction
from deltalog.transaction.post_commit import LogMaintenance
from deltalog.transaction.properties import (
    USUAL,
    CommitProperties,
    PostCommitHookProperties,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.clock import Clock
    from deltalog.snapshot import Snapshot
    from deltalog.transaction.post_commit import Maintenance
    from deltalog.transaction.properties import CommitOptions

__all__ = ["Committed", "Ran", "commit", "run"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
MAX_RERUNS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran(Generic[T]):
    """What has come of an operation.

    Args:
        value: what staging it gave; None if it was skipped before.
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
    """Make a new version of the table.

    Lost races are tried again, after every winner since has been judged; a blind append gets in
    unless a winner changed protocol or metadata, or spoke for the same application.

    Args:
        pending: what the commit holds.
        options: its properties, and what is done after it.
        maintenance: does what goes through files after it; None does nothing but the log's.
        backoff: None is full jitter from 10 ms to 1 s, 10,000 times or 10 minutes.

    Raises:
        CommitConflictError: a winner is incompatible; its leaf says how.
        CommitRetriesExhaustedError: every attempt lost.
        CommitOutcomeUnknownError: the store failed, and nobody knows whether the commit happened.
        InvalidInputError, DeltaProtocolError: the commit must not be.
        StorageError: the store refused; nothing was committed.

    Cost: one request if nobody was faster; two for each winner and one more for every race that is
    lost. Nothing per file of the table.
    """
    given = options.properties or CommitProperties()
    _apply(pending, given)
    return CommitLoop(
        pending,
        backoff=backoff or _backoff(pending.context.clock, given),
        hooks=options.hooks or PostCommitHookProperties(),
        maintenance=maintenance or LogMaintenance(),
    ).run()


def run(
    load: Callable[[], Snapshot],
    stage: Callable[[PendingTransaction], T],
    *,
    operation: str,
    parameters: Mapping[str, Any] | None = None,
    options: CommitOptions = USUAL,
    max_reruns: int = MAX_RERUNS,
    skip_empty: bool = False,
    maintenance: Maintenance | None = None,
) -> Ran[T]:
    """Evaluate an operation and commit it; evaluate it anew if a winner has made it wrong.

    Args:
        load: the newest snapshot; asked once for every evaluation.
        stage: plans the operation into the transaction; it writes data files, commits nothing.
        operation: for the history of the table.
        parameters: of the operation; `stage` may add some.
        options: of the commit; whether to evaluate anew, or to raise what `commit` raised.
        max_reruns: how often to evaluate anew.
        skip_empty: commit nothing where nothing was staged.
        maintenance: as for `commit`.

    Raises:
        CommitConflictError: also after the last evaluation.
        DeltaError: also whatever `commit` and `stage` raise.
    """
    reruns = 0
    while True:
        snapshot = load()
        if options.properties is not None and _is_recorded(snapshot, options.properties):
            return Ran(value=None, committed=skipped(snapshot))
        pending = PendingTransaction(
            snapshot.context, snapshot, operation=operation, parameters=parameters
        )
        try:
            with discarding(pending):
                value = stage(pending)
                if skip_empty and pending.is_empty:
                    return Ran(value=value, committed=skipped(snapshot))
                committed = commit(pending, options, maintenance=maintenance)
                if committed.skipped:
                    discard(pending)
        except CommitConflictError as conflict:
            if options.on_conflict == "raise" or reruns >= max_reruns:
                raise
            reruns += 1
            logger.info("evaluating %s of %s anew: %s", operation, snapshot.store.root, conflict)
        else:
            return Ran(value=value, committed=committed)


def _apply(pending: PendingTransaction, given: CommitProperties) -> None:
    pending.custom_metadata.update(given.custom_metadata or {})
    for transaction in given.app_transactions or ():
        pending.set_app_transaction(transaction)


def _backoff(clock: Clock, given: CommitProperties) -> Backoff:
    if given.max_commit_retries is None:
        return Backoff(clock=clock)
    return Backoff(clock=clock, max_retries=given.max_commit_retries)


def _is_recorded(snapshot: Snapshot, given: CommitProperties) -> bool:
    wanted = {txn.app_id: txn.version for txn in given.app_transactions or ()}
    if not wanted:
        return False
    known = {app_id: txn.version for app_id, txn in snapshot.app_transactions.items()}
    return covers(known, wanted, snapshot.store.root)
