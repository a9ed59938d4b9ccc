"""Run a MERGE in this process: find matching rows, apply clauses, stage files.

Owns the order of the work: the source's keys limit the files that are read, clauses are chosen for
pairs and single rows, and files are changed as by UPDATE and DELETE.

Protocol: Deletion Vectors, Add CDC File, Row Tracking
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.cached import cached_property
from deltalog.clock import Stopwatch
from deltalog.expressions import to_sql
from deltalog.kernels import compute
from deltalog.rows.apply import FileEdits, change_rows, file_counts
from deltalog.rows.copy import ROW_GROUP_BYTES
from deltalog.rows.decide import FileDecision, decide_files, explain_choice, explain_decisions
from deltalog.rows.merge.match import find_matches, reach_of_merge
from deltalog.rows.merge.new_rows import Inserts, MergeUpdate
from deltalog.rows.merge.plan import plan_merge
from deltalog.rows.merge.source import MergeSource
from deltalog.rows.planned import ChangeMetrics, RowCounts
from deltalog.rows.request import Action
from deltalog.scan.prune import prune
from deltalog.write.changes import ChangeWriter
from deltalog.write.files import FileWriter
from deltalog.write.rows_to_files import WriteLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.rows.merge.condition import MergeCondition
    from deltalog.rows.merge.match import MergeMatches
    from deltalog.rows.merge.plan import ResolvedClause
    from deltalog.rows.request import ChangeRequest
    from deltalog.transaction import PendingTransaction


class LocalMerge:
    """The rows of a merge, ready to be applied, previewed or explained; a `PlannedChange`.

    Args:
        transaction: on an existing table.
        request: with a `MergeSource` as the source, as its rows are read more than once.

    Raises:
        InvalidInputError: clauses, names or types are invalid.
        SchemaMismatchError: the source has columns that the table lacks.
        AmbiguousMergeError: several rows of the source would change the same row.

    Cost: that of `find_matches`, on the first use of its result.
    """

    def __init__(self, transaction: PendingTransaction, request: ChangeRequest) -> None:
        self._transaction = transaction
        self._snapshot = snapshot = transaction.read_snapshot
        self._request = request
        # What the transaction holds already stays: columns that an earlier verb has added.
        before = transaction.configuration
        source = request.source.beside(before.schema)
        self._source: MergeSource = source
        self._plan = plan_merge(request, before, source.schema, snapshot.context.session)
        transaction.parameters.update(request.logged())
        if self._plan.configuration is not before:
            transaction.set_configuration(self._plan.configuration)

    @cached_property
    def _matches(self) -> MergeMatches:
        transaction, watch = self._transaction, Stopwatch()
        matches = find_matches(
            self._snapshot, self._plan, self._source, progress=transaction.progress
        )
        self._scan_ms = watch.elapsed_ms()
        # For conflict detection: a matched source row is not inserted, so the merge also depends
        # on files with matching rows that it does not change.
        if not matches.reach.is_none:
            alone = self._plan.request.is_row_local
            transaction.record_read(
                matches.reach.file_predicate, matches.matched_files, is_row_local=alone
            )
            transaction.record_read_files(matches.selected.files, is_row_local=alone)
        return matches

    @cached_property
    def _found(self) -> ChangeMetrics:
        matches, plan = self._matches, self._plan
        clause_numbers = [0] * (len(plan.matched) + len(plan.not_matched_by_source))
        for part in matches.clause_numbers:
            for entry in compute.value_counts(part).to_pylist():
                clause_numbers[entry["values"]] += entry["counts"]
        matched, not_matched_by_source = (
            clause_numbers[: len(plan.matched)],
            clause_numbers[len(plan.matched) :],
        )
        return ChangeMetrics(
            num_source_rows=self._source.num_rows,
            rows=RowCounts(
                updated=_sum(plan.matched, matched, Action.UPDATE),
                deleted=_sum(plan.matched, matched, Action.DELETE),
                updated_not_matched_by_source=_sum(
                    plan.not_matched_by_source, not_matched_by_source, Action.UPDATE
                ),
                deleted_not_matched_by_source=_sum(
                    plan.not_matched_by_source, not_matched_by_source, Action.DELETE
                ),
            ),
            num_files=matches.num_files,
            num_scanned_files=matches.selected.num_candidates,
            num_touched_files=matches.selected.files.num_rows,
            scan_ms=self._scan_ms,
        )

    @cached_property
    def _decisions(self) -> tuple[FileDecision, ...]:
        return decide_files(
            self._snapshot,
            self._matches.selected,
            asked=self._request.use_deletion_vectors,
            tells_rows=self._found.rows.all_updated > 0,
        )

    def apply(self) -> ChangeMetrics:
        """Write the changed and inserted rows, and stage the files.

        Raises:
            ConstraintViolationError: new rows violate a constraint; no new file is left behind.

        Cost: all columns of the row groups with changed rows in masked files, and of the whole of
        rewritten files. The table is streamed.
        """
        transaction, plan, matches = self._transaction, self._plan, self._matches
        found, decisions, watch = self._found, self._decisions, Stopwatch()
        spec = self._request.file_options.spec_for(transaction)
        change = MergeUpdate(spec, plan, self._source, matches)
        inserts = Inserts(spec, plan, self._source, matches.matched_sources)
        edits = FileEdits(
            selected=matches.selected,
            updates=self._updates(),
            columns=change.columns,
            reads=change.reads,
            decisions=decisions,
            progress=transaction.progress,
        )
        with contextlib.ExitStack() as stack:
            limits = WriteLimits(row_group_bytes=ROW_GROUP_BYTES)
            writer = stack.enter_context(FileWriter(spec, limits=limits))
            feed = stack.enter_context(ChangeWriter(spec)) if self._tells_changes else None
            files = change_rows(transaction, edits, change, writer, feed)
            inserts.write(writer, feed)
            written = writer.finish(
                identity_marks=inserts.identity_marks, identity_starts=inserts.identity_starts
            )
            cdc = () if feed is None else feed.finish()
            transaction.add_files(written)
            transaction.add_changes(cdc)
        return replace(
            found,
            rows=replace(found.rows, inserted=inserts.num_rows),
            files=files,
            num_added_files=len(written.adds),
            num_added_bytes=written.num_bytes,
            num_change_files=len(cdc),
            rewrite_ms=watch.elapsed_ms(),
        )

    def preview(self) -> tuple[ChangeMetrics, pa.Table]:
        """Return the result of `apply` and the decision per file; values are not checked."""
        matching, spec = (
            self._matches.selected,
            self._request.file_options.spec_for(self._transaction),
        )
        inserts = Inserts(spec, self._plan, self._source, self._matches.matched_sources)
        found = replace(
            self._found,
            rows=replace(self._found.rows, inserted=inserts.count()),
            files=file_counts(matching, self._decisions),
        )
        return found, explain_decisions(matching, self._decisions)

    def explain(self) -> str:
        """Describe keys, conditions and files as text; only the source's keys are read."""
        snapshot, source, plan = self._snapshot, self._source, self._plan
        condition = plan.condition
        into = f"{snapshot.store.root}, version {snapshot.version}"
        lines = [f"Merge of {source.num_rows} rows into {into}"]
        keys = [
            f"{to_sql(key.target)} {'<=>' if key.null_safe else '='} {to_sql(key.source)}"
            for key in condition.keys
        ]
        lines.append(f"  equal keys: {', '.join(keys) or _without_keys(condition)}")
        for what, parts in (
            ("of the table alone", condition.target_only),
            ("of the source alone", condition.source_only),
            ("of pairs", condition.residual),
        ):
            lines += [f"  condition {what}: {to_sql(part)}" for part in parts]
        lines.append(f"  columns that decide: {', '.join(plan.target_columns) or 'none'}")
        lines += [
            f"  {clause.given}"
            for clause in (*plan.matched, *plan.not_matched, *plan.not_matched_by_source)
        ]
        choice = explain_choice(snapshot, asked=self._request.use_deletion_vectors)
        lines.append(f"  changed files: {choice}")
        reach = reach_of_merge(plan, source)
        if reach.is_none:
            return "\n".join([*lines, "  files: no row of the table is concerned"])
        pruned = prune(snapshot, reach.file_predicate)
        return "\n".join([*lines, *(f"  {line}" for line in pruned.explain())])

    def _updates(self) -> list[bool]:
        clauses = (*self._plan.matched, *self._plan.not_matched_by_source)
        updates = pa.array(
            [n for n, clause in enumerate(clauses) if clause.assigned is not None], pa.int8()
        )
        return [
            bool(compute.any(compute.is_in(clause_numbers, value_set=updates)).as_py())
            for clause_numbers in self._matches.clause_numbers
        ]

    @property
    def _tells_changes(self) -> bool:
        """Whether change data files are needed.

        Inserts and deletes follow from `add`, `remove` and deletion vectors, unless a rewritten
        file holds copied rows too.
        """
        rows = self._found.rows
        return self._snapshot.configuration.change_data_feed_enabled and bool(
            rows.all_updated or (rows.all_deleted and FileDecision.REWRITTEN in self._decisions)
        )


def _without_keys(condition: MergeCondition) -> str:
    """Say how pairs are found where the condition has no equality."""
    within = condition.within
    if within is None:
        return "none, so every pair is looked at"
    ends = (within.low, within.target, within.high)
    shown = " <= ".join(to_sql(end) for end in ends if end is not None)
    return f"none; rows are looked up by {shown}"


def _sum(clauses: Sequence[ResolvedClause], counts: Sequence[int], action: Action) -> int:
    return sum(
        count
        for clause, count in zip(clauses, counts, strict=True)
        if clause.given.action is action
    )
