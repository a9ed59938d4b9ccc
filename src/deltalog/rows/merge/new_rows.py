"""Compute the rows that a merge writes: updated rows and inserted rows.

Owns the values that a merge writes: `rows.apply` reads the matching rows, and here each clause
computes the new versions of its rows, and the rows that it inserts. `clauses` says which one that
is.

Protocol: Add CDC File, Row Tracking, Identity Columns
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.deletion_vectors import keep_mask
from deltalog.errors import InternalError
from deltalog.expressions import columns
from deltalog.features.identity_columns import identity_columns
from deltalog.kernels import Array, compute
from deltalog.rows.apply import NewVersions
from deltalog.rows.assign import enforced, updating_enforcer
from deltalog.rows.merge.clauses import first_true
from deltalog.rows.merge.names import SOURCE, TARGET
from deltalog.rows.request import Action
from deltalog.write.enforce import Enforcer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.deletion_vectors import DeletionBitmap
    from deltalog.expressions import Expression
    from deltalog.rows.assign import Assignments
    from deltalog.rows.merge.match import MergeMatches
    from deltalog.rows.merge.plan import MergePlan, ResolvedClause
    from deltalog.rows.merge.source import MergeSource
    from deltalog.write.changes import ChangeWriter
    from deltalog.write.files import FileWriter
    from deltalog.write.spec import WriteSpec


class MergeUpdate:
    """Computes the new versions of matching rows by their clauses; a `rows.apply.RowUpdate`.

    Args:
        spec: of the new files.
        plan: of the merge.
        source: the source's rows.
        matches: the rows that change, each with its clause and its source row.

    Attributes:
        columns: the columns that may differ between old and new versions.
        reads: the old columns that new versions are computed from.
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

    def __call__(self, file: int, first: int, old: pa.RecordBatch) -> NewVersions:
        """Return the new versions of rows."""
        clause_numbers = self._matches.clause_numbers[file].slice(first, old.num_rows)
        sources = self._matches.sources[file].slice(first, old.num_rows)
        parts: list[pa.RecordBatch] = []
        places: list[Array] = []
        for code in compute.unique(clause_numbers).to_pylist():
            maker = self._makers[code]
            if maker is None:
                continue
            mask = compute.equal(clause_numbers, code)
            whole = mask.true_count == old.num_rows
            rows = old if whole else old.filter(mask)
            parts.append(maker.make(rows, sources if whole else sources.filter(mask)))
            if whole:
                return NewVersions(parts[0])
            places.append(compute.indices_nonzero(mask).cast(pa.int64()))
        if not parts:
            none = pa.RecordBatch.from_arrays(
                [pa.array([], field.type) for field in self._schema], schema=self._schema
            )
            return NewVersions(none, pa.repeat(pa.scalar(value=False), old.num_rows))
        at = pa.concat_arrays(places)
        if len(parts) == 1:
            (new,) = parts
        else:
            joined = pa.Table.from_batches(parts).take(compute.array_sort_indices(at))
            (new,) = joined.combine_chunks().to_batches()
        if new.num_rows == old.num_rows:
            return NewVersions(new)
        updates = [n for n, maker in enumerate(self._makers) if maker is not None]
        return NewVersions(
            new, compute.is_in(clause_numbers, value_set=pa.array(updates, pa.int8()))
        )


class _Maker:
    """Computes new versions of rows by one UPDATE clause."""

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
            sources: for each, the number of its source row.
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
        spec: of the new files.
        plan: of the merge.
        source: the source's rows.
        matched: numbers of the source rows that match.
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
            # The same file may hold copied rows with materialized ids: NULL means the default.
            ids = pa.nulls(rows.num_rows, pa.int64()) if has_ids else None
            writer.write(rows, row_ids=ids, row_commit_versions=ids)
            if feed is not None:
                feed.write(rows, "insert")
            self.num_rows += rows.num_rows

    def count(self) -> int:
        """Count the rows that would be inserted; only the clauses' conditions are evaluated."""
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
        """First identity values of the next clause: clauses share the columns' sequences."""
        known = {
            column.name: column for column in identity_columns(self._spec.configuration.schema)
        }
        return {
            name: mark + known[name].step for name, mark in self.identity_marks.items()
        } or dict(self._spec.identity_starts)

    def _picked(self, place: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows that a clause inserts."""
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
