"""Update: rows that match a predicate get new values.

Protocol: Deletion Vectors, Add CDC File, Generated Columns, Row Tracking
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.clock import Stopwatch, now_ms
from deltalog.errors import InternalError, InvalidInputError
from deltalog.progress import Steps
from deltalog.rows.apply import Applied, Changed, Plan, change_rows, planned
from deltalog.rows.assign import Scope, assignments, enforced, updating_enforcer
from deltalog.rows.copy import ROW_GROUP_BYTES, tasks_of
from deltalog.rows.decide import choose_fates, explain_fates
from deltalog.rows.find import find_touched
from deltalog.scan.plan import read_spec
from deltalog.scan.reader import read_tasks
from deltalog.write.changes import ChangeWriter
from deltalog.write.files import FileWriter
from deltalog.write.parts import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.expressions import Expression
    from deltalog.progress import OnProgress
    from deltalog.rows.assign import Assignments
    from deltalog.rows.find import Touched
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction
    from deltalog.verbs.append import FileOptions
    from deltalog.write.spec import WriteSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """What an update did.

    Args:
        num_rows: that have new values.
        applied: what was done to the files that hold them.
        num_added_files: new data files.
        num_added_bytes: size of those.
        num_change_files: files for the change feed.
        scan_ms: how long the search took.
        rewrite_ms: how long writing took.
    """

    num_rows: int
    applied: Applied
    num_added_files: int = 0
    num_added_bytes: int = 0
    num_change_files: int = 0
    scan_ms: int = 0
    rewrite_ms: int = 0

    def metrics(self) -> dict[str, int | str]:
        """As the history tells them."""
        applied = self.applied
        return {
            "numRemovedFiles": applied.num_removed_files,
            "numRemovedBytes": applied.num_removed_bytes,
            "numCopiedRows": applied.num_copied_rows,
            "numDeletionVectorsAdded": applied.num_vectors_added,
            "numDeletionVectorsUpdated": applied.num_vectors_updated,
            "numDeletionVectorsRemoved": applied.num_vectors_removed,
            "numAddedFiles": self.num_added_files,
            "numAddedBytes": self.num_added_bytes,
            "numUpdatedRows": self.num_rows,
            "numAddedChangeFiles": self.num_change_files,
            "executionTimeMs": self.scan_ms + self.rewrite_ms,
            "scanTimeMs": self.scan_ms,
            "rewriteTimeMs": self.rewrite_ms,
        }

    def result(self) -> dict[str, int]:
        """As callers get them."""
        return {
            "num_added_files": self.num_added_files,
            "num_removed_files": self.applied.num_removed_files,
            "num_updated_rows": self.num_rows,
            "num_copied_rows": self.applied.num_copied_rows,
            "num_rewritten_files": self.applied.num_rewritten_files,
            "num_deletion_vectors_added": self.applied.num_vectors_added,
            "execution_time_ms": self.scan_ms + self.rewrite_ms,
            "scan_time_ms": self.scan_ms,
        }


def stage_update(
    pending: PendingTransaction,
    values: Mapping[str | tuple[str, ...], object],
    predicate: Expression | None,
    *,
    options: FileOptions,
    use_deletion_vectors: bool | None = None,
    error_on_type_mismatch: bool = True,
    progress: OnProgress | None = None,
) -> Updated:
    """Give new values to the rows for which a predicate is true.

    Args:
        pending: of an existing table.
        values: column (a dotted path reaches into a struct) → SQL text, expression or constant,
            computed from the row as it was.
        predicate: resolved against the snapshot's schema; None is every row.
        options: of new files.
        use_deletion_vectors: for files that keep rows; None does what the table has enabled.
        error_on_type_mismatch: False makes NULL of what does not fit the column's type.
        progress: told how many files of how many are read; what it raises ends the work.

    Raises:
        InvalidInputError: a column does not exist or cannot be assigned, or deletion vectors are
            asked for and the table does not allow them.
        ConstraintViolationError: new rows break a rule of the table; nothing is left behind.

    Cost: `find_touched`; then all columns of the row groups with such rows, or of the files that
    hold them where there are no deletion vectors.
    """
    if pending.snapshot is None:
        raise InternalError("there is nothing to update in a table that is to be made")
    snapshot, watch = pending.snapshot, Stopwatch()
    now = datetime.fromtimestamp(pending.context.clock.now_ms() / 1000, UTC)
    if not values:
        raise InvalidInputError("an update needs at least one column = value")
    schema = snapshot.configuration.schema
    zone = pending.context.time_zone
    scope = Scope.of_table(schema, now, time_zone=zone, is_try=not error_on_type_mismatch)
    wanted = assignments(schema, values, scope)
    spec = options.spec_for(pending)
    update = _Update(wanted, spec)
    steps = Steps(progress)
    touched = find_touched(snapshot, predicate, steps=steps)
    pending.read(predicate, touched.files, is_row_local=True)
    scan_ms = watch.elapsed_ms()
    if not touched.files.num_rows:
        return Updated(num_rows=0, applied=Applied(), scan_ms=scan_ms)
    plan = Plan(
        touched=touched,
        updates=[True] * touched.files.num_rows,
        columns=update.columns,
        reads=update.reads,
        fates=choose_fates(snapshot, touched, asked=use_deletion_vectors),
        steps=steps,
    )
    updated = _write(pending, snapshot, plan, update, scan_ms)
    pending.set_metrics(updated.metrics())
    return updated


def preview_update(
    snapshot: Snapshot,
    values: Mapping[str | tuple[str, ...], object],
    predicate: Expression | None,
    *,
    options: FileOptions,
    use_deletion_vectors: bool | None = None,
) -> tuple[Updated, pa.Table]:
    """What an update would do, and for each file what and why.

    Nothing is written, and values are not computed.

    Args:
        snapshot: of the table.
        values: as for `stage_update`; names and types are checked.
        predicate: resolved against the snapshot's schema; None is every row.
        options: of new files.
        use_deletion_vectors: for files that keep rows; None does what the table has enabled.
    """
    watch = Stopwatch()
    now = datetime.fromtimestamp(now_ms() / 1000, UTC)
    schema = snapshot.configuration.schema
    assignments(schema, values, Scope.of_table(schema, now, time_zone=snapshot.context.time_zone))
    touched = find_touched(snapshot, predicate)
    fates = choose_fates(snapshot, touched, asked=use_deletion_vectors)
    found = Updated(
        num_rows=_count(snapshot, touched),
        applied=planned(touched, fates),
        scan_ms=watch.elapsed_ms(),
    )
    return found, explain_fates(touched, fates)


def _count(snapshot: Snapshot, touched: Touched) -> int:
    """How many rows match, from the footers of files of which the log does not tell."""
    known = touched.num_rows
    if known is not None:
        return known
    tasks = tasks_of(snapshot, read_spec(snapshot, columns=[], predicate=None), touched.files)
    return sum(batch.num_rows for batch in read_tasks(tasks))


class _Update:
    """One set of assignments, over batches of rows."""

    def __init__(self, wanted: Assignments, spec: WriteSpec) -> None:
        configuration = spec.configuration
        self.spec = spec
        self._wanted = wanted
        self._enforcer, self._schema = updating_enforcer(spec, configuration, wanted.names)
        # Generated columns are computed anew, so they may differ as well.
        self.columns = {*wanted.names, *configuration.schema.names} - (
            set(self._schema.names) - set(wanted.names)
        )
        used = {path[0] for path in wanted.columns}
        replaced = wanted.replaced | (self.columns - set(wanted.names))
        self.reads = (set(configuration.schema.names) - replaced) | used
        self.num_rows = 0

    def __call__(self, file: int, first: int, old: pa.RecordBatch) -> Changed:
        """The new versions of rows, all of which are updated."""
        del file, first
        self.num_rows += old.num_rows
        new = self._wanted.compute(old, old)
        return Changed(enforced(self._enforcer, self._schema, old, new))


def _write(
    pending: PendingTransaction, snapshot: Snapshot, plan: Plan, update: _Update, scan_ms: int
) -> Updated:
    watch = Stopwatch()
    feed = snapshot.configuration.change_data_feed_enabled
    with contextlib.ExitStack() as stack:
        limits = Limits(row_group_bytes=ROW_GROUP_BYTES)
        writer = stack.enter_context(FileWriter(update.spec, limits=limits))
        changes = stack.enter_context(ChangeWriter(update.spec)) if feed else None
        applied = change_rows(pending, plan, update, writer, changes)
        written = writer.finish()
        cdc = () if changes is None else changes.finish()
        pending.add_files(written)
        pending.add_changes(cdc)
    return Updated(
        num_rows=update.num_rows,
        applied=applied,
        num_added_files=len(written.adds),
        num_added_bytes=written.num_bytes,
        num_change_files=len(cdc),
        scan_ms=scan_ms,
        rewrite_ms=watch.elapsed_ms(),
    )
