"""Run a MERGE in this process: find matching rows, apply clauses, stage files.

First, `match` finds the rows to change and their clauses. Then the changed files are masked or
rewritten as by UPDATE and DELETE, and new rows are inserted.

Protocol: Deletion Vectors, Add CDC File, Row Tracking
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.clock import Stopwatch
from deltalog._util.kernels import FALSE, Array, compute
from deltalog._util.readable import counted
from deltalog.data.scan.plan import find_pruned_keys
from deltalog.data.scan.prune import prune
from deltalog.data.scan.task import read_spec
from deltalog.data.write.changes import ChangeWriter
from deltalog.data.write.enforce import Enforcer
from deltalog.data.write.files import FileWriter
from deltalog.data.write.rows_to_files import WriteLimits
from deltalog.errors import InternalError
from deltalog.expressions import Column, Expression, columns
from deltalog.expressions.nodes import Comparison
from deltalog.expressions.render import shown_sql
from deltalog.expressions.trees import walk
from deltalog.operations.changes.apply import (
    FileDecision,
    FileEdits,
    FileRows,
    NewVersions,
    change_rows,
    decide_files,
    explain_choice,
    explain_decisions,
    file_counts,
    may_rewrite,
)
from deltalog.operations.changes.assign import Assignments, enforced, updating_enforcer
from deltalog.operations.changes.kept_groups import ROW_GROUP_BYTES
from deltalog.operations.changes.merge.match import (
    MatchFinder,
    MergeMatches,
    MergeReach,
    reach_of_merge,
)
from deltalog.operations.changes.merge.plan import (
    configuration_after,
    first_true,
    plan_merge,
)
from deltalog.operations.changes.merge.source import SOURCE, TARGET, MergeSource
from deltalog.operations.changes.request import Action, ChangeMetrics, ChangeRequest, RowCounts
from deltalog.protocol.deletion_vectors import DeletionBitmap, keep_mask
from deltalog.protocol.features.identity_columns import identity_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.data.write.options import WriteSpec
    from deltalog.operations.changes.apply import CandidateFiles, Shard
    from deltalog.operations.changes.merge.plan import MergeCondition, MergePlan, ResolvedClause
    from deltalog.operations.changes.merge.shares import SourceShare
    from deltalog.transaction import PendingTransaction

logger: logging.Logger = logging.getLogger(__name__)

_LIMITS = WriteLimits(row_group_bytes=ROW_GROUP_BYTES)


class LocalMerge:
    """A planned merge that can be applied, previewed or explained; a `PlannedChange`.

    Args:
        transaction: transaction of an existing table.
        request: the merge; its source must be a `MergeSource`.
        plan: the resolved request, if it is known. A task must use the client's plan, which
            contains the current time, and the physical names of new columns.
        shard: the part of the merge to apply, without new rows; None means the whole merge.
        reach: the predicates of the rows that may match, if the client has determined them.

    Raises:
        InvalidInputError: clauses, names or types are invalid.
        SchemaMismatchError: the source has columns that the table lacks.
        AmbiguousMergeError: several rows of the source would change the same row. Only `apply` and
            `preview` raise it.

    Cost: `apply` and `preview` call `MatchFinder.run` once.
    """

    def __init__(
        self,
        transaction: PendingTransaction,
        request: ChangeRequest,
        *,
        plan: MergePlan | None = None,
        shard: Shard | None = None,
        reach: MergeReach | None = None,
    ) -> None:
        self._transaction = transaction
        self._snapshot = snapshot = transaction.read_snapshot
        self._request = request
        self._shard = shard
        self._reach = reach
        # The configuration includes earlier changes of this transaction, such as added columns.
        before = transaction.configuration
        if plan is None:
            source = request.source.beside(before.schema)
            if request.is_upsert:
                after = configuration_after(request, before, source.schema)
                source = source.fitted(after.schema, snapshot.context.session.time_zone)
                _tell_of_null_keys(request.condition, source, snapshot.store.root)
            plan = plan_merge(request, before, source.schema, snapshot.context.session)
            if plan.configuration is not before:
                transaction.set_configuration(plan.configuration)
        else:
            source = request.source
        self.source: MergeSource = source
        self.plan: MergePlan = plan
        transaction.parameters.update(request.logged())

    @cached_property
    def _finder(self) -> MatchFinder:
        shard, progress = self._shard, self._transaction.progress
        candidates = None if shard is None else shard.candidates
        return MatchFinder(
            self._snapshot, self.plan, self.source, progress, candidates, self._reach
        )

    @property
    def reach(self) -> MergeReach:
        """The predicates of the rows that may match or change."""
        return self._finder.reach

    @property
    def candidates(self) -> CandidateFiles:
        """The files that may have matching rows."""
        return self._finder.candidates

    def shares(self, parts: Sequence[CandidateFiles]) -> list[SourceShare] | None:
        """Return the source rows that each part can match; None if each needs the whole source."""
        return self._finder.shares(parts)

    @property
    def reads_rows(self) -> bool:
        """Whether rows of the table are read; if not, none can match."""
        return not self._finder.reach.is_none

    @property
    def may_tell_changes(self) -> bool:
        """Whether `apply` may have to write change data files."""
        configuration, asked = self._snapshot.configuration, self._request.use_deletion_vectors
        may_update = self._may_update
        return configuration.change_data_feed_enabled and (
            may_update or may_rewrite(configuration, asked=asked, tells_rows=may_update)
        )

    def record_read(self, files: pa.Table) -> None:
        """Record files with matching rows in the transaction."""
        reach, is_row_local = self._finder.reach, self.plan.request.is_row_local
        if not reach.is_none:
            self._transaction.record_read(
                reach.file_predicate, files.select(["path"]), is_row_local=is_row_local
            )

    @cached_property
    def matches(self) -> MergeMatches:
        """The rows that the merge changes."""
        watch = Stopwatch()
        matches = self._finder.run()
        self._scan_ms = watch.elapsed_ms()
        # For conflict detection, also record files with matching rows that do not change. The merge
        # depends on these rows, because it does not insert the source rows that match them.
        read = (matches.matched_files, matches.selected.files)
        self.record_read(pa.concat_tables([files.select(["path"]) for files in read]))
        return matches

    @cached_property
    def _found(self) -> ChangeMetrics:
        matches, plan = self.matches, self.plan
        clause_numbers = [0] * (len(plan.matched) + len(plan.not_matched_by_source))
        for part in matches.clause_numbers:
            for entry in compute.value_counts(part).to_pylist():
                clause_numbers[entry["values"]] += entry["counts"]
        matched, not_matched_by_source = (
            clause_numbers[: len(plan.matched)],
            clause_numbers[len(plan.matched) :],
        )
        return ChangeMetrics(
            num_source_rows=self.source.num_rows,
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
            self.matches.selected,
            asked=self._request.use_deletion_vectors,
            tells_rows=self._found.rows.all_updated > 0
            if self._shard is None
            else self._may_update,
        )

    def apply(self) -> ChangeMetrics:
        """Write the changed and inserted rows, and stage the files.

        Raises:
            ConstraintViolationError: new rows violate a constraint. All new files are deleted.

        Cost: rewritten files: reads all columns of all rows. Files with a new deletion vector:
        reads all columns of the row groups with changed rows. Rows are streamed.
        """
        transaction, matches = self._transaction, self.matches
        found, decisions, watch = self._found, self._decisions, Stopwatch()
        spec = self._request.file_options.spec_for(transaction)
        change = MergeUpdate(spec, self.plan, self.source, matches)
        edits = FileEdits(
            selected=matches.selected,
            updates=self._updates(),
            columns=change.columns,
            reads=change.reads,
            decisions=decisions,
            progress=transaction.progress,
        )
        with contextlib.ExitStack() as stack:
            writer = stack.enter_context(FileWriter(spec, limits=_LIMITS))
            feed = stack.enter_context(ChangeWriter(spec)) if self._tells_changes else None
            files = change_rows(transaction, edits, change, writer, feed)
            matched = matches.matched_sources if self._shard is None else None
            done = self._finished(spec, writer, feed, matched)
        return replace(
            done,
            num_source_rows=found.num_source_rows,
            rows=replace(found.rows, inserted=done.rows.inserted),
            files=files,
            num_files=found.num_files,
            num_scanned_files=found.num_scanned_files,
            num_touched_files=found.num_touched_files,
            scan_ms=found.scan_ms,
            rewrite_ms=watch.elapsed_ms(),
        )

    def insert(self, matched: DeletionBitmap, *, tells_changes: bool) -> ChangeMetrics:
        """Write only the new rows, and stage their files; tasks have changed the other rows.

        Args:
            matched: the numbers of the source rows that match a row of the table.
            tells_changes: whether to write the new rows to change data files.
        """
        spec = self._request.file_options.spec_for(self._transaction)
        with contextlib.ExitStack() as stack:
            writer = stack.enter_context(FileWriter(spec, limits=_LIMITS))
            feed = stack.enter_context(ChangeWriter(spec)) if tells_changes else None
            return self._finished(spec, writer, feed, matched)

    def _finished(
        self,
        spec: WriteSpec,
        writer: FileWriter,
        feed: ChangeWriter | None,
        matched: DeletionBitmap | None,
    ) -> ChangeMetrics:
        """Write the new rows, and stage the new files; None instead of `matched` inserts nothing.

        Returns:
            The numbers of inserted rows and of new files.
        """
        inserts = Inserts(spec, self.plan, self.source, matched or DeletionBitmap())
        if matched is not None:
            inserts.write(writer, feed)
        written = writer.finish(
            identity_marks=inserts.identity_marks, identity_starts=inserts.identity_starts
        )
        cdc = () if feed is None else feed.finish()
        self._transaction.add_files(written)
        self._transaction.add_changes(cdc)
        return ChangeMetrics(
            rows=RowCounts(inserted=inserts.num_rows),
            num_added_files=len(written.adds),
            num_added_bytes=written.num_bytes,
            num_change_files=len(cdc),
        )

    def preview(self) -> tuple[ChangeMetrics, pa.Table]:
        """Return the expected result of `apply`, and the decision for each file.

        New values are not computed, so errors in them are not found.
        """
        matching, spec = (
            self.matches.selected,
            self._request.file_options.spec_for(self._transaction),
        )
        inserts = Inserts(spec, self.plan, self.source, self.matches.matched_sources)
        found = replace(
            self._found,
            rows=replace(self._found.rows, inserted=inserts.count()),
            files=file_counts(matching, self._decisions),
        )
        return found, explain_decisions(matching, self._decisions)

    def explain(self) -> str:
        """Describe the keys, conditions and files in plain text; reads no rows of the table."""
        snapshot, source, plan = self._snapshot, self.source, self.plan
        condition = plan.condition
        into = f"{snapshot.store.root}, version {snapshot.version}"
        rows = f"{source.num_rows} row{'s' * (source.num_rows != 1)}"
        lines = [f"Merge of {rows} into {into}"]
        keys = [
            f"{shown_sql(key.target)} {'<=>' if key.null_safe else '='} {shown_sql(key.source)}"
            for key in condition.keys
        ]
        lines.append(f"  equal keys: {', '.join(keys) or _without_keys(condition)}")
        for what, parts in (
            ("of the table alone", condition.target_only),
            ("of the source alone", condition.source_only),
            ("of pairs", condition.residual),
        ):
            lines += [f"  condition {what}: {shown_sql(part)}" for part in parts]
        lines.append(f"  columns that decide: {', '.join(plan.target_columns) or 'none'}")
        lines += [
            f"  {clause.given}"
            for clause in (*plan.matched, *plan.not_matched, *plan.not_matched_by_source)
        ]
        choice = explain_choice(snapshot, asked=self._request.use_deletion_vectors)
        lines.append(f"  changed files: {choice}")
        reach = reach_of_merge(plan, source)
        if reach.is_none:
            return "\n".join([*lines, "  files: no row of the table can match"])
        pruned = prune(snapshot, reach.file_predicate)
        lines += (f"  {line}" for line in pruned.explain())
        spec = read_spec(snapshot, columns=[], predicate=reach.row_predicate)
        found = find_pruned_keys(snapshot, spec, pruned, keys=reach.keys)
        if found is not None:
            lines += (f"  {line}" for line in found.explain())
        return "\n".join(lines)

    def _updates(self) -> list[bool]:
        clauses = (*self.plan.matched, *self.plan.not_matched_by_source)
        updates = pa.array(
            [n for n, clause in enumerate(clauses) if clause.assigned is not None], pa.int8()
        )
        return [
            bool(compute.any(compute.is_in(clause_numbers, value_set=updates)).as_py())
            for clause_numbers in self.matches.clause_numbers
        ]

    @property
    def _may_update(self) -> bool:
        """Whether any clause updates rows of the table."""
        clauses = (*self.plan.matched, *self.plan.not_matched_by_source)
        return any(clause.assigned is not None for clause in clauses)

    @property
    def _tells_changes(self) -> bool:
        """Whether to write change data files.

        Without them, readers derive inserts and deletes from `add`, `remove` and deletion vectors.
        This is impossible for updates, and for deletes in a rewritten file with copied rows.
        """
        if self._shard is not None:
            return self._shard.tells_changes
        rows = self._found.rows
        return self._snapshot.configuration.change_data_feed_enabled and bool(
            rows.all_updated or (rows.all_deleted and FileDecision.REWRITTEN in self._decisions)
        )


def _without_keys(condition: MergeCondition) -> str:
    """Describe how pairs are found if the condition has no equi-join keys."""
    within = condition.within
    if within is None:
        return "none, so every pair is compared"
    ends = (within.low, within.target, within.high)
    shown = " <= ".join(shown_sql(end) for end in ends if end is not None)
    return f"none; rows are looked up by {shown}"


def _sum(clauses: Sequence[ResolvedClause], counts: Sequence[int], action: Action) -> int:
    return sum(
        count
        for clause, count in zip(clauses, counts, strict=True)
        if clause.given.action is action
    )


# --- The rows that a merge writes: updated rows and inserted rows


class MergeUpdate:
    """Computes the new versions of rows by their clauses; an `apply.RowUpdate`.

    Args:
        spec: spec of the new files.
        plan: plan of the merge.
        source: the source's rows.
        matches: the rows that change, each with its clause and its source row.

    Attributes:
        columns: the columns whose values may change.
        reads: the columns of the old rows that are needed to compute the new versions.
    """

    def __init__(
        self, spec: WriteSpec, plan: MergePlan, source: MergeSource, matches: MergeMatches
    ) -> None:
        self._clauses = (*plan.matched, *plan.not_matched_by_source)
        self._source = source
        self._matches = matches
        self._schema = spec.configuration.arrow_schema
        self._makers = [
            None if clause.assigned is None else _Maker(spec, clause.assigned, source)
            for clause in self._clauses
        ]
        makers = [maker for maker in self._makers if maker is not None]
        self.columns: set[str] = {name for maker in makers for name in maker.columns}
        self.reads: set[str] = {name for maker in makers for name in maker.reads}

    def __call__(self, parts: Sequence[FileRows], old: pa.RecordBatch) -> NewVersions:
        """Return the new versions of the updated rows in `old`, see `apply.RowUpdate`."""
        clause_numbers = _joined(self._matches.clause_numbers, parts)
        sources = _joined(self._matches.sources, parts)
        versions: list[pa.RecordBatch] = []
        places: list[Array] = []
        for code in compute.unique(clause_numbers).to_pylist():
            maker = self._makers[code]
            if maker is None:
                continue
            mask = compute.equal(clause_numbers, code)
            whole = mask.true_count == old.num_rows
            rows = old if whole else old.filter(mask)
            versions.append(maker.make(rows, sources if whole else sources.filter(mask)))
            if whole:
                return NewVersions(versions[0])
            places.append(compute.indices_nonzero(mask).cast(pa.int64()))
        if not versions:
            none = pa.RecordBatch.from_arrays(
                [pa.array([], field.type) for field in self._schema], schema=self._schema
            )
            return NewVersions(none, pa.repeat(FALSE, old.num_rows))
        at = pa.concat_arrays(places)
        if len(versions) == 1:
            (new,) = versions
        else:
            joined = pa.Table.from_batches(versions).take(compute.array_sort_indices(at))
            (new,) = joined.combine_chunks().to_batches()
        if new.num_rows == old.num_rows:
            return NewVersions(new)
        updates = [n for n, maker in enumerate(self._makers) if maker is not None]
        return NewVersions(
            new, compute.is_in(clause_numbers, value_set=pa.array(updates, pa.int8()))
        )


def _joined(arrays: Sequence[Array], parts: Sequence[FileRows]) -> Array:
    """Return the values of some rows; `arrays` contains the values of each file."""
    slices = [arrays[part.file].slice(part.first, part.num_rows) for part in parts]
    return slices[0] if len(slices) == 1 else pa.concat_arrays(slices)


class _Maker:
    """Computes the new versions of rows to which one UPDATE clause applies."""

    def __init__(self, spec: WriteSpec, assigned: Assignments, source: MergeSource) -> None:
        self._assigned = assigned
        self._source = source
        configuration = spec.configuration
        self._enforcer, self._schema = updating_enforcer(spec, configuration, assigned.names)
        kept = set(self._schema.names) - set(assigned.names)
        self.columns = set(configuration.schema.names) - kept
        used = assigned.columns
        self._target_names = sorted({path[1] for path in used if path[0] == TARGET})
        self._source_names = sorted({path[1] for path in used if path[0] == SOURCE})
        replaced = assigned.replaced | (self.columns - set(assigned.names))
        self.reads = (set(configuration.schema.names) - replaced) | set(self._target_names)

    def make(self, old: pa.RecordBatch, sources: Array) -> pa.RecordBatch:
        """Return the new versions.

        Args:
            old: rows before the change.
            sources: for each row, the number of its source row.
        """
        parts: dict[str, Array] = {"": pa.nulls(old.num_rows)}
        if self._target_names:
            parts[TARGET] = old.select(self._target_names).to_struct_array()
        if self._source_names:
            parts[SOURCE] = self._source.take(sources, self._source_names).to_struct_array()
        scope = pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))
        new = self._assigned.compute(old, scope)
        return enforced(self._enforcer, self._schema, old, new)


class Inserts:
    """Inserts the source rows that match no row of the table.

    Args:
        spec: spec of the new files.
        plan: plan of the merge.
        source: the source's rows.
        matched: numbers of the source rows that match a row of the table.
    """

    def __init__(
        self, spec: WriteSpec, plan: MergePlan, source: MergeSource, matched: DeletionBitmap
    ) -> None:
        self._spec = spec
        self._clauses = plan.not_matched
        self._source = source
        self._matched = matched
        self.identity_marks: dict[str, int] = {}
        self.identity_starts: dict[str, int] = {}
        self.num_rows: int = 0

    def write(self, writer: FileWriter, feed: ChangeWriter | None) -> None:
        """Write the new rows."""
        has_ids = self._spec.configuration.row_ids_enabled
        for rows in self._rows():
            # The file may also contain copied rows, for which row ids are materialized. NULL as the
            # materialized row id of a new row means the default row id.
            ids = pa.nulls(rows.num_rows, pa.int64()) if has_ids else None
            writer.write(rows, row_ids=ids, row_commit_versions=ids)
            if feed is not None:
                feed.write(rows, "insert")
            self.num_rows += rows.num_rows

    def count(self) -> int:
        """Return the number of rows to insert, without computing their values."""
        return sum(
            picked.num_rows
            for place in range(len(self._clauses))
            for picked in self._picked(place, [])
        )

    def _rows(self) -> Iterator[pa.RecordBatch]:
        for place, clause in enumerate(self._clauses):
            assigned = _assigned(clause)
            enforcer = Enforcer(
                self._spec.configuration,
                assigned.new_schema(),
                table=self._spec.store.root,
                time_zone=self._spec.time_zone,
                identity_starts=self._next_identities(),
                now_ms=self._spec.now_ms,
            )
            names = sorted({path[1] for path in assigned.columns})
            for picked in self._picked(place, names):
                yield enforcer.apply(assigned.compute_new(_as_scope(picked)))
            self.identity_marks.update(enforcer.identity_marks)
            self.identity_starts = {**enforcer.identity_starts, **self.identity_starts}

    def _next_identities(self) -> dict[str, int]:
        """Return the identity values at which the next clause continues."""
        known = {
            column.name: column for column in identity_columns(self._spec.configuration.schema)
        }
        return {
            name: mark + known[name].step for name, mark in self.identity_marks.items()
        } or dict(self._spec.identity_starts)

    def _picked(self, place: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the source rows that the clause at index `place` inserts.

        They have the columns `names` and the columns that the conditions read.
        """
        conditions = [clause.condition for clause in self._clauses[: place + 1]]
        used = {
            path[1]
            for condition in conditions
            if condition is not None
            for path in columns(condition)
        }
        for start, batch in self._source.batches(sorted({*names, *used})):
            mask = keep_mask(self._matched, start, batch.num_rows)
            if mask is not None and not mask.true_count:
                continue
            rows = batch if mask is None else batch.filter(mask)
            if any(condition is not None for condition in conditions):
                rows = rows.filter(compute.equal(_clause_numbers(conditions, rows), place))
            if rows.num_rows:
                yield rows


def _assigned(clause: ResolvedClause) -> Assignments:
    if clause.given.action is not Action.INSERT or clause.assigned is None:
        raise InternalError(f"{clause.given} inserts nothing")
    return clause.assigned


def _clause_numbers(conditions: Sequence[Expression | None], rows: pa.RecordBatch) -> Array:
    def scope(places: Array | None, _: Expression) -> pa.RecordBatch:
        return _as_scope(rows if places is None else rows.take(places))

    return first_true(conditions, rows.num_rows, scope)


def _as_scope(rows: pa.RecordBatch) -> pa.RecordBatch:
    parts: dict[str, Array] = {"": pa.nulls(rows.num_rows)}
    if rows.num_columns:
        parts[SOURCE] = rows.to_struct_array()
    return pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))


def _tell_of_null_keys(condition: object, source: MergeSource, table: str) -> None:
    """Log that an upsert inserts rows with a NULL key each time, because NULL equals nothing."""
    if not isinstance(condition, Expression):
        return
    names = {
        node.right.path[-1]
        for node in walk(condition)
        if isinstance(node, Comparison) and node.operator == "=" and isinstance(node.right, Column)
    }
    keys = [name for name in source.schema.names if name in names]
    count = 0
    for _, batch in source.batches(keys):
        if any(column.null_count for column in batch.columns):
            count += batch.num_rows - batch.drop_null().num_rows
    if count:
        logger.warning(
            "%s of the data with a NULL key match no row of %s, and are inserted each time; "
            "null_safe=True matches them with rows with a NULL key",
            *(counted(count, "row"), table),
        )
