"""Merge: rows of a source change, remove and add rows of the table.

Protocol: Deletion Vectors, Add CDC File, Row Tracking
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.clock import Stopwatch, now_ms
from deltalog.errors import InternalError
from deltalog.expressions import to_sql
from deltalog.kernels import compute
from deltalog.progress import Steps
from deltalog.rows.apply import Applied, Plan, change_rows, planned
from deltalog.rows.copy import ROW_GROUP_BYTES
from deltalog.rows.decide import Fate, choose_fates, explain_choice, explain_fates
from deltalog.rows.merge.apply import Inserts, MergeChange
from deltalog.rows.merge.clauses import Action, When
from deltalog.rows.merge.match import find_matches, source_reach
from deltalog.rows.merge.plan import plan_merge
from deltalog.scan.prune import prune
from deltalog.write.changes import ChangeWriter
from deltalog.write.files import FileWriter
from deltalog.write.parts import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.progress import OnProgress
    from deltalog.rows.merge.clauses import Clause, Merge
    from deltalog.rows.merge.match import Matches
    from deltalog.rows.merge.plan import MergePlan, Step
    from deltalog.rows.merge.source import MergeSource
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction
    from deltalog.verbs.append import FileOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Rows by what became of them.

    Args:
        updated: rows of the table with new values, because of a row of the source.
        deleted: rows of the table that go, because of a row of the source.
        updated_by_source: rows with new values that match no row of the source.
        deleted_by_source: rows that go and match no row of the source.
        inserted: new rows.
    """

    updated: int = 0
    deleted: int = 0
    updated_by_source: int = 0
    deleted_by_source: int = 0
    inserted: int = 0

    @property
    def all_updated(self) -> int:
        """Rows with new values."""
        return self.updated + self.updated_by_source

    @property
    def all_deleted(self) -> int:
        """Rows that go."""
        return self.deleted + self.deleted_by_source


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge did.

    Args:
        num_source_rows: rows of the source.
        rows: by what became of them.
        applied: what was done to the table's files.
        num_files: live files before.
        num_scanned_files: files of which the deciding columns were read.
        num_touched_files: files with rows that change.
        num_added_files: new data files.
        num_added_bytes: size of those.
        num_change_files: files for the change feed.
        scan_ms: how long the search took.
        rewrite_ms: how long writing took.
    """

    num_source_rows: int
    rows: Counts
    applied: Applied = field(default_factory=Applied)
    num_files: int = 0
    num_scanned_files: int = 0
    num_touched_files: int = 0
    num_added_files: int = 0
    num_added_bytes: int = 0
    num_change_files: int = 0
    scan_ms: int = 0
    rewrite_ms: int = 0

    @property
    def num_output_rows(self) -> int:
        """Rows that were written."""
        return self.rows.inserted + self.rows.all_updated + self.applied.num_copied_rows

    def metrics(self) -> dict[str, int | str]:
        """As the history tells them."""
        rows, applied = self.rows, self.applied
        return {
            "numSourceRows": self.num_source_rows,
            "numTargetRowsInserted": rows.inserted,
            "numTargetRowsUpdated": rows.all_updated,
            "numTargetRowsMatchedUpdated": rows.updated,
            "numTargetRowsNotMatchedBySourceUpdated": rows.updated_by_source,
            "numTargetRowsDeleted": rows.all_deleted,
            "numTargetRowsMatchedDeleted": rows.deleted,
            "numTargetRowsNotMatchedBySourceDeleted": rows.deleted_by_source,
            "numTargetRowsCopied": applied.num_copied_rows,
            "numOutputRows": self.num_output_rows,
            "numTargetFilesAdded": self.num_added_files,
            "numTargetFilesRemoved": applied.num_removed_files,
            "numTargetBytesAdded": self.num_added_bytes,
            "numTargetBytesRemoved": applied.num_removed_bytes,
            "numTargetDeletionVectorsAdded": applied.num_vectors_added,
            "numTargetDeletionVectorsUpdated": applied.num_vectors_updated,
            "numTargetDeletionVectorsRemoved": applied.num_vectors_removed,
            "numTargetChangeFilesAdded": self.num_change_files,
            "executionTimeMs": self.scan_ms + self.rewrite_ms,
            "scanTimeMs": self.scan_ms,
            "rewriteTimeMs": self.rewrite_ms,
        }

    def result(self) -> dict[str, int]:
        """As callers get them."""
        return {
            "num_source_rows": self.num_source_rows,
            "num_target_rows_inserted": self.rows.inserted,
            "num_target_rows_updated": self.rows.all_updated,
            "num_target_rows_deleted": self.rows.all_deleted,
            "num_target_rows_copied": self.applied.num_copied_rows,
            "num_output_rows": self.num_output_rows,
            "num_target_files_scanned": self.num_scanned_files,
            "num_target_files_skipped_during_scan": self.num_files - self.num_scanned_files,
            "num_target_files_added": self.num_added_files,
            "num_target_files_removed": self.applied.num_removed_files,
            "num_target_files_rewritten": self.applied.num_rewritten_files,
            "num_target_deletion_vectors_added": self.applied.num_vectors_added,
            "execution_time_ms": self.scan_ms + self.rewrite_ms,
            "scan_time_ms": self.scan_ms,
            "rewrite_time_ms": self.rewrite_ms,
        }


def stage_merge(
    pending: PendingTransaction,
    merge: Merge,
    source: MergeSource,
    *,
    options: FileOptions,
    progress: OnProgress | None = None,
) -> Merged:
    """Merge rows into the table.

    Args:
        pending: of an existing table.
        merge: what is to be done.
        source: the rows; the same ones may be staged again.
        options: of new files.
        progress: told how many files of how many are read; what it raises ends the work.

    Raises:
        InvalidInputError: clauses, names or types do not go together.
        AmbiguousMergeError: several rows of the source would change the same row.
        SchemaMismatchError: the source has columns that the table lacks.
        ConstraintViolationError: new rows break a rule of the table; nothing is left behind.

    Cost: `find_matches`; then all columns of the row groups with rows that change, or of the
    files that hold them where there are no deletion vectors. The table is streamed.
    """
    snapshot, watch = _snapshot_of(pending), Stopwatch()
    now = datetime.fromtimestamp(pending.context.clock.now_ms() / 1000, UTC)
    before = snapshot.configuration
    plan = plan_merge(merge, before, source.schema, time_zone=snapshot.context.time_zone, now=now)
    if plan.configuration is not before:
        pending.set_configuration(plan.configuration)
    pending.parameters.update(_parameters(merge))
    steps = Steps(progress)
    matches = find_matches(snapshot, plan, source, steps=steps)
    # A row of the source that matches is not inserted: so much of the files was looked at.
    if not matches.reach.is_none:
        alone = _is_row_local(plan)
        pending.read(matches.reach.files, matches.matched_files, is_row_local=alone)
        pending.read_files(matches.touched.files, is_row_local=alone)
    found = _found(plan, source, matches, watch.elapsed_ms())
    fates = _fates(snapshot, merge, matches, found)
    merged = _Writing(pending, plan, source, matches, options, steps).run(found, fates)
    pending.set_metrics(merged.metrics())
    return merged


def preview_merge(
    snapshot: Snapshot, merge: Merge, source: MergeSource, *, options: FileOptions
) -> tuple[Merged, pa.Table]:
    """What a merge would do to rows, and for each file what and why.

    Nothing is written, and values are not checked.
    """
    watch = Stopwatch()
    now = datetime.fromtimestamp(now_ms() / 1000, UTC)
    plan = plan_merge(
        merge,
        snapshot.configuration,
        source.schema,
        time_zone=snapshot.context.time_zone,
        now=now,
    )
    matches = find_matches(snapshot, plan, source)
    spec = options.spec(snapshot.context, plan.configuration)
    inserted = Inserts(spec, plan, source, matches.matched_sources).count()
    found = _found(plan, source, matches, watch.elapsed_ms(), inserted=inserted)
    touched, fates = matches.touched, _fates(snapshot, merge, matches, found)
    return replace(found, applied=planned(touched, fates)), explain_fates(touched, fates)


def explain_merge(snapshot: Snapshot, merge: Merge, source: MergeSource) -> str:
    """How a merge would find its rows, as text."""
    now = datetime.fromtimestamp(now_ms() / 1000, UTC)
    plan = plan_merge(
        merge,
        snapshot.configuration,
        source.schema,
        time_zone=snapshot.context.time_zone,
        now=now,
    )
    condition = plan.condition
    lines = [
        f"Merge of {source.num_rows} rows into {snapshot.store.root}, version {snapshot.version}"
    ]
    keys = [
        f"{to_sql(key.target)} {'<=>' if key.null_safe else '='} {to_sql(key.source)}"
        for key in condition.keys
    ]
    lines.append(f"  equal keys: {', '.join(keys) or 'none, so every pair is looked at'}")
    for what, parts in (
        ("of the table alone", condition.target_only),
        ("of the source alone", condition.source_only),
        ("of pairs", condition.residual),
    ):
        lines += [f"  condition {what}: {to_sql(part)}" for part in parts]
    lines.append(f"  columns that decide: {', '.join(plan.target_columns) or 'none'}")
    lines += [f"  {step.clause}" for step in (*plan.matched, *plan.not_matched, *plan.by_source)]
    lines.append(f"  changed files: {explain_choice(snapshot, asked=merge.use_deletion_vectors)}")
    reach = source_reach(plan, source)
    if reach.is_none:
        return "\n".join([*lines, "  files: no row of the table is concerned"])
    pruned = prune(snapshot, reach.files)
    return "\n".join([*lines, *(f"  {line}" for line in pruned.explain())])


def _is_row_local(plan: MergePlan) -> bool:
    """Whether rows of the table that match and stay as they are decide nothing.

    A row of the source is inserted where nothing matches it: then it must be known that what does
    match is still there. Where all of that changes, the rows that change are known anyhow.
    """
    return not plan.not_matched or any(step.condition is None for step in plan.matched)


def _fates(snapshot: Snapshot, merge: Merge, matches: Matches, found: Merged) -> tuple[Fate, ...]:
    return choose_fates(
        snapshot,
        matches.touched,
        asked=merge.use_deletion_vectors,
        tells_rows=found.rows.all_updated > 0,
    )


def _snapshot_of(pending: PendingTransaction) -> Snapshot:
    if pending.snapshot is None:
        raise InternalError("there is nothing to merge into in a table that is to be made")
    return pending.snapshot


class _Writing:
    def __init__(
        self,
        pending: PendingTransaction,
        plan: MergePlan,
        source: MergeSource,
        matches: Matches,
        options: FileOptions,
        steps: Steps,
    ) -> None:
        self._pending = pending
        self._steps = steps
        self._plan = plan
        self._source = source
        self._matches = matches
        self._options = options

    def run(self, found: Merged, fates: Sequence[Fate]) -> Merged:
        """Write what changes, and stage it."""
        pending, plan, watch = self._pending, self._plan, Stopwatch()
        spec = self._options.spec_for(pending)
        touched = self._matches.touched
        change = MergeChange(spec, plan, self._source, self._matches)
        inserts = Inserts(spec, plan, self._source, self._matches.matched_sources)
        work = Plan(
            touched=touched,
            updates=self._updates(),
            columns=change.columns,
            reads=change.reads,
            fates=fates,
            steps=self._steps,
        )
        with contextlib.ExitStack() as stack:
            limits = Limits(row_group_bytes=ROW_GROUP_BYTES)
            writer = stack.enter_context(FileWriter(spec, limits=limits))
            changes = (
                stack.enter_context(ChangeWriter(spec)) if self._tells(found.rows, fates) else None
            )
            applied = change_rows(pending, work, change, writer, changes)
            inserts.write(writer, changes)
            written = writer.finish(
                identity_marks=inserts.identity_marks, identity_starts=inserts.identity_starts
            )
            cdc = () if changes is None else changes.finish()
            pending.add_files(written)
            pending.add_changes(cdc)
        return replace(
            found,
            rows=replace(found.rows, inserted=inserts.num_rows),
            applied=applied,
            num_added_files=len(written.adds),
            num_added_bytes=written.num_bytes,
            num_change_files=len(cdc),
            rewrite_ms=watch.elapsed_ms(),
        )

    def _updates(self) -> list[bool]:
        steps = (*self._plan.matched, *self._plan.by_source)
        updates = pa.array(
            [n for n, step in enumerate(steps) if step.assigned is not None], pa.int8()
        )
        return [
            bool(compute.any(compute.is_in(codes, value_set=updates)).as_py())
            for codes in self._matches.codes
        ]

    def _tells(self, rows: Counts, fates: Sequence[Fate]) -> bool:
        """Whether the change feed needs files: adds and removes tell of new and gone rows alone."""
        if self._pending.snapshot is None:
            return False
        feed = self._pending.snapshot.configuration.change_data_feed_enabled
        return feed and bool(rows.all_updated or (rows.all_deleted and Fate.REWRITTEN in fates))


def _found(
    plan: MergePlan, source: MergeSource, matches: Matches, scan_ms: int, *, inserted: int = 0
) -> Merged:
    """What the search found."""
    codes = [0] * (len(plan.matched) + len(plan.by_source))
    for part in matches.codes:
        for entry in compute.value_counts(part).to_pylist():
            codes[entry["values"]] += entry["counts"]
    matched, by_source = codes[: len(plan.matched)], codes[len(plan.matched) :]
    return Merged(
        num_source_rows=source.num_rows,
        rows=Counts(
            updated=_sum(plan.matched, matched, Action.UPDATE),
            deleted=_sum(plan.matched, matched, Action.DELETE),
            updated_by_source=_sum(plan.by_source, by_source, Action.UPDATE),
            deleted_by_source=_sum(plan.by_source, by_source, Action.DELETE),
            inserted=inserted,
        ),
        num_files=matches.num_files,
        num_scanned_files=matches.touched.num_candidates,
        num_touched_files=matches.touched.files.num_rows,
        scan_ms=scan_ms,
    )


def _sum(steps: Sequence[Step], counts: Sequence[int], action: Action) -> int:
    return sum(
        count for step, count in zip(steps, counts, strict=True) if step.clause.action is action
    )


def _parameters(merge: Merge) -> dict[str, Any]:
    """For the history, in the reference's words."""
    predicate = merge.predicate
    return {
        "predicate": [predicate if isinstance(predicate, str) else to_sql(predicate)],
        "matchedPredicates": _shown(merge.of(When.MATCHED)),
        "notMatchedPredicates": _shown(merge.of(When.NOT_MATCHED)),
        "notMatchedBySourcePredicates": _shown(merge.of(When.NOT_MATCHED_BY_SOURCE)),
    }


def _shown(clauses: Sequence[Clause]) -> list[dict[str, str]]:
    return [
        {
            **(
                {}
                if clause.condition is None
                else {
                    "predicate": clause.condition
                    if isinstance(clause.condition, str)
                    else to_sql(clause.condition)
                }
            ),
            "actionType": clause.action.value,
        }
        for clause in clauses
    ]
