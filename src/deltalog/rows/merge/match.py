"""Find the table rows that a merge changes, each with its clause and its source row.

Owns the first half of a merge: pruning files, reading the columns of conditions and keys, and
collecting the matching rows. `pairs` evaluates which rows match.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.deletion_vectors import DeletionBitmap
from deltalog.kernels import Array, arrow, compute
from deltalog.metadata_columns import ROW_INDEX
from deltalog.progress import ProgressCount
from deltalog.rows.find import SelectedRows, complete_counts
from deltalog.rows.merge.pairs import BatchMatches, PairMatcher
from deltalog.rows.merge.prune import reach_of
from deltalog.scan.plan import make_numbered_tasks
from deltalog.scan.prune import prune
from deltalog.scan.reader import read_tasks
from deltalog.scan.spec import read_spec
from deltalog.storage.parquet_facts import FetchedFooters
from deltalog.storage.pool import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.rows.merge.plan import MergePlan
    from deltalog.rows.merge.prune import MergeReach
    from deltalog.rows.merge.source import MergeSource
    from deltalog.scan.task import ScanTask
    from deltalog.snapshot import Snapshot


_BATCH_ROWS: Final = 1 << 20
_MAX_ROWS: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeMatches:
    """The table rows that a merge changes.

    Args:
        selected: their files and positions, ascending in each file.
        clause_numbers: for each file and row, the index of its clause in `plan.matched +
            plan.not_matched_by_source`.
        sources: for each file and row, the number of its source row; NULL if there is none.
        matched_files: files with a row that matches, changed or not.
        matched_sources: numbers of the source rows that match; only with INSERT clauses.
        reach: the range of rows that was read.
        num_files: live files.
    """

    selected: SelectedRows
    clause_numbers: tuple[Array, ...]
    sources: tuple[Array, ...]
    matched_files: pa.Table
    matched_sources: DeletionBitmap
    reach: MergeReach
    num_files: int


def find_matches(
    snapshot: Snapshot,
    plan: MergePlan,
    source: MergeSource,
    *,
    progress: ProgressCount | None = None,
) -> MergeMatches:
    """Join the table with the source, and choose a clause for each row.

    Args:
        snapshot: of the table.
        plan: of the merge.
        source: the source's rows.
        progress: counted in files read.

    Raises:
        AmbiguousMergeError: several rows of the source would change the same row.

    Cost: `plan.target_columns` of the files that pruning by the source's keys left. Memory: the
    source's keys, and about 20 bytes for each row that changes.
    """
    return _MatchFinder(snapshot, plan, source, progress or ProgressCount(None)).run()


def reach_of_merge(plan: MergePlan, source: MergeSource) -> MergeReach:
    """Return the range of table rows that a merge may match or change."""
    pairs = PairMatcher(plan, source, "the table")
    return reach_of(plan, pairs.keys, pairs.ends, pairs.num_source)


class _MatchFinder:
    def __init__(
        self,
        snapshot: Snapshot,
        plan: MergePlan,
        source: MergeSource,
        progress: ProgressCount,
    ) -> None:
        self._progress = progress
        self._snapshot = snapshot
        self._plan = plan
        self._source = source
        self._pairs = PairMatcher(plan, source, snapshot.store.root)
        pairs = self._pairs
        self._reach = reach_of(plan, pairs.keys, pairs.ends, pairs.num_source)
        self._footers = FetchedFooters()

    def run(self) -> MergeMatches:
        snapshot, reach = self._snapshot, self._reach
        if reach.is_none:
            empty = snapshot.files(FILE_SCHEMA.names).slice(0, 0)
            none = SelectedRows(files=empty, positions=(), num_records=(), num_candidates=0)
            return self._matches(none, [], [], empty, DeletionBitmap())
        pruned = prune(snapshot, reach.file_predicate)
        candidates = pruned.files(FILE_SCHEMA.names)
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
        # Batches come in the order of the files, so equal numbers stand together.
        runs = compute.value_counts(files)
        numbers, counts = runs.field("values"), runs.field("counts").to_pylist()
        matching_files = candidates.take(numbers)
        spans = (
            list(zip(itertools.accumulate([0, *counts[:-1]]), counts, strict=True))
            if counts
            else []
        )
        known = pruned.num_records().take(numbers).to_pylist()
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
            reach=self._reach,
            num_files=self._snapshot.num_files,
        )

    def _batches(self, candidates: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the deciding columns, in batches that are large compared to the source's keys."""
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
        # If the keys' range pruned no file, it would filter few rows, at the cost of comparisons.
        spares = candidates.num_rows < self._snapshot.num_files or candidates.num_rows == 1
        spec = read_spec(
            self._snapshot,
            columns=self._plan.target_columns,
            hidden=(ROW_INDEX,),
            predicate=self._reach.row_predicate if spares else self._reach.always,
        )
        return make_numbered_tasks(self._snapshot, spec, candidates, footers=self._footers)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return arrow.concat_batches(batches)
