"""How verbs are done: staged, committed, tried again, reported; for every door alike.

Owns the only calls of `transaction.commit` outside of its room, so that each commit is followed by
the same steps, whichever door it came through. Metrics are set here and nowhere else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deltalog.errors import DeltaError
from deltalog.progress import Steps, shown
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import Ran, commit, run
from deltalog.transaction.discard import discard, discarding
from deltalog.transaction.properties import USUAL, CommitOptions
from deltalog.verbs.optimize.auto import AutoCompact, is_auto_compaction_due
from deltalog.verbs.verb import OutcomeT_co

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.configuration import TableConfiguration
    from deltalog.context import TableContext
    from deltalog.engine import Engine
    from deltalog.progress import Progress
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import Committed, PostCommitHookProperties
    from deltalog.verbs.verb import Verb

logger = logging.getLogger(__name__)


def do(
    verb: Verb[OutcomeT_co],
    load: Callable[[], Snapshot],
    engine: Engine,
    options: CommitOptions = USUAL,
    *,
    progress: Progress | None = None,
) -> Ran[OutcomeT_co]:
    """Stage a verb on a version and commit it; stage it anew where a winner made it wrong.

    Args:
        verb: what is to be done.
        load: the newest version; asked once for every evaluation.
        engine: does the work on rows and files.
        options: of the commit; a verb that cannot be staged again is not, whatever they say.
        progress: True for a bar, or told how many files of how many are read; what it raises ends
            the work, and leaves nothing behind.

    Raises:
        DeltaError: whatever staging and committing raise.
    """
    with verb.opened(engine) as opened:
        return run(
            load,
            lambda transaction: _stage(opened, transaction, engine, progress),
            operation=opened.name,
            parameters=opened.logged_parameters(),
            options=options if opened.is_repeatable else replace(options, on_conflict="raise"),
            skip_empty=opened.skips_empty,
            maintenance=EngineMaintenance(engine),
        )


def stage(
    verb: Verb[OutcomeT_co],
    transaction: PendingTransaction,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> OutcomeT_co:
    """Stage a verb with others into one transaction."""
    with verb.opened(engine) as opened:
        return _stage(opened, transaction, engine, progress)


def _stage(
    verb: Verb[OutcomeT_co],
    transaction: PendingTransaction,
    engine: Engine,
    progress: Progress | None,
) -> OutcomeT_co:
    with shown(progress, verb.doing) as tell:
        transaction.steps = Steps(tell)
        outcome = verb.stage(transaction, engine)
    transaction.set_metrics(outcome.metrics())
    return outcome


def preview(verb: Verb[Any], snapshot: Snapshot, engine: Engine) -> dict[str, Any]:
    """What a verb would do to a version, as its caller gets it; nothing is written."""
    transaction = PendingTransaction(snapshot.context, snapshot, operation=verb.name)
    with verb.opened(engine) as opened:
        return opened.preview(transaction, engine)


def explain(verb: Verb[Any], snapshot: Snapshot, engine: Engine) -> str:
    """How a verb would find the rows that it concerns; nothing is written."""
    transaction = PendingTransaction(snapshot.context, snapshot, operation=verb.name)
    with verb.opened(engine) as opened:
        return opened.explain(transaction, engine)


def make_table(
    verb: Verb[OutcomeT_co],
    context: TableContext,
    configuration: TableConfiguration,
    engine: Engine,
    options: CommitOptions = USUAL,
    *,
    progress: Progress | None = None,
) -> Ran[OutcomeT_co]:
    """Do a verb as version 0 of a table that is not there yet.

    Args:
        verb: what version 0 holds besides its configuration.
        context: of the table that is to be.
        configuration: of the table.
        engine: does the work on rows and files.
        options: of the commit.
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
        committed = commit_staged(transaction, engine, options)
    return Ran(value=outcome, committed=committed)


def commit_staged(
    transaction: PendingTransaction, engine: Engine, options: CommitOptions = USUAL
) -> Committed:
    """Commit what verbs have staged; the files of a skipped commit are removed."""
    committed = commit(transaction, options, maintenance=EngineMaintenance(engine))
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
                CommitOptions(hooks=hooks, on_conflict="raise"),
            )
        except DeltaError as error:
            logger.warning("cannot compact %s after a commit: %s", snapshot.store.root, error)
            return snapshot
        return done.committed.snapshot
