"""How verbs are done: staged, committed, tried again, reported; for every door alike.

Owns the only calls of `transaction.commit` outside of its room, so that each commit is followed by
the same steps, whichever door it came through. Metrics are set here and nowhere else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal

from deltalog.errors import DeltaError
from deltalog.progress import Steps, shown
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import commit, run
from deltalog.transaction.discard import discard, discarding
from deltalog.verbs.optimize.auto import AutoCompact, is_auto_compaction_due
from deltalog.verbs.verb import OutcomeT

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.configuration import TableConfiguration
    from deltalog.context import TableContext
    from deltalog.engine import Engine
    from deltalog.progress import Progress
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import CommitProperties, Committed, PostCommitHookProperties
    from deltalog.verbs.verb import Verb

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbDone(Generic[OutcomeT]):
    """What has come of a verb.

    Args:
        outcome: None if the application's transaction was in the table already.
        committed: the commit, skipped if there was nothing to do.
    """

    outcome: OutcomeT | None
    committed: Committed


def do(
    verb: Verb[OutcomeT],
    load: Callable[[], Snapshot],
    engine: Engine,
    *,
    on_conflict: Literal["retry", "raise"] = "retry",
    commit_properties: CommitProperties | None = None,
    hooks: PostCommitHookProperties | None = None,
    progress: Progress | None = None,
) -> VerbDone[OutcomeT]:
    """Stage a verb on a version and commit it; stage it anew where a winner made it wrong.

    Args:
        verb: what is to be done.
        load: the newest version; asked once for every evaluation.
        engine: does the work on rows and files.
        on_conflict: `raise` never stages again; nor is a verb staged again that cannot be.
        commit_properties: of the commit.
        hooks: what follows it.
        progress: True for a bar, or told how many files of how many are read; what it raises ends
            the work, and leaves nothing behind.

    Raises:
        DeltaError: whatever staging and committing raise.
    """
    ran = run(
        load,
        lambda transaction: stage(verb, transaction, engine, progress=progress),
        operation=verb.name,
        parameters=verb.logged_parameters(),
        on_conflict=on_conflict if verb.is_repeatable else "raise",
        commit_properties=commit_properties,
        hooks=hooks,
        skip_empty=verb.skips_empty,
        maintenance=EngineMaintenance(engine),
    )
    return VerbDone(outcome=ran.value, committed=ran.committed)


def stage(
    verb: Verb[OutcomeT],
    transaction: PendingTransaction,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> OutcomeT:
    """Stage a verb with others into one transaction."""
    with shown(progress, verb.doing) as tell:
        transaction.steps = Steps(tell)
        outcome = verb.stage(transaction, engine)
    transaction.set_metrics(outcome.metrics())
    return outcome


def preview(verb: Verb[Any], snapshot: Snapshot, engine: Engine) -> dict[str, Any]:
    """What a verb would do to a version, as its caller gets it; nothing is written."""
    transaction = PendingTransaction(snapshot.context, snapshot, operation=verb.name)
    return verb.preview(transaction, engine)


def make_table(
    verb: Verb[OutcomeT],
    context: TableContext,
    configuration: TableConfiguration,
    engine: Engine,
    *,
    commit_properties: CommitProperties | None = None,
    hooks: PostCommitHookProperties | None = None,
    progress: Progress | None = None,
) -> VerbDone[OutcomeT]:
    """Do a verb as version 0 of a table that is not there yet.

    Args:
        verb: what version 0 holds besides its configuration.
        context: of the table that is to be.
        configuration: of the table.
        engine: does the work on rows and files.
        commit_properties: of the commit.
        hooks: what follows it.
        progress: as for `do`.

    Raises:
        CommitFailedError: another writer made a table there.
    """
    transaction = PendingTransaction(
        context,
        None,
        operation=verb.name,
        parameters=verb.logged_parameters(),
        configuration=configuration,
    )
    with discarding(transaction):
        outcome = stage(verb, transaction, engine, progress=progress)
        committed = commit_staged(
            transaction, engine, commit_properties=commit_properties, hooks=hooks
        )
    return VerbDone(outcome=outcome, committed=committed)


def commit_staged(
    transaction: PendingTransaction,
    engine: Engine,
    *,
    commit_properties: CommitProperties | None = None,
    hooks: PostCommitHookProperties | None = None,
) -> Committed:
    """Commit what verbs have staged; the files of a skipped commit are removed."""
    committed = commit(
        transaction,
        commit_properties=commit_properties,
        hooks=hooks,
        maintenance=EngineMaintenance(engine),
    )
    if committed.skipped:
        discard(transaction)
    return committed


@dataclass(frozen=True, slots=True)
class EngineMaintenance:
    """The work after a commit that goes through files, done by the engine of the verb.

    Args:
        engine: does it.
    """

    engine: Engine

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """As `Engine.write_checkpoint`."""
        return self.engine.write_checkpoint(snapshot, at_ms)

    def compact(self, snapshot: Snapshot, hooks: PostCommitHookProperties) -> Snapshot:
        """Put small files together where that is worth a commit; the version to go on with.

        The commit before it stands, whatever happens here: a failure is logged.
        """
        try:
            if not is_auto_compaction_due(snapshot):
                return snapshot
            first = [snapshot]
            done = do(
                AutoCompact(),
                lambda: first.pop() if first else snapshot.refresh(),
                self.engine,
                on_conflict="raise",
                hooks=hooks,
            )
        except DeltaError as error:
            logger.warning("cannot compact %s after a commit: %s", snapshot.store.root, error)
            return snapshot
        return done.committed.snapshot
