"""Match the rows of a batch with the source, and choose the clause of each pair.

Owns the evaluation of pairs: keys or ranges are looked up, then the rest of the condition and the
clauses' conditions are evaluated on the remaining pairs. Does no I/O on the table, so that several
batches can be matched at once. Without keys, a few rows of the table are finished before the next
are begun: of the pairs of a row, one is kept. A table row that several source rows would
change is an error that shows both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from deltalog.deletion_vectors import DeletionBitmap, keep_mask
from deltalog.errors import AmbiguousMergeError
from deltalog.expressions import columns, evaluate, filter_mask, type_of
from deltalog.expressions.trees import conjunction
from deltalog.kernels import Array, arrow, compute
from deltalog.metadata_columns import FILE_NUMBER, ROW_INDEX
from deltalog.rows.merge.clauses import first_true
from deltalog.rows.merge.join import KeyIndex, cross
from deltalog.rows.merge.names import SOURCE, TARGET
from deltalog.rows.merge.ranges import RangeIndex
from deltalog.schema import to_arrow_type
from deltalog.schema.readable import readable_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.expressions import Expression
    from deltalog.rows.merge.plan import MergePlan, ResolvedClause
    from deltalog.rows.merge.source import MergeSource


Ends: TypeAlias = tuple[Array | None, Array | None]

_EXAMPLES: Final = 5
MOST_PAIRS: Final = 1 << 20
"""How many pairs are looked at together where a merge's condition has no keys."""


@dataclass(frozen=True, slots=True)
class BatchMatches:
    """The changed rows of one batch, in the order of the table."""

    files: Array
    rows: Array
    clause_numbers: Array
    sources: Array
    matched_files: Array
    matched_sources: Array


class PairMatcher:
    """Matches batches of the table with the source, whose keys it has indexed.

    Args:
        plan: of the merge.
        source: the source's rows.
        table: location of the table, for messages.

    Attributes:
        keys: the values of each key in the source rows that may match.
        ends: of the range of each of these rows, as in `MergeCondition.within`.
        num_source: the number of these rows.
    """

    def __init__(self, plan: MergePlan, source: MergeSource, table: str) -> None:
        self._plan = plan
        self._source = source
        self._table = table
        self._rows, keys, ends = _values_of(plan, source)
        self.keys: list[Array] = keys
        self.ends: Ends = ends
        self.num_source: int = len(self._rows)
        self._index = None
        if self.keys and self.num_source:
            self._index = KeyIndex(self.keys, [key.null_safe for key in plan.condition.keys])
        within = plan.condition.within
        self._ranges = None if within is None else (within.target, RangeIndex(*ends))

    @property
    def is_cheap(self) -> bool:
        """Whether a look-up has no fixed cost, so that small batches need not be joined."""
        if self._ranges is not None:
            return False
        return self._index is None or self._index.is_cheap

    def match(self, batch: pa.RecordBatch) -> BatchMatches:
        """Return the changed rows of one batch; called from several threads.

        Cost: memory for the pairs with equal keys; without keys, for `MOST_PAIRS` pairs (of a value
        and a range around it, or else all), or for those of one row if it has more.
        """
        edges = self._edges(batch) if self._is_cut else []
        if not edges:
            return self._match(batch)
        parts: list[BatchMatches] = []
        sources = DeletionBitmap()
        for start, end in pairwise([0, *edges, batch.num_rows]):
            found = self._match(batch.slice(start, end - start))
            sources |= DeletionBitmap.from_arrow(found.matched_sources)
            parts.append(replace(found, matched_sources=pa.array([], pa.int64())))
        files, rows, clause_numbers, from_rows, matched_files = (
            pa.concat_arrays([getattr(part, name) for part in parts])
            for name in ("files", "rows", "clause_numbers", "sources", "matched_files")
        )
        return BatchMatches(
            files=files,
            rows=rows,
            clause_numbers=clause_numbers,
            sources=from_rows,
            matched_files=compute.unique(matched_files),
            matched_sources=sources.to_arrow(),
        )

    def _edges(self, batch: pa.RecordBatch) -> list[int]:
        """Where to cut a batch, so that of no part too many pairs are looked at."""
        if self._ranges is not None:
            target, ranges = self._ranges
            edges = ranges.edges(evaluate(target, batch), MOST_PAIRS)
            if edges is not None:
                return edges
        step = max(1, MOST_PAIRS // max(1, self.num_source))
        may_match = self._may_match(batch)
        if may_match is None:
            return list(range(step, batch.num_rows, step))
        starts: list[int] = may_match.take(arrow.arange(0, len(may_match), step)).to_pylist()
        return starts[1:]

    def _may_match(self, batch: pa.RecordBatch) -> Array | None:
        """The rows that conditions on the table alone leave; None if the scan has filtered them."""
        condition = self._plan.condition
        if not (self._plan.not_matched_by_source and condition.target_only):
            return None
        mask = filter_mask(conjunction(condition.target_only), batch)
        return compute.indices_nonzero(mask).cast(pa.int64())

    @property
    def _is_cut(self) -> bool:
        """Whether pairs are not of equal keys, so that a batch may have any number of them."""
        plan = self._plan
        decides = plan.condition.residual or plan.matched or plan.not_matched_by_source
        return self._index is None and bool(decides)

    def _match(self, batch: pa.RecordBatch) -> BatchMatches:
        plan = self._plan
        positions, sources = self._pairs(batch)
        clause_numbers = self._clause_numbers(plan.matched, batch, positions, sources, first=0)
        acts = compute.is_valid(clause_numbers)
        where, clauses_of, from_rows = (
            array.filter(acts) for array in (positions, clause_numbers, sources)
        )
        where, clauses_of, from_rows = self._single(batch, where, clauses_of, from_rows)
        if plan.not_matched_by_source:
            alone = _without(positions, batch.num_rows)
            nobody = pa.nulls(len(alone), pa.int64())
            more = self._clause_numbers(
                plan.not_matched_by_source, batch, alone, nobody, first=len(plan.matched)
            )
            acts = compute.is_valid(more)
            where = pa.concat_arrays([where, alone.filter(acts)])
            clauses_of = pa.concat_arrays([clauses_of, more.filter(acts)])
            from_rows = pa.concat_arrays([from_rows, nobody.filter(acts)])
            order = compute.array_sort_indices(where)
            where, clauses_of, from_rows = (
                array.take(order) for array in (where, clauses_of, from_rows)
            )
        files, rows = batch.column(FILE_NUMBER), batch.column(ROW_INDEX)
        return BatchMatches(
            files=files.take(where),
            rows=rows.take(where),
            clause_numbers=clauses_of,
            sources=from_rows,
            matched_files=compute.unique(files.take(positions)),
            matched_sources=compute.unique(sources) if plan.not_matched else sources.slice(0, 0),
        )

    def _pairs(self, batch: pa.RecordBatch) -> tuple[Array, Array]:
        """Return the matching pairs: rows of the batch, ascending, and rows of the source."""
        condition = self._plan.condition
        if not self.num_source or condition.is_never:
            return pa.array([], pa.int64()), pa.array([], pa.int64())
        base = self._may_match(batch)
        rows = batch if base is None else batch.take(base)
        parts = []
        for positions, others in self._candidates(rows):
            where = positions if base is None else base.take(positions)
            parts.append(self._remaining(batch, where, self._rows.take(others)))
        where = pa.concat_arrays([pa.array([], pa.int64()), *(part for part, _ in parts)])
        sources = pa.concat_arrays([pa.array([], pa.int64()), *(part for _, part in parts)])
        if len(parts) > 1:
            order = compute.array_sort_indices(where)
            where, sources = where.take(order), sources.take(order)
        return where, sources

    def _candidates(self, rows: pa.RecordBatch) -> Iterator[tuple[Array, Array]]:
        """Yield pairs with equal keys, or of a value and a range around it, or else every pair."""
        plan, found = self._plan, None
        if self._ranges is not None:
            target, ranges = self._ranges
            found = ranges.match(evaluate(target, rows))
        if found is not None:
            yield found
        elif self._index is not None:
            yield self._index.match([evaluate(key.target, rows) for key in plan.condition.keys])
        elif self._is_cut:
            yield from cross(rows.num_rows, self.num_source, most=MOST_PAIRS)
        elif rows.num_rows:
            # Only inserts: every source row matches the first row already, and one match is enough.
            yield from cross(1, self.num_source, most=MOST_PAIRS)

    def _remaining(
        self, batch: pa.RecordBatch, where: Array, sources: Array
    ) -> tuple[Array, Array]:
        """Return the pairs for which the rest of the condition is true."""
        residual = self._plan.condition.residual
        if not residual or not len(where):
            return where, sources
        rest = conjunction(residual)
        scope = self._scope(batch, where, sources, [rest])
        mask = filter_mask(rest, scope)
        return where.filter(mask), sources.filter(mask)

    def _clause_numbers(
        self,
        clauses: Sequence[ResolvedClause],
        batch: pa.RecordBatch,
        where: Array,
        sources: Array,
        *,
        first: int,
    ) -> Array:
        """Return the clause of each row or pair; NULL if none concerns it."""

        def scope(places: Array | None, condition: Expression) -> pa.RecordBatch:
            if places is None:
                return self._scope(batch, where, sources, [condition])
            return self._scope(batch, where.take(places), sources.take(places), [condition])

        conditions = [clause.condition for clause in clauses]
        return first_true(conditions, len(where), scope, first=first)

    def _scope(
        self, batch: pa.RecordBatch, where: Array, sources: Array, expressions: Sequence[Any]
    ) -> pa.RecordBatch:
        """Return pairs as a batch of the structs `target` and `source`, with the used columns."""
        parts: dict[str, Array] = {}
        names = self._plan.columns(TARGET, expressions)
        if names:
            parts[TARGET] = batch.select(names).take(where).to_struct_array()
        names = self._plan.columns(SOURCE, expressions)
        if names:
            parts[SOURCE] = self._source.take(sources, names).to_struct_array()
        if not parts:
            parts[TARGET] = pa.nulls(len(where))
        return pa.RecordBatch.from_arrays(list(parts.values()), names=list(parts))

    def _single(
        self, batch: pa.RecordBatch, where: Array, clause_numbers: Array, sources: Array
    ) -> tuple[Array, Array, Array]:
        """Return each row once; raise if a row has several pairs, unless that changes nothing."""
        if len(where) < 2:
            return where, clause_numbers, sources
        again = compute.equal(where.slice(1), where.slice(0, len(where) - 1))
        if not again.true_count:
            return where, clause_numbers, sources
        repeats = pa.concat_arrays([pa.array([False]), again])
        if not self._plan.request.allows_repeats:
            raise self._ambiguous(batch, compute.unique(where.filter(repeats)), where, sources)
        first = compute.invert(repeats)
        return where.filter(first), clause_numbers.filter(first), sources.filter(first)

    def _ambiguous(
        self, batch: pa.RecordBatch, rows: Array, where: Array, sources: Array
    ) -> AmbiguousMergeError:
        names = self._plan.target_columns
        examples = []
        for row in rows.slice(0, _EXAMPLES).to_pylist():
            shown = readable_rows(batch.select(names).slice(row, 1))[0] if names else "a row"
            those = sources.filter(compute.equal(where, row)).slice(0, _EXAMPLES)
            found = readable_rows(self._source.take(those, self._source.schema.names))
            examples.append((shown, found))
        listed = "; ".join(f"{target} by {found}" for target, found in examples)
        return AmbiguousMergeError(
            f"cannot merge into {self._table}: {len(rows)} row(s) of the table would "
            f"be changed by several rows of the source each: {listed}; make the source's rows "
            "unique, or the condition narrower"
        )


def _values_of(plan: MergePlan, source: MergeSource) -> tuple[Array, list[Array], Ends]:
    """Return the numbers of the source rows that may match, their keys, and their ranges' ends."""
    condition, within = plan.condition, plan.condition.within
    only = list(condition.source_only)
    ends = (None, None) if within is None else (within.low, within.high)
    wanted = [*(key.source for key in condition.keys), *(end for end in ends if end is not None)]
    names = sorted({path[0] for part in (*wanted, *only) for path in columns(part)})
    rows: list[Array] = []
    found: list[list[Array]] = [[] for _ in wanted]
    for start, batch in source.batches(names):
        here = arrow.arange(start, start + batch.num_rows)
        picked = batch
        if only:
            mask: Any = filter_mask(conjunction(only), batch)
            here, picked = here.filter(mask), batch.filter(mask)
        rows.append(here)
        for parts, part in zip(found, wanted, strict=True):
            parts.append(evaluate(part, picked))
    if not rows:
        rows = [pa.array([], pa.int64())]
        found = [[pa.array([], _kind(part, source))] for part in wanted]
    values = [pa.concat_arrays(parts) for parts in found]
    count = len(condition.keys)
    of_ends = iter(values[count:])
    low, high = (None if end is None else next(of_ends) for end in ends)
    return pa.concat_arrays(rows), values[:count], (low, high)


def _kind(expression: Expression, source: MergeSource) -> Any:
    return to_arrow_type(type_of(expression, source.schema))


def _without(positions: Array, num_rows: int) -> Array:
    """Return the row numbers below `num_rows` that are not in `positions`."""
    taken = keep_mask(DeletionBitmap.from_arrow(positions), 0, num_rows)
    if taken is None:
        return arrow.arange(0, num_rows)
    return compute.indices_nonzero(taken).cast(pa.int64())
