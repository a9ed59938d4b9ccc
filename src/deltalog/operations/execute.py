"""Run operations: stage, commit, retry after a conflict, and set the metrics.

Only this module calls `transaction.commit` and sets metrics. So the same steps follow each commit,
whether the API, SQL, Spark or the command line started the operation.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from deltalog._util.cards import Progress, ProgressCount, shown
from deltalog.errors import DeltaError
from deltalog.log.snapshot import Snapshot
from deltalog.operations.operation import Operation, OutcomeT_co
from deltalog.schema.columns import naming_the_attempt
from deltalog.storage.faults import naming_the_operation
from deltalog.transaction import Committed, PendingTransaction, PostCommitHookProperties
from deltalog.transaction.commit import Ran, commit, commit_loop, stage_and_commit
from deltalog.transaction.pending import discard, discarding
from deltalog.transaction.properties import USUAL, CommitOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.log.context import TableContext
    from deltalog.operations.engine import Engine
    from deltalog.protocol.actions import AddFile
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.transaction.commit_loop import CommitLoop

logger: logging.Logger = logging.getLogger(__name__)


def execute(
    operation: Operation[OutcomeT_co],
    load: Callable[[], Snapshot],
    engine: Engine,
    options: CommitOptions = USUAL,
    *,
    is_held: bool = False,
    progress: Progress | None = None,
) -> Ran[OutcomeT_co]:
    """Stage an operation and commit it; stage it again if a concurrent commit conflicts with it.

    Args:
        operation: the operation to run.
        load: returns the snapshot to stage on; it is called after the operation's sources are open.
        engine: reads and writes rows and files.
        options: options of the commit. An operation that is not repeatable always raises on a
            conflict.
        is_held: see `stage_and_commit`.
        progress: True shows a progress bar. A function is called with the number of files read and
            the total number of files. If the function raises, the operation stops and deletes its
            new files.

    Raises:
        DeltaError: staging or committing failed.
    """
    with operation.opened(engine) as opened:
        return stage_and_commit(
            load,
            lambda transaction: _staged(opened, transaction, engine, progress),
            operation=opened.name,
            parameters=opened.logged_parameters(),
            options=options if opened.is_repeatable else replace(options, on_conflict="raise"),
            skip_empty=opened.skips_empty,
            is_held=is_held,
            maintenance=EngineMaintenance(engine),
        )


def execute_on(
    operation: Operation[OutcomeT_co],
    shown: Snapshot,
    engine: Engine,
    options: CommitOptions = USUAL,
    *,
    is_fresh: bool = False,
    progress: Progress | None = None,
) -> Ran[OutcomeT_co]:
    """Run an operation on a snapshot's table; refresh the snapshot first if the operation needs it.

    Args:
        operation: the operation to run.
        shown: a snapshot of the table; it need not be the latest version.
        engine: reads and writes rows and files.
        options: options of the commit.
        is_fresh: whether the snapshot was just opened as the latest version, so that no refresh is
            needed.
        progress: see `execute`.

    Raises:
        TableNotFoundError: the table no longer exists, or was replaced by another table.
        DeltaError: staging or committing failed.
    """
    # If the source can be read only once, refresh even a fresh snapshot. Opening the source may
    # have taken long, and after a conflict the operation cannot be repeated.
    if operation.needs_latest and not (is_fresh and operation.is_repeatable):
        load = partial(shown.refresh, same_table=True)
        return execute(operation, load, engine, options, progress=progress)
    return execute(
        operation, lambda: shown, engine, options, is_held=not is_fresh, progress=progress
    )


def stage(
    operation: Operation[OutcomeT_co],
    transaction: PendingTransaction,
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> OutcomeT_co:
    """Stage an operation into a transaction and return its outcome; nothing is committed.

    The transaction may contain other staged operations.
    """
    with operation.opened(engine) as opened:
        return _staged(opened, transaction, engine, progress)


def _staged(
    operation: Operation[OutcomeT_co],
    transaction: PendingTransaction,
    engine: Engine,
    progress: Progress | None,
) -> OutcomeT_co:
    with shown(progress, operation.doing) as tell:
        transaction.progress = ProgressCount(tell)
        root = transaction.store.root
        with naming_the_attempt(f"run {operation.name} on", root):
            outcome = operation.stage(transaction, engine)
    transaction.add_metrics(outcome.metrics())
    return outcome


def preview(operation: Operation[Any], snapshot: Snapshot, engine: Engine) -> dict[str, Any]:
    """Return the result of a dry run of an operation on a version; nothing is written."""
    transaction = PendingTransaction(snapshot.context, snapshot, operation=operation.name)
    with operation.opened(engine) as opened:
        return opened.preview(transaction, engine)


def explain(operation: Operation[Any], snapshot: Snapshot, engine: Engine) -> str:
    """Describe how an operation would find the rows to change; nothing is written."""
    transaction = PendingTransaction(snapshot.context, snapshot, operation=operation.name)
    with operation.opened(engine) as opened:
        return opened.explain(transaction, engine)


def make_table(
    operation: Operation[OutcomeT_co],
    context: TableContext,
    configuration: TableConfiguration,
    engine: Engine,
    options: CommitOptions = USUAL,
    *,
    takes_files: bool = False,
    progress: Progress | None = None,
) -> Ran[OutcomeT_co]:
    """Create a table, with an operation that stages the contents of version 0.

    Args:
        operation: stages everything except the configuration, such as rows or clustering columns.
        context: context of the new table.
        configuration: protocol and metadata of the new table.
        engine: reads and writes rows and files.
        options: options of the commit.
        takes_files: whether the operation adds files that are already in the directory; otherwise,
            Parquet files there cause a warning.
        progress: see `execute`.

    Raises:
        CommitFailedError: another writer created a table at the location.
        InvalidInputError: the location is in a partition directory of another table.
    """
    from deltalog.log.snapshot import locations  # noqa: PLC0415  # new tables

    locations.check_new_location(context.store)
    warnings = [locations.blanks_around(context.store)]
    if not takes_files:
        warnings.append(locations.files_beside(context.store, context.clock.now_ms()))
    for warning in warnings:
        if warning is not None:
            from deltalog._util.builders import warn_caller  # noqa: PLC0415  # only for warnings

            warn_caller(warning)
    transaction = PendingTransaction(
        context,
        None,
        operation=operation.name,
        parameters=operation.logged_parameters(),
        configuration=configuration,
    )
    with (
        naming_the_operation("create a table at", context.store.root),
        discarding(transaction),
    ):
        outcome = stage(operation, transaction, engine, progress=progress)
        committed = _committed(transaction, engine, options)
    return Ran(value=outcome, committed=committed)


def commit_staged(
    transaction: PendingTransaction, engine: Engine, options: CommitOptions = USUAL
) -> Committed:
    """Commit a transaction with staged operations. If the commit is skipped, delete new files."""
    with naming_the_operation("commit to", transaction.store.root):
        return _committed(transaction, engine, options)


def _committed(
    transaction: PendingTransaction, engine: Engine, options: CommitOptions
) -> Committed:
    transaction.checks_base = True  # the transaction may have been created long ago
    committed = commit(transaction, options, maintenance=EngineMaintenance(engine))
    if committed.skipped:
        discard(transaction)
    return committed


def prepare_staged(
    transaction: PendingTransaction, engine: Engine, options: CommitOptions = USUAL
) -> CommitLoop:
    """Return the commit loop of a transaction with staged operations. The caller runs the loop."""
    transaction.checks_base = True
    return commit_loop(transaction, options, maintenance=EngineMaintenance(engine))


@dataclass(frozen=True, slots=True)
class EngineMaintenance:
    """Writes checkpoints and compacts files after a commit, with the operation's engine.

    Args:
        engine: engine of the operation.
    """

    engine: Engine

    def write_checkpoint(self, snapshot: Snapshot, at_ms: int) -> bool:
        """Write a checkpoint, see `Engine.write_checkpoint`."""
        return self.engine.write_checkpoint(snapshot, at_ms)

    def compact(self, snapshot: Snapshot, hooks: PostCommitHookProperties) -> Snapshot:
        """Run auto-compaction if it is due, and return the newest version.

        The operation is already committed, so a failure is only logged.
        """
        # Import here, because most tables do not enable auto-compaction.
        from deltalog.operations.optimize.compact import (  # noqa: PLC0415
            AutoCompact,
            is_auto_compaction_due,
        )

        try:
            if not is_auto_compaction_due(snapshot):
                return snapshot
            options = CommitOptions(hooks=hooks, on_conflict="raise")
            done = execute(AutoCompact(), lambda: snapshot, self.engine, options)
        except DeltaError as error:
            logger.warning("cannot compact %s after a commit: %s", snapshot.store.root, error)
            return snapshot
        return done.committed.snapshot

    def index_keys(self, snapshot: Snapshot, adds: Sequence[AddFile]) -> None:
        """Index the keys of new files that their writer has not indexed."""
        try:
            from deltalog.data.keys.writing import unindexed  # noqa: PLC0415  # needs NumPy
        except ModuleNotFoundError as error:
            logger.warning("cannot index the keys of %s: %s", snapshot.store.root, error)
            return
        if new := unindexed(snapshot, adds):
            from deltalog.operations.key_index import index_new_files  # noqa: PLC0415  # rarely needed

            index_new_files(snapshot, new, self.engine)
