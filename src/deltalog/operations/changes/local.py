"""Run a DELETE or UPDATE in this process: find matching rows, and apply the change.

This module searches for the rows, decides for each file, and applies the decisions.
`changes.merge.local` does the same for MERGE.

Protocol: Deletion Vectors, Add CDC File, Generated Columns, Row Tracking
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.clock import Stopwatch
from deltalog.data.scan.plan import make_tasks
from deltalog.data.scan.reader import read_tasks
from deltalog.data.scan.task import read_spec
from deltalog.data.write.changes import ChangeWriter
from deltalog.data.write.files import FileWriter
from deltalog.data.write.rows_to_files import WriteLimits
from deltalog.expressions import to_sql
from deltalog.operations.arguments import as_condition
from deltalog.operations.changes import kept_groups
from deltalog.operations.changes.apply import (
    CandidateFiles,
    FileDecision,
    FileEdits,
    FileRows,
    NewVersions,
    change_rows,
    decide_files,
    explain_decisions,
    file_counts,
    find_matching_files,
    may_mask,
    may_rewrite,
    stage_files,
)
from deltalog.operations.changes.assign import Scope, assignments, enforced, updating_enforcer
from deltalog.operations.changes.kept_groups import (
    ROW_GROUP_BYTES,
    KeptGroups,
    copy_rows,
    read_rows,
)
from deltalog.operations.changes.request import Action, ChangeMetrics, ChangeRequest, RowCounts
from deltalog.schema.conform import conform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.data.write.options import WriteSpec
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.changes.apply import SelectedRows, Shard
    from deltalog.operations.changes.assign import Assignments
    from deltalog.transaction import PendingTransaction

_LIMITS = WriteLimits(row_group_bytes=ROW_GROUP_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChangePlan:
    """A DELETE or UPDATE with all names and types resolved; picklable.

    Args:
        condition: the condition on the rows to change; None means all rows.
        assigned: the new values of columns; None for a DELETE.
    """

    condition: Expression | None
    assigned: Assignments | None

    @classmethod
    def of(cls, snapshot: Snapshot, request: ChangeRequest) -> Self:
        """Resolve a request against the schema of a version.

        Raises:
            InvalidInputError: a column does not exist or cannot be assigned.
        """
        (clause,) = request.clauses
        schema = snapshot.configuration.schema
        session = snapshot.context.session  # condition and values must use the same current time
        assigned = None
        if clause.action is not Action.DELETE:
            is_try = not request.error_on_type_mismatch
            scope = Scope.of_table(schema, session, is_try=is_try)
            assigned = assignments(schema, clause.values or {}, scope)
        condition = as_condition(
            schema, request.condition, session=session, parameters=request.parameters
        )
        return cls(condition=condition, assigned=assigned)


class LocalChange:
    """The `PlannedChange` of a DELETE or UPDATE. It searches for the rows when they are needed.

    Args:
        transaction: transaction of an existing table.
        request: a request without a source.
        plan: the resolved request, if it is known; a task must use the client's current time.
        shard: the part of the change to apply; None means the whole change.

    Raises:
        InvalidInputError: a column does not exist or cannot be assigned; or deletion vectors are
            requested, but the table does not support them.

    Cost: see `find_matching_files`.
    """

    def __init__(
        self,
        transaction: PendingTransaction,
        request: ChangeRequest,
        *,
        plan: RowChangePlan | None = None,
        shard: Shard | None = None,
    ) -> None:
        self._transaction = transaction
        self._snapshot = transaction.read_snapshot
        self._request = request
        self._shard = shard
        self.plan: RowChangePlan = plan or RowChangePlan.of(self._snapshot, request)
        self._condition = self.plan.condition
        self._deletes = self.plan.assigned is None
        transaction.parameters["predicate"] = (
            [] if self._condition is None else [to_sql(self._condition)]
        )
        self._is_preview = True
        self._scan_ms = 0

    @cached_property
    def candidates(self) -> CandidateFiles:
        """The files that may have matching rows."""
        if self._shard is not None:
            return self._shard.candidates
        return CandidateFiles.of(self._snapshot, self._condition)

    @property
    def reads_rows(self) -> bool:
        """Whether rows are read; if not, the log alone shows which files to remove."""
        return not (self._deletes and self.candidates.is_exact)

    @property
    def may_tell_changes(self) -> bool:
        """Whether `apply` may have to write change data files."""
        configuration, asked = self._snapshot.configuration, self._request.use_deletion_vectors
        return configuration.change_data_feed_enabled and (
            not self._deletes or may_rewrite(configuration, asked=asked, tells_rows=False)
        )

    def record_read(self, files: pa.Table) -> None:
        """Record the files with matching rows in the transaction."""
        self._transaction.record_read(self._condition, files, is_row_local=True)

    @cached_property
    def _selected(self) -> SelectedRows:
        transaction, watch = self._transaction, Stopwatch()
        selected = find_matching_files(
            self._snapshot,
            self._condition,
            candidates=self.candidates,
            along=() if self._deletes or self._is_preview else self._read_along(),
            progress=transaction.progress,
        )
        self.record_read(selected.files)
        self._scan_ms = watch.elapsed_ms()
        return selected

    def _read_along(self) -> list[str]:
        """Return the columns of matching rows that the search should store in memory."""
        configuration = self._snapshot.configuration
        if not may_mask(configuration, asked=self._request.use_deletion_vectors):
            return []
        names: Sequence[str] = configuration.schema.names
        assigned = self.plan.assigned
        if assigned is not None and not configuration.change_data_feed_enabled:
            used = {path[0] for path in assigned.columns}
            names = [name for name in names if name in used or name not in assigned.replaced]
        return list(names)

    @cached_property
    def _decisions(self) -> tuple[FileDecision, ...]:
        asked = self._request.use_deletion_vectors
        # `tells_rows`: if the change data feed is enabled, an UPDATE always writes change data
        # files. A DELETE writes them only if it rewrites files.
        return decide_files(
            self._snapshot, self._selected, asked=asked, tells_rows=not self._deletes
        )

    def apply(self) -> ChangeMetrics:
        """Write the changed rows, and stage the files.

        Raises:
            ConstraintViolationError: new rows violate a constraint; new files are deleted.

        Cost: a DELETE writes one small file for all deletion vectors, and copies the remaining rows
        of rewritten files. An UPDATE reads all columns of the row groups with matching rows, and
        all columns of rewritten files.
        """
        self._is_preview = False
        found, watch = self._known_metrics(), Stopwatch()
        if self._selected.files.num_rows:
            assigned = self.plan.assigned
            found = self._delete(found) if assigned is None else self._update(found, assigned)
        return replace(found, rewrite_ms=watch.elapsed_ms())

    def preview(self) -> tuple[ChangeMetrics, pa.Table]:
        """Return the expected result of `apply`, and the decisions; computes no new values."""
        found = self._known_metrics()
        if not self._deletes:
            found = replace(found, rows=RowCounts(updated_not_matched_by_source=self._count()))
        return found, explain_decisions(self._selected, self._decisions)

    def explain(self) -> str:
        """Describe in plain text how many files were read, and the decisions about them."""
        selected = self._selected
        lines = [f"files read: {selected.num_candidates}, with rows: {selected.files.num_rows}"]
        decisions = [f"files to {one}: {self._decisions.count(one)}" for one in FileDecision]
        return "\n".join([*lines, *decisions])

    def _known_metrics(self) -> ChangeMetrics:
        """Return the metrics that are known before files are written."""
        selected = self._selected
        rows = (
            RowCounts(deleted_not_matched_by_source=selected.num_rows)
            if self._deletes
            else RowCounts()
        )
        return ChangeMetrics(
            rows=rows,
            files=file_counts(selected, self._decisions),
            num_scanned_files=selected.num_candidates,
            num_touched_files=selected.files.num_rows,
            scan_ms=self._scan_ms,
        )

    def _count(self) -> int:
        """Return the number of matching rows, from footers if the log has no `numRecords`."""
        known = self._selected.num_rows
        if known is not None:
            return known
        spec = read_spec(self._snapshot, columns=[], predicate=None)
        tasks = make_tasks(self._snapshot, spec, self._selected.files)
        return sum(batch.num_rows for batch in read_tasks(tasks))

    # --- deletes

    def _delete(self, found: ChangeMetrics) -> ChangeMetrics:
        stage_files(self._transaction, self._selected, self._decisions)
        cut = [n for n, one in enumerate(self._decisions) if one is FileDecision.REWRITTEN]
        if cut:
            found = self._rewrite(cut, found)
        tells_changes = bool(cut) if self._shard is None else self._shard.tells_changes
        if tells_changes and self._snapshot.configuration.change_data_feed_enabled:
            found = replace(found, num_change_files=self._tell_deleted())
        return found

    def _rewrite(self, cut: Sequence[int], found: ChangeMetrics) -> ChangeMetrics:
        """Copy the remaining rows of files to new files."""
        transaction, selected = self._transaction, self._selected
        files = selected.files.take(pa.array(cut, pa.int64()))
        spec = self._request.file_options.spec_for(transaction)
        # The transaction may have added columns that the snapshot's rows lack.
        schema = spec.configuration.arrow_schema
        with FileWriter(spec, limits=_LIMITS) as writer:
            copied = copy_rows(
                self._snapshot,
                files,
                writer,
                schema,
                without=[selected.positions[number] for number in cut],
                kept=KeptGroups(self._snapshot, writer, least_bytes=kept_groups.LEAST_BYTES),
                footers=selected.footers,
                progress=transaction.progress,
            )
            written = writer.finish()
        transaction.add_files(written)
        return replace(
            found,
            files=replace(found.files, num_copied_rows=copied),
            num_added_files=len(written.adds),
            num_added_bytes=written.num_bytes,
        )

    def _tell_deleted(self) -> int:
        """Write the deleted rows to change data files, and return the number of these files."""
        transaction, selected = self._transaction, self._selected
        spec = self._request.file_options.spec_for(transaction)
        schema = spec.configuration.arrow_schema
        with ChangeWriter(spec) as feed:
            for batch in read_rows(
                self._snapshot,
                selected.files,
                predicate=self._condition,
                footers=selected.footers,
                progress=transaction.progress,
            ):
                feed.write(conform(batch, schema), "delete")
            cdc = feed.finish()
            transaction.add_changes(cdc)
        return len(cdc)

    # --- updates

    def _update(self, found: ChangeMetrics, assigned: Assignments) -> ChangeMetrics:
        transaction = self._transaction
        update = _Update(assigned, self._request.file_options.spec_for(transaction))
        edits = FileEdits(
            selected=self._selected,
            updates=[True] * self._selected.files.num_rows,
            columns=update.columns,
            reads=update.reads,
            decisions=self._decisions,
            progress=transaction.progress,
        )
        has_feed = self._snapshot.configuration.change_data_feed_enabled
        with contextlib.ExitStack() as stack:
            writer = stack.enter_context(FileWriter(update.spec, limits=_LIMITS))
            feed = stack.enter_context(ChangeWriter(update.spec)) if has_feed else None
            files = change_rows(transaction, edits, update, writer, feed)
            written = writer.finish()
            cdc = () if feed is None else feed.finish()
            transaction.add_files(written)
            transaction.add_changes(cdc)
        return replace(
            found,
            rows=RowCounts(updated_not_matched_by_source=update.num_rows),
            files=files,
            num_added_files=len(written.adds),
            num_added_bytes=written.num_bytes,
            num_change_files=len(cdc),
        )


class _Update:
    """Applies the assignments of an UPDATE to batches of rows; an `apply.RowUpdate`."""

    def __init__(self, wanted: Assignments, spec: WriteSpec) -> None:
        configuration = spec.configuration
        self.spec = spec
        self._wanted = wanted
        self._enforcer, self._schema = updating_enforcer(spec, configuration, wanted.names)
        # An update recomputes generated columns, so their values may change, too.
        self.columns = {*wanted.names, *configuration.schema.names} - (
            set(self._schema.names) - set(wanted.names)
        )
        used = {path[0] for path in wanted.columns}
        replaced = wanted.replaced | (self.columns - set(wanted.names))
        self.reads = (set(configuration.schema.names) - replaced) | used
        self.num_rows = 0

    def __call__(self, parts: Sequence[FileRows], old: pa.RecordBatch) -> NewVersions:
        """Return the new versions of rows, all of which are updated."""
        del parts
        self.num_rows += old.num_rows
        new = self._wanted.compute(old, old)
        return NewVersions(enforced(self._enforcer, self._schema, old, new))
