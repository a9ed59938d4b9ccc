"""Match the rows of a batch with the source, and choose the clause of each pair.

A pair is a table row and a source row. An index of keys or ranges finds candidate pairs. The rest
of the condition and then the clauses' conditions are evaluated on these pairs. Without keys, a
batch is processed in slices, to limit the number of pairs in memory. If several source rows would
change a table row, the error shows both sides. This module does no I/O on the table, so that
several batches can be matched in parallel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.kernels import FALSE, TRUE, Array, arrow, compute
from deltalog.errors import AmbiguousMergeError
from deltalog.expressions import columns, evaluate, filter_mask, type_of
from deltalog.expressions.trees import conjunction
from deltalog.operations.changes.merge.plan import MergePlan, ResolvedClause, first_true
from deltalog.operations.changes.merge.source import SOURCE, TARGET, MergeSource
from deltalog.protocol.deletion_vectors import DeletionBitmap, keep_mask
from deltalog.schema import to_arrow_type
from deltalog.schema.check import readable_rows, shown_values
from deltalog.schema.metadata_columns import FILE_NUMBER, ROW_INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalog.expressions import Expression

Ends: TypeAlias = tuple[Array | None, Array | None]

_EXAMPLES: Final = 5
MOST_PAIRS: Final = 1 << 20
"""The maximum number of pairs of rows to evaluate at a time if a merge condition has no keys."""


@dataclass(frozen=True, slots=True)
class BatchMatches:
    """The changed rows of one batch, in the order of the table.

    `files`, `rows`, `clause_numbers` and `sources` have one value per changed row: its file number,
    its position in the file, its clause, and the number of its source row. `matched_files` and
    `matched_sources` are the distinct files and source rows that match, changed or not.
    """

    files: Array
    rows: Array
    clause_numbers: Array
    sources: Array
    matched_files: Array
    matched_sources: Array


class PairMatcher:
    """Matches batches of the table with the source, by an index of the source's keys or ranges.

    Args:
        plan: plan of the merge.
        source: the source's rows.
        table: location of the table, for messages.

    Attributes:
        rows: the numbers of the source rows that may match.
        keys: for each key, its values in these rows.
        ends: the lower and upper bounds of the ranges (`MergeCondition.within`) in these rows.
        num_source: the number of source rows that may match.
    """

    def __init__(self, plan: MergePlan, source: MergeSource, table: str) -> None:
        self._plan = plan
        self._source = source
        self._table = table
        rows, keys, ends = _values_of(plan, source)
        self.rows: Array = rows
        self.keys: list[Array] = keys
        self.ends: Ends = ends
        self.num_source: int = len(self.rows)

    # The indexes are made for the first batch, because a client whose tasks match rows needs none,
    # and neither does a merge whose keys are in no file.

    @cached_property
    def index(self) -> KeyIndex | None:
        """The index of the keys; None without keys or source rows."""
        if not self.keys or not self.num_source:
            return None
        # A key index of the table leaves few rows to look up, which a direct-address table of the
        # keys' whole range would not pay for.
        has_key = self._plan.configuration.properties.key_index_columns is not None
        is_wide = not has_key or self.num_source > _FEW_SOURCE_ROWS
        null_safe = [key.null_safe for key in self._plan.condition.keys]
        return KeyIndex(self.keys, null_safe, is_wide=is_wide)

    @cached_property
    def _ranges(self) -> tuple[Expression, RangeIndex] | None:
        within = self._plan.condition.within
        return None if within is None else (within.target, RangeIndex(*self.ends))

    @property
    def is_cheap(self) -> bool:
        """Whether a look-up has no fixed cost, so that small batches need not be joined."""
        if self._ranges is not None:
            return False
        return self.index is None or self.index.is_cheap

    def match(self, batch: pa.RecordBatch) -> BatchMatches:
        """Return the changed rows of one batch; thread-safe.

        Cost: memory for all pairs with equal keys. Without keys, memory for `MOST_PAIRS` candidate
        pairs, or for the candidates of one table row if these are more.
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
        """Return the row numbers at which to split a batch, so that no part has too many pairs."""
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
        """Return the rows for which the table-only conditions are true.

        None means all rows, because the scan has filtered them already.
        """
        condition = self._plan.condition
        if not (self._plan.not_matched_by_source and condition.target_only):
            return None
        mask = filter_mask(conjunction(condition.target_only), batch)
        return compute.indices_nonzero(mask).cast(pa.int64())

    @property
    def _is_cut(self) -> bool:
        """Whether to split batches, because every row may match every source row."""
        plan = self._plan
        decides = plan.condition.residual or plan.matched or plan.not_matched_by_source
        return self.index is None and bool(decides)

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
        """Return the matching pairs as two arrays of row numbers: of the batch and of the source.

        The row numbers of the batch ascend.
        """
        condition = self._plan.condition
        if not self.num_source or condition.is_never:
            return pa.array([], pa.int64()), pa.array([], pa.int64())
        base = self._may_match(batch)
        rows = batch if base is None else batch.take(base)
        parts = []
        for positions, others in self._candidates(rows):
            where = positions if base is None else base.take(positions)
            parts.append(self._remaining(batch, where, self.rows.take(others)))
        where = pa.concat_arrays([pa.array([], pa.int64()), *(part for part, _ in parts)])
        sources = pa.concat_arrays([pa.array([], pa.int64()), *(part for _, part in parts)])
        if len(parts) > 1:
            order = compute.array_sort_indices(where)
            where, sources = where.take(order), sources.take(order)
        return where, sources

    def _candidates(self, rows: pa.RecordBatch) -> Iterator[tuple[Array, Array]]:
        """Yield candidate pairs: with equal keys, or without keys by ranges, or else every pair."""
        plan, found = self._plan, None
        if self._ranges is not None:
            target, ranges = self._ranges
            found = ranges.match(evaluate(target, rows))
        if found is not None:
            yield found
        elif self.index is not None:
            yield self.index.match([evaluate(key.target, rows) for key in plan.condition.keys])
        elif self._is_cut:
            yield from cross(rows.num_rows, self.num_source, most=MOST_PAIRS)
        elif rows.num_rows:
            # Here, the merge only inserts, and every table row matches every source row. A source
            # row is not inserted if it matches at least one table row, so pairs with the first
            # table row suffice.
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
        """Return the number of each pair's clause; NULL if no clause applies."""

        def scope(places: Array | None, condition: Expression) -> pa.RecordBatch:
            if places is None:
                return self._scope(batch, where, sources, [condition])
            return self._scope(batch, where.take(places), sources.take(places), [condition])

        conditions = [clause.condition for clause in clauses]
        return first_true(conditions, len(where), scope, first=first)

    def _scope(
        self, batch: pa.RecordBatch, where: Array, sources: Array, expressions: Sequence[Any]
    ) -> pa.RecordBatch:
        """Return pairs as a batch with the structs `target` and `source`.

        The structs have only the columns that the expressions read.
        """
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
        """Return one pair per table row.

        Raises:
            AmbiguousMergeError: a row has several pairs, and they may have different results.
        """
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
            examples.append(shown_values((shown, found)))
        listed = "; ".join(f"{target} by {found}" for target, found in examples)
        return AmbiguousMergeError(
            f"cannot merge into {self._table}: {len(rows)} row(s) of the table would "
            f"be changed by several rows of the source each: {listed}; make the source's rows "
            "unique, or the condition narrower"
        )


def _values_of(plan: MergePlan, source: MergeSource) -> tuple[Array, list[Array], Ends]:
    """Return the numbers of the source rows that may match, their keys, and their range bounds."""
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


# --- Equi-join: find the rows of two sides that have equal keys


_MAX_PLACES: Final = 1 << 29
_WINDOW_PLACES: Final = 1 << 25
_FEW_SOURCE_ROWS: Final = 100_000


class KeyIndex:
    """An index of the keys of one side's rows.

    Args:
        columns: the parts of the key, with one value per row.
        null_safe: for each part, whether NULL equals NULL (`<=>`) or equals nothing (`=`).
        is_wide: whether many rows will be looked up, so that direct-address tables pay.
    """

    def __init__(
        self, columns: Sequence[Array], null_safe: Sequence[bool], *, is_wide: bool = True
    ) -> None:
        self._steps: list[tuple[Array, Array | None]] = []
        self._ranges: list[_Range | None] = []
        codes: Array = None
        for values, safe in zip(columns, null_safe, strict=True):
            plain = _normal(values)
            distinct = compute.unique(plain)
            if not safe:
                distinct = distinct.drop_null()
            code = _codes(plain, distinct)
            pairs = None
            if codes is not None:
                combined = _combined(codes, code, distinct)
                pairs = compute.unique(combined).drop_null()
                code = _codes(combined, pairs)
            self._steps.append((distinct, pairs))
            self._ranges.append(_Range.of(distinct) if is_wide else None)
            codes = code
        rows = compute.indices_nonzero(codes.is_valid()).cast(pa.int64())
        groups = codes.drop_null()
        # Both `unique` and `value_counts` return keys in the order of their first rows.
        counts = compute.value_counts(groups)
        self.num_keys: int = len(counts)
        self._rows = rows
        self._lists: Array = None
        if self.num_keys < len(groups):
            order = compute.array_sort_indices(groups)
            ends = compute.cumulative_sum(counts.field("counts"))
            offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
            self._lists = pa.LargeListArray.from_arrays(offsets, rows.take(order))

    def match(self, columns: Sequence[Array]) -> tuple[Array, Array]:
        """Return all pairs of rows with equal keys.

        Args:
            columns: the parts of the other side's keys, with one value per row.

        Returns:
            For each pair, the row number of the other side (ascending), and that of the indexed
            side.
        """
        base, codes = self._look_up(columns)
        positions = compute.indices_nonzero(codes.is_valid()).cast(pa.int64())
        groups = codes.drop_null()
        if base is not None:
            positions = base.take(positions)
        if self._lists is None:
            return positions, self._rows.take(groups)
        found = self._lists.take(groups)
        parents = compute.list_parent_indices(found)
        return positions.take(parents), found.flatten()

    def codes(self, columns: Sequence[Array]) -> Array:
        """Return the number of each row's key, from 0 on; NULL if the index lacks the key.

        Only for an index that is not wide.

        Args:
            columns: see `match`.
        """
        return self._look_up(columns)[1]

    @property
    def is_cheap(self) -> bool:
        """Whether a look-up has no fixed cost, so that small batches need not be joined."""
        return len(self._steps) == 1 and self._ranges[0] is not None and self._ranges[0].is_small

    def _look_up(self, columns: Sequence[Array]) -> tuple[Array | None, Array]:
        """Look up the key number of each row; NULL if the index lacks its key.

        Returns:
            The rows that were looked up (None means all rows), and the key number of each.
        """
        base: Array | None = None
        for values, known in zip(columns, self._ranges, strict=True):
            if known is not None:
                base = known.rows(values)
                columns = [column.take(base) for column in columns]
                break
        if self.is_cheap and self._ranges[0] is not None:
            return base, self._ranges[0].codes(columns[0])
        codes: Array = None
        for (distinct, pairs), values in zip(self._steps, columns, strict=True):
            code = _codes(_normal(values), distinct)
            if pairs is not None:
                code = _codes(_combined(codes, code, distinct), pairs)
            codes = code
        return base, codes


class _Range:
    """A direct-address table for integers in a narrow range, many times faster than a hash table.

    Args:
        distinct: the distinct integers, without NULL.
        low: the smallest integer.
        high: the largest integer.

    Attributes:
        is_small: whether the table also contains the number of each key. If False, it has only one
            bit per integer of the range.
    """

    def __init__(self, distinct: Array, low: int, high: int) -> None:
        self._low, self._high = (pa.scalar(end, distinct.type) for end in (low, high))
        self._first = pa.scalar(low, pa.int64())
        places = self._places(distinct)
        self.is_small = high - low < _WINDOW_PLACES
        # To limit the memory, process the range in windows: for each integer of the range, the
        # kernel needs four bytes, but the resulting bitmap needs only one bit.
        windows = [
            _placed(places, first, min(_WINDOW_PLACES, high - low + 1 - first))
            for first in range(0, high - low + 1, _WINDOW_PLACES)
        ]
        if self.is_small:
            (self._codes,) = windows
        self._bits = pa.concat_arrays([window.is_valid() for window in windows])

    @classmethod
    def of(cls, distinct: Array) -> _Range | None:
        """Return a table of these values; None if they are not integers or their range is wide."""
        if not pa.types.is_integer(distinct.type) or not len(distinct) or distinct.null_count:
            return None
        ends = compute.min_max(distinct).as_py()
        if ends["max"] - ends["min"] >= _MAX_PLACES:
            return None
        return cls(distinct, ends["min"], ends["max"])

    def rows(self, values: Array) -> Array:
        """Return the numbers of the rows whose value is in the table."""
        inside = compute.and_(
            compute.greater_equal(values, self._low), compute.less_equal(values, self._high)
        )
        rows = None
        if inside.null_count or inside.true_count < len(values):
            inside = compute.fill_null(inside, FALSE)
            rows = compute.indices_nonzero(inside).cast(pa.int64())
            values = values.filter(inside)
        there = self._bits.take(self._places(values))
        found = compute.indices_nonzero(there).cast(pa.int64())
        return found if rows is None else rows.take(found)

    def codes(self, values: Array) -> Array:
        """Return the key number of each value; all values must be in the table."""
        return self._codes.take(self._places(values))

    def _places(self, values: Array) -> Array:
        return compute.subtract(values.cast(pa.int64()), self._first)


def cross(num_rows: int, num_others: int, *, most: int) -> Iterator[tuple[Array, Array]]:
    """Yield every pair of rows of two sides, about `most` pairs at a time."""
    if not num_rows or not num_others:
        return
    step = max(1, most // num_rows)
    for first in range(0, num_others, step):
        count = min(step, num_others - first)
        numbers = arrow.arange(0, num_rows * count)
        positions = compute.divide(numbers, count)
        others = compute.add(compute.subtract(numbers, compute.multiply(positions, count)), first)
        yield positions, others


def _placed(places: Array, first: int, count: int) -> Array:
    """Return for each of the `count` places from `first` on its index in `places`, or NULL."""
    inside = compute.subtract(places, first)
    near = compute.and_(compute.greater_equal(inside, 0), compute.less(inside, count))
    # Replace places outside the range by an extra last place, which is cut off. Removing them
    # here would change the indices of the other places.
    inside = compute.if_else(near, inside, count)
    options = compute.InversePermutationOptions(max_index=count, output_type=pa.int32())
    return compute.call_function("inverse_permutation", [inside], options).slice(0, count)


def _normal(values: Array) -> Array:
    """Replace -0.0 by 0.0, because `unique` and `index_in` compare the bits of floats."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_floating(values.type):
        return compute.add(values, pa.scalar(0.0, values.type))
    return values


def _codes(values: Array, distinct: Array) -> Array:
    return compute.index_in(values, value_set=distinct).cast(pa.int64())


def _combined(codes: Array, more: Array, distinct: Array) -> Array:
    """Combine two numbers per row into one unique number; NULL if either is NULL."""
    return compute.add(compute.multiply(codes, max(1, len(distinct))), more)


# --- Range join: find the source's ranges that contain a value of the table


_FEW: Final = 16
"""The maximum number of ranges that are compared with every value.

For more ranges, it is faster to sort the values.
"""
_DENSE: Final = 4
"""If at least 1/`_DENSE` of all pairs match, evaluating every pair is as fast as the index."""
_LEAST: Final = 32
"""The maximum number of values that are compared with every range.

For more values, it is faster to sort the ranges.
"""


class RangeIndex:
    """An index of ranges, one per row of one side.

    A range is empty if a bound is NULL or the lower bound is greater than the upper bound.

    Args:
        lows: the lower bound of each range, inclusive; None if the ranges have no lower bounds.
        highs: the upper bound of each range, inclusive; None if the ranges have no upper bounds.
            At most one of `lows` and `highs` may be None.
    """

    def __init__(self, lows: Array | None, highs: Array | None) -> None:
        ends = [each for each in (lows, highs) if each is not None]
        holds = compute.is_valid(ends[0])
        if lows is not None and highs is not None:
            holds = compute.less_equal(lows, highs)
        rows = compute.indices_nonzero(holds).cast(pa.int64())
        self._num_rows = len(ends[0])
        self._rows: Array = rows
        self._lows: Array | None = None if lows is None else lows.take(rows)
        self._highs: Array | None = None if highs is None else highs.take(rows)

    def match(self, values: Array) -> tuple[Array, Array] | None:
        """Return all pairs of a value and a range that contains it.

        Args:
            values: values of the other side, one per row.

        Returns:
            For each pair, the row number of the value (ascending), and that of the range. None if
            there are so many pairs that evaluating every pair is as fast.

        Cost: if few ranges overlap the span of the values, compares these ranges with all values.
        Otherwise sorts the values together with the lower bounds, and again with the upper bounds.
        Memory for the pairs.
        """
        if self._is_cheap_to_cross(len(values)):
            return None
        near, members = self._members(values)
        if self._is_dense(members.num_pairs, len(values)):
            return None
        pairs = members.pairs()
        by_row = compute.array_sort_indices(pairs.rows)  # stable, so ranges remain ascending
        return pairs.rows.take(by_row), self._rows.take(near).take(pairs.ranges.take(by_row))

    def edges(self, values: Array, most: int) -> list[int] | None:
        """Return the positions at which to split the values into parts of at most `most` pairs.

        A part with a single value may have more pairs. None if evaluating every pair is as fast.
        """
        waiting, stops = [(0, len(values))], []
        while waiting:
            start, stop = waiting.pop()
            count = stop - start
            if self._is_cheap_to_cross(count):
                step = max(1, most // self._num_rows)
                stops += [*range(start + step, stop, step), stop]
                continue
            num_pairs = 0
            if count > 1 and count * len(self._rows) > most:
                num_pairs = self._members(values.slice(start, count))[1].num_pairs
            if count == len(values) and self._is_dense(num_pairs, count):
                return None
            if num_pairs > most:
                middle = start + count // 2
                waiting += [(middle, stop), (start, middle)]
            else:
                stops.append(stop)
        return stops[:-1]

    def _is_cheap_to_cross(self, num_values: int) -> bool:
        return num_values < _LEAST and len(self._rows) > _FEW

    def _is_dense(self, num_pairs: int, num_values: int) -> bool:
        return num_pairs * _DENSE > num_values * self._num_rows

    def _members(self, values: Array) -> tuple[Array, _Members]:
        """Return the numbers of the ranges that overlap the values' span, and their members."""
        near = self._near(values)
        if len(near) <= _FEW:
            return near, self._compared(values, near)
        return near, self._sorted(values, near)

    def _compared(self, values: Array, near: Array) -> _Members:
        """Find the values of each range by comparing all values with it; fast for few ranges."""
        rows: list[Array] = [pa.array([], pa.int64())]
        for number in near.to_pylist():
            tests: list[Array] = []
            if self._lows is not None:
                tests.append(compute.greater_equal(values, self._lows[number]))
            if self._highs is not None:
                tests.append(compute.less_equal(values, self._highs[number]))
            rows.append(compute.indices_nonzero(reduce(compute.and_, tests)).cast(pa.int64()))
        counts: Array = pa.array(map(len, rows[1:]), pa.int64())
        starts = compute.subtract(compute.cumulative_sum(counts), counts)
        return _Members(pa.concat_arrays(rows), starts, counts)

    def _sorted(self, values: Array, near: Array) -> _Members:
        """Find the values of each range by sorting the values, so that they are adjacent."""
        order: Array = None
        starts: Array = pa.repeat(0, len(near))
        counts: Array = starts  # replaced below, because `_lows` or `_highs` exists
        if self._lows is not None:
            order, starts = _ranked(values, self._lows.take(near), with_equal=False)
            counts = compute.subtract(len(values) - values.null_count, starts)
        if self._highs is not None:
            order, stops = _ranked(values, self._highs.take(near), with_equal=True)
            counts = compute.subtract(stops, starts)
        return _Members(order, starts, counts)

    def _near(self, values: Array) -> Array:
        """Return the numbers of the ranges that overlap the span from minimum to maximum value."""
        ends = compute.min_max(values)
        reaches: Array = pa.repeat(TRUE, len(self._rows))
        if self._lows is not None:
            reaches = compute.less_equal(self._lows, ends["max"])
        if self._highs is not None:
            enough = compute.greater_equal(self._highs, ends["min"])
            reaches = compute.and_(reaches, enough)
        return compute.indices_nonzero(reaches)


class _Pairs(NamedTuple):
    """For each pair, the row number of the value, and the number of the range (ascending)."""

    rows: Array
    ranges: Array


@dataclass(frozen=True, slots=True)
class _Members:
    """The values in each range.

    Args:
        order: row numbers of values; the values of each range are adjacent.
        starts: for each range, its first place in `order`.
        counts: for each range, its number of values.
    """

    order: Array
    starts: Array
    counts: Array

    @property
    def num_pairs(self) -> int:
        """The number of pairs of a value and a range that contains it."""
        return compute.sum(self.counts).as_py() or 0

    def pairs(self) -> _Pairs:
        """Return all pairs of a value and a range that contains it."""
        stops = compute.cumulative_sum(self.counts)
        offsets: Any = pa.concat_arrays([pa.array([0], pa.int64()), stops])
        numbers: Array = arrow.arange(0, self.num_pairs)
        ranges = compute.list_parent_indices(pa.LargeListArray.from_arrays(offsets, numbers))
        shifts = compute.subtract(self.starts, offsets.slice(0, len(stops)))
        return _Pairs(self.order.take(compute.add(numbers, shifts.take(ranges))), ranges)


def _ranked(values: Array, ends: Array, *, with_equal: bool) -> tuple[Array, Array]:
    """Sort the values, and count for each bound the values that are less than it.

    Args:
        values: the values in any order.
        ends: the bounds in any order, without NULL.
        with_equal: whether to count values that equal the bound, too.

    Returns:
        The row numbers of the sorted values, and the count of each bound.
    """
    # The sort is stable, so the order of `parts` decides whether a value precedes an equal bound.
    parts = [values, ends] if with_equal else [ends, values]
    order = compute.array_sort_indices(pa.concat_arrays(parts)).cast(pa.int64())
    count = len(parts[0])
    is_first = compute.less(order, count)
    is_end = compute.invert(is_first) if with_equal else is_first
    is_value = compute.invert(is_end)
    before = compute.cumulative_sum(is_value.cast(pa.int64())).filter(is_end)
    numbers = order.filter(is_end)  # positions of the bounds in the concatenated input
    of_values = order.filter(is_value)
    if not with_equal:
        of_values = compute.subtract(of_values, count)
    return of_values, before.take(compute.array_sort_indices(numbers))
