"""Find the table rows that a merge changes, each with its clause and its source row.

This is the first phase of a merge: it prunes files, reads the columns of keys and conditions, and
collects the rows to change. The module `pairs` decides which rows match.
"""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.kernels import Array, arrow, compute
from deltalog.data.scan.plan import make_numbered_tasks
from deltalog.data.scan.reader import ScanTask, read_tasks
from deltalog.data.scan.task import ReadSpec, read_spec
from deltalog.expressions import Expression, Literal, columns, type_of
from deltalog.expressions.literals import from_scalar
from deltalog.expressions.nodes import And, Collate, Column, Comparison, In, IsNull, Or
from deltalog.expressions.trees import all_of
from deltalog.operations.changes.apply import CandidateFiles, SelectedRows, complete_counts
from deltalog.operations.changes.merge.pairs import BatchMatches, Ends, PairMatcher
from deltalog.operations.changes.merge.shares import SourceShare, shares_of
from deltalog.operations.changes.merge.source import MergeSource, without_side
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.deletion_vectors import DeletionBitmap
from deltalog.schema import find_field
from deltalog.schema.collations import own_collation
from deltalog.schema.metadata_columns import ROW_INDEX
from deltalog.storage.parquet.facts import FetchedFooters
from deltalog.storage.pool import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog._util.cards import ProgressCount
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.changes.merge.plan import Key, MergePlan
    from deltalog.schema import DataType

_BATCH_ROWS: Final = 1 << 20
_MAX_ROWS: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeMatches:
    """The table rows that a merge changes.

    Args:
        selected: the files of these rows, and their ascending positions in each file.
        clause_numbers: for each file, an array with the clause of each row, as its index in
            `plan.matched + plan.not_matched_by_source`.
        sources: for each file, an array with the number of each row's source row; NULL for rows
            without a source row.
        matched_files: the files with a row that matches, changed or not.
        matched_sources: the numbers of the source rows that match; empty without INSERT clauses.
        reach: the predicates by which files and rows were filtered before matching.
        num_files: the number of live files of the table.
    """

    selected: SelectedRows
    clause_numbers: tuple[Array, ...]
    sources: tuple[Array, ...]
    matched_files: pa.Table
    matched_sources: DeletionBitmap
    reach: MergeReach
    num_files: int


def reach_of_merge(plan: MergePlan, source: MergeSource) -> MergeReach:
    """Return predicates that are true for all table rows that a merge may match or change."""
    pairs = PairMatcher(plan, source, "the table")
    return reach_of(plan, pairs.keys, pairs.ends, pairs.num_source)


class MatchFinder:
    """Joins the table with the source, and chooses a clause for each row.

    Args:
        snapshot: snapshot of the table.
        plan: plan of the merge.
        source: the source's rows.
        progress: counts the files that have been read.
        candidates: the files to search; None means the files that remain after pruning.
        reach: the result of `reach_of`, if it is known.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        plan: MergePlan,
        source: MergeSource,
        progress: ProgressCount,
        candidates: CandidateFiles | None = None,
        reach: MergeReach | None = None,
    ) -> None:
        self._progress = progress
        self._snapshot = snapshot
        self._plan = plan
        self._source = source
        self._pairs = PairMatcher(plan, source, snapshot.store.root)
        pairs = self._pairs
        if reach is None:
            reach = reach_of(plan, pairs.keys, pairs.ends, pairs.num_source)
        self.reach: MergeReach = reach
        self._given = candidates
        self._footers = FetchedFooters()

    @cached_property
    def candidates(self) -> CandidateFiles:
        """The files that may have matching rows.

        Cost: prunes files by the source's keys.
        """
        if self._given is not None:
            return self._given
        if not self.reach.is_none:
            return CandidateFiles.of(self._snapshot, self.reach.file_predicate)
        return CandidateFiles(
            files=FILE_SCHEMA.empty_table(),
            num_records=pa.chunked_array([], pa.int64()),
            is_exact=False,
            is_pruned=True,
            num_live_files=self._snapshot.num_files,
        )

    def shares(self, parts: Sequence[CandidateFiles]) -> list[SourceShare] | None:
        """Return the source rows that each part can match; see `shares_of`.

        None means that each part needs the whole source, also if a key index finds the rows.
        """
        if self.reach.keys is not None:
            return None
        pairs, files = self._pairs, [part.files for part in parts]
        return shares_of(self._plan, self._source, pairs.rows, pairs.keys, files)

    def run(self) -> MergeMatches:
        """Return the rows that the merge changes.

        Raises:
            AmbiguousMergeError: several rows of the source would change the same row.

        Cost: an index of the source's keys, unless there is no candidate. Reads
        `plan.target_columns` of the candidates. Memory: about 20 bytes for each row that changes.
        """
        snapshot, candidates = self._snapshot, self.candidates.files
        if self.reach.is_none:
            none = SelectedRows(files=candidates, positions=(), num_records=(), num_candidates=0)
            return self._matches(none, [], [], candidates, DeletionBitmap())
        hits: list[BatchMatches] = []
        batches = self._batches(candidates)
        matched_sources = DeletionBitmap()
        for found in read_ahead(self._pairs.match, batches, depth=2):
            hits.append(found)
            if self._plan.not_matched and len(found.matched_sources):
                matched_sources |= DeletionBitmap.from_arrow(found.matched_sources)
        files, rows, clause_numbers, sources = (
            pa.concat_arrays([pa.array([], kind), *(getattr(hit, name) for hit in hits)])
            for name, kind in (
                ("files", pa.int64()),
                ("rows", pa.int64()),
                ("clause_numbers", pa.int8()),
                ("sources", pa.int64()),
            )
        )
        # Batches are in the order of the files, so equal file numbers are adjacent.
        runs = compute.value_counts(files)
        numbers, counts = runs.field("values"), runs.field("counts").to_pylist()
        matching_files = candidates.take(numbers)
        spans = (
            list(zip(itertools.accumulate([0, *counts[:-1]]), counts, strict=True))
            if counts
            else []
        )
        known = self.candidates.num_records.take(numbers).to_pylist()
        selected = SelectedRows(
            files=matching_files,
            positions=tuple(rows.slice(start, count) for start, count in spans),
            num_records=complete_counts(snapshot, matching_files, known),
            num_candidates=candidates.num_rows,
            footers=self._footers,
        )
        all_matched: Array = pa.concat_arrays(
            [pa.array([], pa.int64()), *(hit.matched_files for hit in hits)]
        )
        return self._matches(
            selected,
            [clause_numbers.slice(start, count) for start, count in spans],
            [sources.slice(start, count) for start, count in spans],
            candidates.take(compute.unique(all_matched)),
            matched_sources,
        )

    def _matches(
        self,
        selected: SelectedRows,
        clause_numbers: Sequence[Array],
        sources: Sequence[Array],
        matched_files: pa.Table,
        matched_sources: DeletionBitmap,
    ) -> MergeMatches:
        return MergeMatches(
            selected=selected,
            clause_numbers=tuple(clause_numbers),
            sources=tuple(sources),
            matched_files=matched_files,
            matched_sources=matched_sources,
            reach=self.reach,
            num_files=self.candidates.num_live_files,
        )

    def _batches(self, candidates: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the columns that keys and conditions read.

        Small batches are joined, because each look-up has a cost for all keys of the source.
        """
        if not candidates.num_rows:
            return
        least = 1
        if not self._pairs.is_cheap:
            num_source = self._pairs.num_source
            least = min(max(_BATCH_ROWS, 16 * num_source), max(_MAX_ROWS, num_source))
        waiting: list[pa.RecordBatch] = []
        count = 0
        self._progress.expect(candidates.num_rows)
        for batch in read_tasks(self._progress.each(self._tasks(candidates))):
            if batch.num_rows:
                waiting.append(batch)
                count += batch.num_rows
            if count >= least:
                yield _joined(waiting)
                waiting, count = [], 0
        if waiting:
            yield _joined(waiting)

    def _tasks(self, candidates: pa.Table) -> Iterator[ScanTask]:
        # Filter rows by the keys only if the keys have pruned a file, if there is only one file, or
        # if a key index may find the rows. A predicate that prunes no file usually filters few
        # rows, and costs more than it saves.
        has_index = self.reach.keys is not None
        spares = self.candidates.is_pruned or candidates.num_rows == 1 or has_index
        tasks = make_numbered_tasks(
            self._snapshot,
            self._spec(self.reach.row_predicate if spares else self.reach.always),
            candidates,
            footers=self._footers,
            keys=self.reach.keys,
        )
        if not has_index:
            yield from tasks
            return
        alone = self._spec(self.reach.always)
        for task in tasks:
            if task.indexed is None:
                yield task
            else:  # the pairs of a few rows are compared anyway
                alone = replace(alone, output=task.spec.output)
                yield replace(task, spec=alone)

    def _spec(self, predicate: Expression | None) -> ReadSpec:
        return read_spec(
            self._snapshot,
            columns=self._plan.target_columns,
            hidden=(ROW_INDEX,),
            predicate=predicate,
        )


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return arrow.concat_batches(batches)


# --- Predicates from the source's keys, which prune the table's files


_FEW_KEYS: Final = 1_000
_MANY_KEYS: Final = 20_000
_MAX_RANGES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReach:
    """Predicates over the table's columns, true for all rows that a merge may match or change.

    Args:
        file_predicate: the predicate that prunes files; None prunes no file.
        row_predicate: the predicate that filters rows. It is cheaper to evaluate than
            `file_predicate`, and may be true for more rows.
        always: the part of the predicates that does not depend on the source's keys.
        keys: the values of the table's key columns in the source, for the key index; a row with
            other values can neither match nor change. None if unknown.
        is_none: whether no row can match or change.
    """

    file_predicate: Expression | None
    row_predicate: Expression | None
    always: Expression | None = None
    keys: pa.Table | None = None
    is_none: bool = False


def reach_of(
    plan: MergePlan, keys: Sequence[Array], ends: Ends, num_source_rows: int
) -> MergeReach:
    """Return the predicates that limit which rows of the table a merge reads.

    Args:
        plan: plan of the merge.
        keys: for each key, its values in the source rows that may match.
        ends: the lower and upper bounds of the ranges (`MergeCondition.within`) in these rows.
        num_source_rows: the number of source rows that may match.
    """
    condition = plan.condition
    may_match = bool(num_source_rows) and not condition.is_never
    files: Expression | None = None
    rows: Expression | None = None
    if may_match:
        found = [
            _claims(key, values, plan) for key, values in zip(condition.keys, keys, strict=True)
        ]
        only = [*condition.target_only, *_around(plan, ends)]
        files = all_of([*only, *(claim for claim, _ in found if claim is not None)])
        rows = all_of([*only, *(claim for _, claim in found if claim is not None)])
        may_match = not any(
            _is_empty(key, values) for key, values in zip(condition.keys, keys, strict=True)
        )
    if not plan.not_matched_by_source:
        needs_pairs = bool(plan.matched or plan.not_matched)
        always = all_of(list(condition.target_only))
        return MergeReach(
            file_predicate=files,
            row_predicate=rows,
            always=always,
            keys=_key_rows(plan, keys),
            is_none=not (may_match and needs_pairs),
        )
    others = [clause.condition for clause in plan.not_matched_by_source]
    if any(other is None for other in others):
        return MergeReach(file_predicate=None, row_predicate=None)
    alone = [without_side(other) for other in others if other is not None]
    if not may_match:
        both = _any_of(alone)
        return MergeReach(file_predicate=both, row_predicate=both, always=both)
    return MergeReach(
        file_predicate=None if files is None else _any_of([files, *alone]),
        row_predicate=None if rows is None else _any_of([rows, *alone]),
    )


def _key_rows(plan: MergePlan, keys: Sequence[Array]) -> pa.Table | None:
    """Return the key values of the source, with a column for each key that is a plain column.

    Strings that are equal by another collation than the column's own have different key hashes.
    """
    if plan.configuration.properties.key_index_columns is None:
        return None
    found: dict[str, Array] = {}
    for key, values in zip(plan.condition.keys, keys, strict=True):
        target: Expression = key.target
        collation = target.collation if isinstance(target, Collate) else None
        if isinstance(target, Collate):
            target = target.operand
        if isinstance(target, Column) and len(target.path) == 1:
            field = find_field(plan.configuration.schema, target.path)
            if collation is None or collation == own_collation(field):
                found[field.name] = values
    return pa.table(found) if found else None


def _any_of(parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _is_partition(key: Key, plan: MergePlan) -> bool:
    partitioned = set(plan.configuration.partition_columns)
    return {path[0] for path in columns(key.target)} <= partitioned


def _is_empty(key: Key, values: Array) -> bool:
    """Whether no row can match, because all values are NULL and the key is not null-safe."""
    return not key.null_safe and values.null_count == len(values)


def _claims(
    key: Key, values: Array, plan: MergePlan
) -> tuple[Expression | None, Expression | None]:
    """Return two predicates on the table's side of a key: one for files, and one for rows."""
    data_type = type_of(key.target, plan.configuration.schema)
    partitioned = _is_partition(key, plan)
    if pa.types.is_floating(values.type) and compute.any(compute.is_nan(values)).as_py():
        return None, None
    try:
        found = _of_values(key.target, values, data_type, partitioned=partitioned)
    except (pa.ArrowException, ValueError, OverflowError):
        # Python cannot represent a key, such as a date after the year 9999. Then prune no file.
        return None, None
    if found is None:
        empty = IsNull(key.target) if key.null_safe else None
        return empty, empty
    files, rows = found
    if key.null_safe and values.null_count:
        return Or((files, IsNull(key.target))), Or((rows, IsNull(key.target)))
    return files, rows


def _of_values(
    target: Expression, values: Array, data_type: DataType, *, partitioned: bool
) -> tuple[Expression, Expression] | None:
    distinct = compute.unique(values).drop_null()
    if not len(distinct):
        return None
    few = _MANY_KEYS if partitioned else _FEW_KEYS
    if len(distinct) <= few:
        options = tuple(Literal(from_scalar(value), data_type) for value in distinct)
        known = In(target, options)
        return known, known
    ends = compute.min_max(distinct)
    whole = _between(target, from_scalar(ends["min"]), from_scalar(ends["max"]), data_type)
    ranges = _ranges(distinct)
    if len(ranges) < 2:
        return whole, whole
    parts = tuple(_between(target, low, high, data_type) for low, high in ranges)
    return Or(parts), whole


def _around(plan: MergePlan, ends: Ends) -> list[Expression]:
    """Return predicates on the table's column of a range join.

    They are false for values below the smallest lower bound or above the largest upper bound.
    """
    within = plan.condition.within
    if within is None:
        return []
    data_type = type_of(within.target, plan.configuration.schema)
    parts: list[Expression] = []
    for values, operator, extreme in zip(ends, (">=", "<="), ("min", "max"), strict=True):
        if values is None:
            continue
        found = compute.min_max(values)[extreme]
        if found.is_valid:
            with suppress(pa.ArrowException, ValueError, OverflowError):  # no Python value
                literal = Literal(from_scalar(found), data_type)
                parts.append(Comparison(operator, within.target, literal))
    return parts


def _between(target: Expression, low: Any, high: Any, data_type: DataType) -> Expression:
    return And(
        (
            Comparison(">=", target, Literal(low, data_type)),
            Comparison("<=", target, Literal(high, data_type)),
        )
    )


def _ranges(distinct: Array) -> list[tuple[Any, Any]]:
    """Return at most `_MAX_RANGES` ranges that cover all values, split at the widest gaps."""
    kind = distinct.type
    if not (pa.types.is_integer(kind) or _is_counted(kind)):
        return []
    ascending = distinct.take(compute.array_sort_indices(distinct))
    counts = ascending
    if not pa.types.is_integer(kind):
        counts = ascending.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    numbers = counts.cast(pa.float64(), safe=False)
    gaps = compute.subtract(numbers.slice(1), numbers.slice(0, len(numbers) - 1))
    widest = compute.select_k_unstable(
        pa.table({"gap": gaps, "at": arrow.arange(0, len(gaps))}),
        k=_MAX_RANGES - 1,
        sort_keys=[("gap", "descending")],
    )
    # Split only at gaps that are much wider than the mean gap. Other gaps rarely prune a file.
    mean = (numbers[-1].as_py() - numbers[0].as_py()) / max(1, len(gaps))
    cuts = sorted(
        at
        for at in widest.to_pylist()
        if gaps[at].as_py() > max(mean * math.log2(len(gaps) + 2), 1)
    )
    starts = [0, *(cut + 1 for cut in cuts)]
    stops = [*cuts, len(ascending) - 1]
    return [
        (from_scalar(ascending[first]), from_scalar(ascending[last]))
        for first, last in zip(starts, stops, strict=True)
    ]


def _is_counted(kind: pa.DataType) -> bool:
    """Whether Arrow stores the values as integers: a number of days or of parts of a second."""
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
