"""The retry loop of one commit, as a state machine.

`STEPS` maps each state to a function that does the work of the state and returns the next state:

PREPARE   write the deletion vectors that `rebase` merged, assemble the commit of the next version,
          then SEND
SEND      call the committer (`attempt`), then COMMITTED, or LOST if another commit has the version
LOST      wait (`backoff`), then JUDGE; or raise if no retries are left
JUDGE     for each winning commit: check for conflicts and rebase on the commit (`rebase`), then
          PREPARE; or raise the conflict; or SKIPPED if a winning commit recorded the same
          application transaction
COMMITTED, SKIPPED   final states

Protocol: Delta Log Entries, Transaction Identifiers
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from deltalog._util.observing import ObservedWork, WorkKind, observed
from deltalog._util.paths import FileInfo
from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CatalogError,
    CatalogManagedError,
    CommitOutcomeUnknownError,
    CommitRetriesExhaustedError,
    DeltaError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
    StorageError,
)
from deltalog.log.context import Committer, LogTail, RatifiedCommit
from deltalog.log.history import commit_info_of
from deltalog.log.listing import list_commits, list_newer
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.log.reader import advising_on_damage, read_in_batches
from deltalog.log.snapshot import Snapshot, load_snapshot, new_table_snapshot
from deltalog.storage.faults import absent_container
from deltalog.storage.store import NativeStore, Store, is_local, unsynced
from deltalog.transaction.assemble import Assembled, assemble, check_base, first_base
from deltalog.transaction.committer import Backoff, FileSystemCommitter
from deltalog.transaction.post_commit import Maintenance, after_commit, reading_ahead

if TYPE_CHECKING:
    from deltalog.transaction.conflicts import WinningCommit
    from deltalog.transaction.pending import PendingTransaction
    from deltalog.transaction.properties import PostCommitHookProperties

logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The outcome of a commit.

    Args:
        version: the new version, or the table's version if the commit was skipped.
        snapshot: snapshot of that version. It is derived from the previous snapshot, without
            reading the log again.
        num_retries: number of attempts in which another commit won the version.
        skipped: whether nothing was committed: the application transaction was already recorded,
            or there was nothing to commit.
        metrics: metrics of the operation.
    """

    version: int
    snapshot: Snapshot
    num_retries: int = 0
    skipped: bool = False
    metrics: Mapping[str, int | str]


class State(Enum):
    """The state of a commit; see the docstring of the module."""

    PREPARE = auto()
    SEND = auto()
    LOST = auto()
    JUDGE = auto()
    COMMITTED = auto()
    SKIPPED = auto()


class CommitLoop:
    """One commit, with its attempts and retries.

    Args:
        pending: the content of the commit.
        backoff: waiting times and limits.
        hooks: options of the steps after the commit.
        maintenance: runs the steps after the commit that read many files.
    """

    def __init__(
        self,
        pending: PendingTransaction,
        *,
        backoff: Backoff,
        hooks: PostCommitHookProperties,
        maintenance: Maintenance,
    ) -> None:
        self._pending = pending
        self._store = pending.store
        self._committer = committer = pending.context.committer or FileSystemCommitter()
        self._backoff = backoff
        self._hooks = hooks
        self._maintenance = maintenance
        self._txn_id = str(uuid.uuid4())
        self._wanted = {app: txn.version for app, txn in pending.app_transactions.items()}
        self._tail = committer.log_tail(self._store)
        self._winners: list[WinningCommit] = []
        self._retries = 0
        self._state: State | None = None
        self._made: Assembled | None = None
        self._file: FileInfo | None = None

    def run(self) -> Committed:
        """Run the state machine to its end, then the steps after the commit.

        Raises:
            CommitFailedError, StorageError: see `commit`.
        """
        self.send()
        return self.finish()

    def prepare(self) -> Assembled | None:
        """Assemble the commit on top of the latest version; nothing is sent.

        Returns:
            The commit for the first attempt of `send`; None if the commit is unnecessary.

        Raises:
            CommitConflictError: a commit after the transaction's snapshot conflicts.
            InvalidInputError, DeltaProtocolError: the commit is not allowed.

        Cost: one listing, and two requests for each commit after the transaction's snapshot.
        """
        state = self._begin()
        while state is State.PREPARE:
            state = STEPS[state](self)
            if state is State.SEND and self._has_winners():
                state = self._judge()
        self._state = state
        return self._made if state is State.SEND else None

    def send(self) -> None:
        """Run the state machine to its end.

        Raises:
            CommitFailedError, StorageError: see `commit`.
        """
        table, operation = self._store.root, self._pending.operation
        with observed(WorkKind.COMMIT, "commit", table=table, operation=operation) as work:
            state = self._begin() if self._state is None else self._state
            while state in STEPS:
                state = STEPS[state](self)
            self._state = state
            work.facts["is_skipped"] = True
            if state is State.COMMITTED:
                version = self._assembled.version
                tell_commit(work, self._pending, version=version, num_retries=self._retries)

    def finish(self) -> Committed:
        """Run the steps after a commit, and return the outcome; call it after `send`."""
        if self._state is State.COMMITTED:
            return self._finish()
        read = self._pending.snapshot
        return skipped(self._newest() if self._made or read is None else read)

    @property
    def base_version(self) -> int:
        """The version on top of which the next attempt will commit."""
        return self._base.version

    def _begin(self) -> State:
        """Return the first state: SKIPPED if the application transactions are already recorded."""
        snapshot = self._pending.snapshot
        if snapshot is not None and self._wanted:
            known = {app: txn.version for app, txn in snapshot.app_transactions.items()}
            if covers(known, self._wanted, self._store.root):
                return State.SKIPPED
        # On a local disk, the check is always done, because it is cheap.
        if snapshot is not None and (self._pending.checks_base or is_local(self._store)):
            check_base(snapshot, is_there=snapshot.is_in_place())
        self._base = first_base(self._pending)
        self._check_catalog()
        return State.PREPARE

    # --- Functions of the states

    def _prepare(self) -> State:
        """Write deletion vectors that `rebase` merged; assemble the commit of the next version."""
        if self._pending.masks:
            from deltalog.transaction.rebase import settle  # noqa: PLC0415  # rarely needed

            settle(self._pending)
        self._made = assemble(
            self._pending,
            self._base,
            txn_id=self._txn_id,
            now_ms=self._backoff.clock.now_ms(),
            has_log_tail=self._tail is not None,
        )
        return State.SEND

    def _send(self) -> State:
        """Send the commit to the committer; after an ambiguous answer, read the version back."""
        # Set this before the request. From now on, an interrupt must not delete the new data files.
        self._pending.is_sent = True
        syncs = self._assembled.configuration.properties.fsync
        with reading_ahead(self._pending, self._hooks):
            self._file = attempt(
                self._committer,
                self._store if syncs else unsynced(self._store),
                self._assembled.version,
                self._assembled.data,
                txn_id=self._txn_id,
                backoff=self._backoff,
            )
        return State.LOST if self._file is None else State.COMMITTED

    def _lose(self) -> State:
        """Wait a random time; raise if this was the last attempt."""
        self._retries += 1
        if not self._backoff.allows(self._retries):
            raise CommitRetriesExhaustedError(
                f"cannot commit {self._pending.operation} to {self._store.root}: other writers won "
                f"the version in {self._retries} attempt(s), the last one was version "
                f"{self._assembled.version}; nothing was committed"
            )
        self._backoff.wait(self._retries)
        return State.JUDGE

    def _judge(self) -> State:
        """Check for conflicts with every winning commit, and rebase the commit on the last one."""
        lost_at = self._base.version
        for winner in self._read_winners(self._assembled.version):
            if self._is_repeated(winner):
                return State.SKIPPED
            from deltalog.transaction.rebase import rebase  # noqa: PLC0415  # few commits lose a race

            self._base = rebase(
                self._pending,
                self._base,
                winner,
                configuration=self._assembled.configuration,
                has_log_tail=self._tail is not None,
            )
            self._winners.append(winner)
        if self._base.version == lost_at:
            raise ObjectNotFoundError(
                f"cannot commit to {self._store.root}: version {self._assembled.version} already "
                "exists, but its commit cannot be found; nothing was committed"
            )
        return State.PREPARE

    # --- Helpers of the functions of the states

    @property
    def _assembled(self) -> Assembled:
        assert self._made is not None  # noqa: S101  # PREPARE is the first state and sets it
        return self._made

    def _check_catalog(self) -> None:
        """Raise unless catalog-managed tables, and only these, are committed through a catalog."""
        configuration = self._pending.configuration
        if configuration.is_catalog_managed and self._tail is None:
            raise CatalogManagedError(
                table=self._store.root,
                version=None,
                operation=self._pending.operation,
                features=["catalogManaged"],
                hint="a catalog decides which commits are part of the table: open the table "
                "through its catalog",
            )
        if self._tail is not None and not configuration.is_catalog_managed:
            raise InvalidInputError(
                f"cannot commit to {self._store.root} through a catalog: the table is not managed "
                "by one"
            )

    def _has_winners(self) -> bool:
        """Return whether the next version already exists."""
        self._tail = self._committer.log_tail(self._store)
        listing = list_newer(self._store, self._assembled.version, log_tail=self._tail)
        return self._assembled.version in dict(listing.commits)

    def _read_winners(self, version: int) -> Iterator[WinningCommit]:
        """Read all commits from `version`, oldest first, without gaps."""
        from deltalog.transaction.conflicts import parse_winner  # noqa: PLC0415  # few commits lose a race

        # Ask the catalog again, because only the catalog lists winning commits that are not
        # published yet.
        self._tail = self._committer.log_tail(self._store)
        run = list_commits(self._store, version, log_tail=self._tail)
        for batch in read_in_batches(self._store, run):
            for file, data in batch:
                with advising_on_damage(self._store, [file], self._tail):
                    winner = parse_winner(file, data)
                yield winner

    def _is_repeated(self, winner: WinningCommit) -> bool:
        """Return whether a winning commit recorded all application transactions of this commit."""
        if not self._wanted.keys() & winner.app_versions.keys():
            return False
        theirs = winner.app_versions
        return all(app in theirs and theirs[app] >= own for app, own in self._wanted.items())

    def _finish(self) -> Committed:
        """Create the snapshot of the new version, and run the post-commit steps."""
        pending, made = self._pending, self._assembled
        pending.is_committed = True
        logger.info(
            "%s made version %d of %s (%d retries)",
            pending.operation,
            made.version,
            self._store.root,
            self._retries,
        )
        snapshot = after_commit(
            pending, self._snapshot(), self._hooks, self._maintenance, txn_id=self._txn_id
        )
        return Committed(
            version=made.version,
            snapshot=snapshot,
            num_retries=self._retries,
            metrics=dict(pending.metrics),
        )

    def _snapshot(self) -> Snapshot:
        """Return the snapshot of the new version, from commits in memory. Cost: no I/O."""
        made, file = self._assembled, self._file
        assert file is not None  # noqa: S101  # the commit has succeeded
        own = (LogFile(LogFileKind.COMMIT, made.version, file), made.data)
        tail = None if self._tail is None else self._tail_with(self._tail, made.version, file)
        before = self._pending.snapshot
        if before is None:
            return new_table_snapshot(
                self._pending.context.with_log_tail(tail),
                own,
                made.configuration,
                commit_timestamp_ms=made.in_commit_timestamp_ms,
            )
        return before.committed(
            [*((winner.file, winner.data) for winner in self._winners), own],
            made.configuration,
            log_tail=tail,
            commit_timestamp_ms=made.in_commit_timestamp_ms,
        )

    def _tail_with(self, known: LogTail, version: int, file: FileInfo) -> LogTail | None:
        """Return the log tail after the commit. If the catalog fails, derive it from `known`."""
        try:
            return self._committer.log_tail(self._store)
        except DeltaError as error:
            logger.warning("cannot ask for the log tail of %s: %s", self._store.root, error)
        earlier = tuple(commit for commit in known.commits if commit.version < version)
        if earlier and earlier[-1].version != version - 1:
            earlier = ()
        return LogTail(commits=(*earlier, RatifiedCommit(version=version, file=file)))

    def _newest(self) -> Snapshot:
        before = self._pending.snapshot
        if before is None:
            return load_snapshot(self._pending.context.with_log_tail(self._tail))
        return before.refresh(log_tail=self._tail)


STEPS: Final[Mapping[State, Callable[[CommitLoop], State]]] = {
    State.PREPARE: CommitLoop._prepare,  # noqa: SLF001  # private methods of the class above
    State.SEND: CommitLoop._send,  # noqa: SLF001
    State.LOST: CommitLoop._lose,  # noqa: SLF001
    State.JUDGE: CommitLoop._judge,  # noqa: SLF001
}
"""The function of each state. States without a function are final."""


def covers(known: Mapping[str, int], wanted: Mapping[str, int], table: str) -> bool:
    """Return whether all wanted application transactions are already recorded.

    Args:
        known: application → recorded version.
        wanted: application → version of the commit.
        table: location of the table, for the error.

    Raises:
        InvalidInputError: only some application transactions are recorded.
    """
    there = {
        app_id for app_id, version in wanted.items() if app_id in known and known[app_id] >= version
    }
    if there and len(there) < len(wanted):
        missing = ", ".join(sorted(wanted.keys() - there))
        raise InvalidInputError(
            f"cannot commit to {table}: the application transactions of "
            f"{', '.join(sorted(there))} are already recorded, but those of {missing} are not"
        )
    return bool(there)


def skipped(snapshot: Snapshot) -> Committed:
    """Return the outcome of a commit that is already recorded or would be empty."""
    return Committed(version=snapshot.version, snapshot=snapshot, skipped=True, metrics={})


# --- One attempt to commit a version, and the check whether an ambiguous attempt succeeded


_TRIES: Final = 4


class _Found(Enum):
    """The result of reading a version back: the commit of this transaction, another, or none."""

    OURS = "our commit"
    THEIRS = "another commit"
    NOTHING = "no commit"
    UNKNOWN = "nobody knows"


def attempt(
    committer: Committer,
    store: Store,
    version: int,
    data: bytes,
    *,
    txn_id: str,
    backoff: Backoff,
) -> FileInfo | None:
    """Try to write `data` as the commit of `version`.

    Returns:
        The file of the commit; None if another writer's commit has the version.

    Raises:
        StorageError: the store rejected the request; the commit was certainly not made.
        CommitOutcomeUnknownError: it is impossible to find out whether the commit was made.
    """
    error: StorageError | None = None
    may_arrive = False
    for number in range(_TRIES):
        if number:
            backoff.wait(number)
        try:
            return committer.commit(store, version, data)
        except AlreadyExistsError as taken:
            error = taken
        except StorageError as failure:
            # A refused commit is not tried again, so its error is enough.
            level = logging.INFO if isinstance(failure, AccessDeniedError) else logging.WARNING
            logger.log(level, "commit of version %d of %s: %s", version, store.root, failure)
            error = failure
        found, file = _look(committer, store, version, txn_id)
        if found is _Found.OURS:
            return file
        if found is _Found.THEIRS:
            return None
        # A missing commit proves a failure only if no earlier request can still take effect.
        is_final = _is_final(error, store, version)
        if found is _Found.NOTHING and is_final and not may_arrive:
            raise error
        may_arrive = may_arrive or not is_final
    raise CommitOutcomeUnknownError(
        f"version {version} of {store.root} may or may not have been committed: the store failed "
        f"{_TRIES} times, last with: {error}; look for txnId {txn_id!r} in the table's history "
        "before you repeat the operation",
        version=version,
        txn_id=txn_id,
    ) from error


def _is_final(error: StorageError, store: Store, version: int) -> bool:
    """Return whether a failed request cannot take effect later: rejected, or on a local store."""
    # The existing commit may come from an earlier request of this attempt, which has succeeded.
    if isinstance(error, AlreadyExistsError):
        return False
    if isinstance(error, AccessDeniedError) or absent_container(error):
        return True
    if isinstance(error, CatalogError):
        return error.was_refused
    return isinstance(store, NativeStore) and store.native_path(commit_path(version)) is not None


def _look(
    committer: Committer, store: Store, version: int, txn_id: str
) -> tuple[_Found, FileInfo | None]:
    """Read a version back and compare its `txnId` with `txn_id`."""
    try:
        path = _path_of(committer, store, version)
        if path is None:
            return _Found.NOTHING, None
        data = store.read(path)
        found = commit_info_of(data, version).get("txnId")
    except ObjectNotFoundError:
        return _Found.NOTHING, None
    except MalformedLogError:
        return _Found.THEIRS, None
    except StorageError as error:
        logger.warning("reading version %d of %s back: %s", version, store.root, error)
        return _Found.UNKNOWN, None
    if found == txn_id:
        return _Found.OURS, FileInfo(path, len(data), 0)
    return _Found.THEIRS, None


def _path_of(committer: Committer, store: Store, version: int) -> str | None:
    tail = committer.log_tail(store)
    if tail is None:
        return commit_path(version)
    for commit in tail.commits:
        if commit.version == version:
            return commit.file.path
    last = tail.last_version
    return None if last is None or version > last else commit_path(version)


# --- Facts of a commit for observers: counts and names, but no values of rows


def tell_commit(
    work: ObservedWork, pending: PendingTransaction, *, version: int, num_retries: int
) -> None:
    """Add the facts of a commit to the observed work that made it.

    Args:
        work: the observed work.
        pending: the content of the commit.
        version: the version that the commit created.
        num_retries: number of attempts in which another commit won the version.

    Cost: none without observers; otherwise a sum over the new files.
    """
    if not work.is_watched:
        return
    work.subject = pending.configuration
    work.facts.update(
        version=version,
        num_retries=num_retries,
        is_skipped=False,
        num_added_files=len(pending.adds),
        num_added_bytes=sum(add.size_bytes for add in pending.adds),
        num_removed_files=sum(files.num_rows for files, _ in pending.removes),
        data_change=pending.data_change,
    )
    work.facts.update({f"metrics.{name}": value for name, value in pending.metrics.items()})
