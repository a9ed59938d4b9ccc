"""The commit loop: assemble, try, learn who was faster, judge, try again.

Owns retries, idempotent writes and the evaluation of an operation anew. What a commit holds is
`assemble`'s, what may pass whom is `conflicts`'.

Protocol: Delta Log Entries, Transaction Identifiers
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import pyarrow as pa

from deltalog.errors import (
    CatalogManagedError,
    CommitConflictError,
    CommitRetriesExhaustedError,
    InvalidInputError,
    ObjectNotFoundError,
)
from deltalog.log.listing import list_commits
from deltalog.log.names import LogFile, LogFileKind
from deltalog.log.reader import read_in_batches
from deltalog.paths import FileInfo
from deltalog.snapshot import load_snapshot, new_table_snapshot
from deltalog.transaction.assemble import assemble, isolation_level
from deltalog.transaction.attempt import attempt
from deltalog.transaction.backoff import Backoff
from deltalog.transaction.committer import FileSystemCommitter
from deltalog.transaction.conflicts import PendingFacts, find_conflict
from deltalog.transaction.discard import discard, discarding
from deltalog.transaction.pending import PendingTransaction
from deltalog.transaction.post_commit import LogMaintenance, after_commit
from deltalog.transaction.properties import (
    CommitProperties,
    PostCommitHookProperties,
    check_properties,
)
from deltalog.transaction.rebase import advance, first_base
from deltalog.transaction.row_level import find_shared, settle, unite
from deltalog.transaction.winners import parse_winner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deltalog.clock import Clock
    from deltalog.snapshot import Snapshot
    from deltalog.transaction.assemble import Assembled
    from deltalog.transaction.post_commit import Maintenance
    from deltalog.transaction.rebase import CommitBase
    from deltalog.transaction.winners import WinningCommit

logger = logging.getLogger(__name__)

T = TypeVar("T")
MAX_RERUNS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What has come of a commit.

    Args:
        version: that it made; of the table if it was skipped.
        snapshot: that version, carried on from what was known.
        num_retries: attempts that lost before.
        skipped: whether nothing was committed: the application's transaction was there already,
            or there was nothing to commit.
        metrics: of the operation.
    """

    version: int
    snapshot: Snapshot
    num_retries: int = 0
    skipped: bool = False
    metrics: Mapping[str, int | str]


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
    *,
    commit_properties: CommitProperties | None = None,
    hooks: PostCommitHookProperties | None = None,
    maintenance: Maintenance | None = None,
    backoff: Backoff | None = None,
) -> Committed:
    """Make a new version of the table.

    Lost races are tried again, after every winner since has been judged; a blind append gets in
    unless a winner changed protocol or metadata, or spoke for the same application.

    Args:
        pending: what the commit holds.
        commit_properties: custom metadata, retries, application transactions.
        hooks: what is done after it.
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
    check_properties(commit_properties, hooks)
    given = commit_properties or CommitProperties()
    _apply(pending, given)
    loop = _Loop(
        pending,
        backoff=backoff or _backoff(pending.context.clock, given),
        hooks=hooks or PostCommitHookProperties(),
        maintenance=maintenance or LogMaintenance(),
    )
    return loop.run()


def run(  # each is the caller's choice
    load: Callable[[], Snapshot],
    stage: Callable[[PendingTransaction], T],
    *,
    operation: str,
    parameters: Mapping[str, Any] | None = None,
    commit_properties: CommitProperties | None = None,
    hooks: PostCommitHookProperties | None = None,
    on_conflict: Literal["retry", "raise"] = "retry",
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
        commit_properties: custom metadata, retries, application transactions.
        hooks: what is done after the commit.
        on_conflict: whether to evaluate anew, or to raise what `commit` raised.
        max_reruns: how often.
        skip_empty: commit nothing where nothing was staged.
        maintenance: as for `commit`.

    Raises:
        CommitConflictError: also after the last evaluation.
        DeltaError: also whatever `commit` and `stage` raise.
    """
    check_properties(commit_properties, hooks)
    reruns = 0
    while True:
        snapshot = load()
        if commit_properties is not None and _is_recorded(snapshot, commit_properties):
            return Ran(value=None, committed=_skipped(snapshot))
        pending = PendingTransaction(
            snapshot.context, snapshot, operation=operation, parameters=parameters
        )
        try:
            with discarding(pending):
                value = stage(pending)
                if skip_empty and pending.is_empty:
                    return Ran(value=value, committed=_skipped(snapshot))
                committed = commit(
                    pending,
                    commit_properties=commit_properties,
                    hooks=hooks,
                    maintenance=maintenance,
                )
                if committed.skipped:
                    discard(pending)
        except CommitConflictError as conflict:
            if on_conflict == "raise" or reruns >= max_reruns:
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
    return _covers(known, wanted, snapshot.store.root)


def _covers(known: Mapping[str, int], wanted: Mapping[str, int], table: str) -> bool:
    """Whether every application has come as far already.

    Raises:
        InvalidInputError: some have and some have not.
    """
    there = {app_id for app_id, version in wanted.items() if known.get(app_id, -1) >= version}
    if there and len(there) < len(wanted):
        missing = ", ".join(sorted(wanted.keys() - there))
        raise InvalidInputError(
            f"cannot commit to {table}: the transactions of {', '.join(sorted(there))} are there "
            f"already, those of {missing} are not"
        )
    return bool(there)


def _skipped(snapshot: Snapshot) -> Committed:
    return Committed(version=snapshot.version, snapshot=snapshot, skipped=True, metrics={})


class _Loop:
    """One commit, from the first attempt to the last."""

    def __init__(
        self,
        pending: PendingTransaction,
        *,
        backoff: Backoff,
        hooks: PostCommitHookProperties,
        maintenance: Maintenance,
    ) -> None:
        self.maintenance = maintenance
        self.pending = pending
        self.store = pending.store
        self.committer = committer = pending.context.committer or FileSystemCommitter()
        self.backoff = backoff
        self.hooks = hooks
        self.txn_id = str(uuid.uuid4())
        self.winners: list[WinningCommit] = []
        self.wanted = {app: txn.version for app, txn in pending.app_transactions.items()}
        self.tail = committer.log_tail(self.store)

    def run(self) -> Committed:
        snapshot = self.pending.snapshot
        if snapshot is not None and self.wanted:
            known = {app: txn.version for app, txn in snapshot.app_transactions.items()}
            if _covers(known, self.wanted, self.store.root):
                return _skipped(snapshot)
        base = first_base(self.pending)
        self._check_catalog()
        retries = 0
        while True:
            settle(self.pending)
            made = assemble(
                self.pending,
                base,
                txn_id=self.txn_id,
                now_ms=self.backoff.clock.now_ms(),
                has_log_tail=self.tail is not None,
            )
            self.pending.is_sent = True
            file = attempt(
                self.committer,
                self.store,
                made.version,
                made.data,
                txn_id=self.txn_id,
                backoff=self.backoff,
            )
            if file is not None:
                return self._done(made, file, retries)
            retries += 1
            if not self.backoff.allows(retries):
                raise self._exhausted(made.version, retries)
            self.backoff.wait(retries)
            lost_at = base.version
            for winner in self._read_winners(made.version):
                if self._is_repeated(winner):
                    return _skipped(self._newest())
                base = self._after(base, winner, made)
            if base.version == lost_at:
                raise ObjectNotFoundError(
                    f"cannot commit to {self.store.root}: version {made.version} is taken, and "
                    "its commit cannot be found; nothing was committed"
                )

    def _check_catalog(self) -> None:
        """Refuse to commit past the catalog."""
        configuration = self.pending.configuration
        if configuration.is_catalog_managed and self.tail is None:
            raise CatalogManagedError(
                table=self.store.root,
                version=None,
                operation=self.pending.operation,
                features=["catalogManaged"],
                hint="a catalog decides which commits count: commit through it",
            )
        if self.tail is not None and not configuration.is_catalog_managed:
            raise InvalidInputError(
                f"cannot commit to {self.store.root} through a catalog: the table is not managed "
                "by one"
            )

    def _read_winners(self, version: int) -> Iterator[WinningCommit]:
        """Every commit from `version` on, oldest first, without a hole."""
        self.tail = self.committer.log_tail(self.store)
        run = list_commits(self.store, version, log_tail=self.tail)
        for batch in read_in_batches(self.store, run):
            for file, data in batch:
                yield parse_winner(file, data)

    def _is_repeated(self, winner: WinningCommit) -> bool:
        """Whether the winner is the same application's same step: then ours is done."""
        shared = self.wanted.keys() & winner.app_versions.keys()
        if not shared:
            return False
        return all(winner.app_versions.get(app, -1) >= own for app, own in self.wanted.items())

    def _after(self, base: CommitBase, winner: WinningCommit, made: Assembled) -> CommitBase:
        shared = find_shared(self.pending, made.configuration, winner)
        facts = replace(self._facts(base, made), shared_paths=shared.paths)
        conflict = find_conflict(facts, winner)
        if conflict is not None:
            raise conflict
        unite(self.pending, shared)
        self.winners.append(winner)
        return advance(base, winner, self.pending)

    def _facts(self, base: CommitBase, made: Assembled) -> PendingFacts:
        pending = self.pending
        removed: list[Any] = [files.column("path") for files, _ in pending.removes]
        mine = pending.configuration
        return PendingFacts(
            root=self.store.root,
            before=base.configuration,
            protocol=mine.protocol if pending.changes_protocol else None,
            metadata=mine.metadata if pending.changes_metadata else None,
            read_set=pending.read_set,
            removed_paths=pa.chunked_array(
                [chunk for column in removed for chunk in column.chunks], pa.string()
            ),
            domains=frozenset(pending.domains),
            isolation_level=isolation_level(pending, made.configuration),
            operation=pending.operation,
            has_log_tail=self.tail is not None,
            time_zone=pending.context.time_zone,
        )

    def _done(self, made: Assembled, file: FileInfo, retries: int) -> Committed:
        self.pending.is_committed = True
        own = LogFile(LogFileKind.COMMIT, made.version, file)
        snapshot = self._snapshot_after(made, own)
        pending = self.pending
        logger.info(
            "%s made version %d of %s (%d retries)",
            pending.operation,
            made.version,
            self.store.root,
            retries,
        )
        snapshot = after_commit(pending, snapshot, self.hooks, self.maintenance, txn_id=self.txn_id)
        return Committed(
            version=made.version,
            snapshot=snapshot,
            num_retries=retries,
            metrics=dict(pending.metrics),
        )

    def _snapshot_after(self, made: Assembled, own: LogFile) -> Snapshot:
        tail = None if self.tail is None else self.committer.log_tail(self.store)
        before = self.pending.snapshot
        if before is None:
            return new_table_snapshot(
                self.pending.context.with_log_tail(tail),
                (own, made.data),
                made.configuration,
                commit_timestamp_ms=made.in_commit_timestamp_ms,
            )
        commits = [(winner.file, winner.data) for winner in self.winners]
        return before.committed(
            [*commits, (own, made.data)],
            made.configuration,
            log_tail=tail,
            commit_timestamp_ms=made.in_commit_timestamp_ms,
        )

    def _newest(self) -> Snapshot:
        before = self.pending.snapshot
        if before is None:
            return load_snapshot(self.pending.context.with_log_tail(self.tail))
        return before.refresh(log_tail=self.tail)

    def _exhausted(self, version: int, retries: int) -> CommitRetriesExhaustedError:
        return CommitRetriesExhaustedError(
            f"cannot commit {self.pending.operation} to {self.store.root}: {retries} attempt(s) "
            f"lost to other writers, the last at version {version}; nothing was committed"
        )
