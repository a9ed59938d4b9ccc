"""Rows of two sides that have equal keys.

Owns the look-up: each distinct key of the source is a number, and a row of the target finds the
number of its key. Only key columns are held. Floating-point zeros are one value and so are NaNs,
as in Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# pyarrow's stubs leave most kernels untyped, so arrays are too.
Array = Any

_compute: Final[Any] = pc
_CROSS_PAIRS: Final = 1 << 20


class KeyIndex:
    """The keys of all rows of one side.

    Args:
        columns: the parts of the key, row by row.
        null_safe: for each part, whether NULL equals NULL; otherwise it equals nothing.
    """

    def __init__(self, columns: Sequence[Array], null_safe: Sequence[bool]) -> None:
        self._steps: list[tuple[Array, Array | None]] = []
        codes: Array = None
        for values, safe in zip(columns, null_safe, strict=True):
            plain = _normal(values)
            distinct = _compute.unique(plain)
            if not safe:
                distinct = distinct.drop_null()
            code = _codes(plain, distinct)
            pairs = None
            if codes is not None:
                combined = _combined(codes, code, distinct)
                pairs = _compute.unique(combined).drop_null()
                code = _codes(combined, pairs)
            self._steps.append((distinct, pairs))
            codes = code
        rows = _compute.indices_nonzero(codes.is_valid()).cast(pa.int64())
        groups = codes.drop_null()
        # `unique` numbers keys in the order of their first rows, and so does `value_counts`.
        counts = _compute.value_counts(groups)
        self.num_keys = len(counts)
        self._rows = rows
        self._lists: Array = None
        if self.num_keys < len(groups):
            order = _compute.array_sort_indices(groups)
            ends = _compute.cumulative_sum(counts.field("counts"))
            offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
            self._lists = pa.LargeListArray.from_arrays(offsets, rows.take(order))

    def match(self, columns: Sequence[Array]) -> tuple[Array, Array]:
        """All pairs of equal keys.

        Args:
            columns: the parts of the other side's keys, row by row.

        Returns:
            Row numbers of the other side, ascending, and of this one.
        """
        codes: Array = None
        for (distinct, pairs), values in zip(self._steps, columns, strict=True):
            code = _codes(_normal(values), distinct)
            if pairs is not None:
                code = _codes(_combined(codes, code, distinct), pairs)
            codes = code
        positions = _compute.indices_nonzero(codes.is_valid()).cast(pa.int64())
        groups = codes.drop_null()
        if self._lists is None:
            return positions, self._rows.take(groups)
        found = self._lists.take(groups)
        parents = _compute.list_parent_indices(found)
        return positions.take(parents), found.flatten()


def cross(
    num_rows: int, num_others: int, *, most: int = _CROSS_PAIRS
) -> Iterator[tuple[Array, Array]]:
    """Every pair of two sides' rows, some at a time."""
    if not num_rows or not num_others:
        return
    step = max(1, most // num_rows)
    for first in range(0, num_others, step):
        count = min(step, num_others - first)
        numbers: Any = pa.arange(0, num_rows * count)  # type: ignore[attr-defined]  # newer than the stubs
        positions = _compute.divide(numbers, count)
        others = _compute.add(
            _compute.subtract(numbers, _compute.multiply(positions, count)), first
        )
        yield positions, others


def _normal(values: Array) -> Array:
    """Values of which equal ones have the same bits."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_floating(values.type):
        return _compute.add(values, pa.scalar(0.0, values.type))
    return values


def _codes(values: Array, distinct: Array) -> Array:
    return _compute.index_in(values, value_set=distinct).cast(pa.int64())


def _combined(codes: Array, more: Array, distinct: Array) -> Array:
    """One number for two; NULL where either is."""
    return _compute.add(_compute.multiply(codes, max(1, len(distinct))), more)
