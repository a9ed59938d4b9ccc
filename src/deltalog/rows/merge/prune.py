"""Predicates that prune the table's files for a merge, made from the source's keys.

Few distinct keys become an `IN` list, many become ranges with gaps. Conditions on the table's
columns alone are added.

Protocol: Per-file Statistics, Partition Values
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.expressions import Expression, Literal, columns, type_of
from deltalog.expressions.literals import from_scalar
from deltalog.expressions.nodes import And, Comparison, In, IsNull, Or
from deltalog.expressions.trees import all_of
from deltalog.kernels import Array, arrow, compute
from deltalog.rows.merge.names import without_side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.rows.merge.condition import Key
    from deltalog.rows.merge.pairs import Ends
    from deltalog.rows.merge.plan import MergePlan
    from deltalog.schema import DataType


_FEW_KEYS: Final = 1_000
_MANY_KEYS: Final = 20_000
_MAX_RANGES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReach:
    """Predicates over the table's columns, true for all rows that a merge may match or change.

    Args:
        file_predicate: prunes files; None keeps every row.
        row_predicate: filters rows; the same or looser, but cheap to evaluate per row.
        always: the part that does not depend on the source's keys.
        is_none: no row can match or change.
    """

    file_predicate: Expression | None
    row_predicate: Expression | None
    always: Expression | None = None
    is_none: bool = False


def reach_of(
    plan: MergePlan, keys: Sequence[Array], ends: Ends, num_source_rows: int
) -> MergeReach:
    """Return the predicates that limit what a merge reads of the table.

    Args:
        plan: of the merge.
        keys: the values of each key in the source rows that may match.
        ends: of the range of each of these rows, as in `MergeCondition.within`.
        num_source_rows: the number of these rows.
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


def _any_of(parts: Sequence[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _is_partition(key: Key, plan: MergePlan) -> bool:
    partitioned = set(plan.configuration.partition_columns)
    return {path[0] for path in columns(key.target)} <= partitioned


def _is_empty(key: Key, values: Array) -> bool:
    """Whether all values are NULL and the key is not null-safe, so that no row matches."""
    return not key.null_safe and values.null_count == len(values)


def _claims(
    key: Key, values: Array, plan: MergePlan
) -> tuple[Expression | None, Expression | None]:
    """Return predicates on the table's side of a key, for files and for rows."""
    data_type = type_of(key.target, plan.configuration.schema)
    partitioned = _is_partition(key, plan)
    if pa.types.is_floating(values.type) and compute.any(compute.is_nan(values)).as_py():
        return None, None
    try:
        found = _of_values(key.target, values, data_type, partitioned=partitioned)
    except (pa.ArrowException, ValueError, OverflowError):
        # Python cannot represent a value, such as a year after 9999: prune nothing.
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
    """Return predicates on the table's column: it is in no range if it is outside of all."""
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
            with suppress(pa.ArrowException, ValueError, OverflowError):  # as for keys
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
    """Return ranges that cover all values, split at the widest gaps."""
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
    # A gap that is not much wider than the mean is unlikely to prune a file.
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
    """Whether values are a count of days or of parts of a second."""
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
