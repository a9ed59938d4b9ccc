"""Which clause of a merge concerns a row: of its kind, the first one whose condition is true.

Protocol: none; Spark's MERGE INTO
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from deltalog.deletion_vectors import DeletionBitmap, keep_mask
from deltalog.expressions import filter_mask
from deltalog.kernels import Array, compute

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deltalog.expressions import Expression


def first_true(
    conditions: Sequence[Expression | None],
    num_rows: int,
    scope: Callable[[Array | None, Expression], pa.RecordBatch],
    *,
    first: int = 0,
) -> Array:
    """The number of the first condition that is true, for each row; NULL if none is.

    Args:
        conditions: of the clauses in their order; None is always true.
        num_rows: how many rows there are.
        scope: returns what a condition is evaluated on, for the rows at some places; None is all.
        first: the number of the first condition.

    Cost: a condition is evaluated for the rows that no earlier clause has taken.
    """
    numbers = pa.nulls(num_rows, pa.int8())
    left: Array = None  # places that no clause has taken; None is all
    for number, condition in enumerate(conditions, first):
        if left is not None and not len(left):
            break
        code = pa.scalar(number, pa.int8())
        if condition is None:
            return compute.if_else(compute.is_null(numbers), code, numbers)
        holds = filter_mask(condition, scope(left, condition))
        mask = holds if left is None else _scatter(holds, left, num_rows)
        numbers = compute.if_else(mask, code, numbers)
        others = compute.indices_nonzero(compute.invert(holds)).cast(pa.int64())
        left = others if left is None else left.take(others)
    return numbers


def _scatter(values: Array, places: Array, count: int) -> Array:
    """A mask of `count` booleans: `values` at `places`, false elsewhere."""
    chosen = places.filter(values)
    mask = keep_mask(DeletionBitmap.from_arrow(chosen.cast(pa.int64())), 0, count)
    if mask is None:
        return pa.repeat(pa.scalar(value=False), count)
    return compute.invert(mask)
