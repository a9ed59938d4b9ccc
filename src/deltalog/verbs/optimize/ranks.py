"""Ranks: map the values of a column to small integers in the same order, evenly spread.

The bounds between ranks are quantiles of a sample, so that skewed values are spread, too. A bad
sample makes data skipping less effective, but never loses rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import is_opaque
from deltalog.kernels import arrow, compute, pc
from deltalog.schema import PrimitiveType, canonical_path_of, find_field
from deltalog.schema.types import VOID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deltalog.schema import StructType
    from deltalog.schema.columns import Path

SAMPLE_ROWS: Final = 256 * 1024
# Newer than PyArrow 22; its kernels cover numbers, times and strings.
_search_sorted: Final[Any] = getattr(pc, "search_sorted", None)


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of one column; the rank of a value is the number of its range, that of NULL is 0.

    Args:
        path: of the column.
        bounds: the smallest value of each range but the first, ascending.
    """

    path: Path
    bounds: pa.Array[Any]

    @classmethod
    def of_sample(cls, path: Path, sample: pa.Array[Any], num_ranks: int) -> Ranges:
        """Return ranges that hold equal shares of a sample.

        Args:
            path: of the column.
            sample: of its values.
            num_ranks: the greatest number of ranks, including that of NULL.
        """
        values: Any = compute.drop_null(_comparable(sample))
        values = values.take(compute.array_sort_indices(values))
        wanted = num_ranks - 2
        if len(values) > wanted:
            places = [(number + 1) * len(values) // (wanted + 1) for number in range(wanted)]
            values = values.take(pa.array(places, pa.int64()))
        bounds = compute.unique(values)
        return cls(path, bounds)

    def ranks(self, batch: pa.RecordBatch) -> pa.Array[Any]:
        """Return the rank of each row, `int64`."""
        values: Any = _comparable(column_at(batch, self.path))
        found = (
            ranks_by_sorting(self.bounds, values)
            if _search_sorted is None
            else _search_sorted(self.bounds, values, side="right")
        )
        ranks = compute.add(found.cast(pa.int64()), 1)
        result: pa.Array[Any] = compute.fill_null(ranks, 0)
        return result


def ranks_by_sorting(bounds: Any, values: Any) -> Any:
    """Count the ascending `bounds` that are at most each value; NULL for NULL."""
    both = pa.concat_arrays([bounds, values])
    order = compute.array_sort_indices(both)
    is_bound = compute.less(order, pa.scalar(len(bounds), pa.uint64()))
    counts = compute.cumulative_sum(is_bound.cast(pa.int64()))
    places = compute.array_sort_indices(order)
    found = counts.take(places).slice(len(bounds))
    return compute.if_else(values.is_valid(), found, pa.scalar(None, pa.int64()))


def sample_ranges(
    batches: Iterable[pa.RecordBatch], paths: Sequence[Path], num_rows: int, num_ranks: int
) -> list[Ranges]:
    """Return the ranges of some columns, from every n-th row of the batches.

    Args:
        batches: with these columns.
        paths: of the columns.
        num_rows: of all batches, about.
        num_ranks: how many ranks a column may have.
    """
    step = max(1, num_rows // SAMPLE_ROWS)
    samples: list[list[Any]] = [[] for _ in paths]
    first = 0
    for batch in batches:
        # The step continues across batches.
        start = -first % step
        first += batch.num_rows
        if start >= batch.num_rows:
            continue
        some = batch
        if step > 1:
            some = batch.take(arrow.arange(start, batch.num_rows, step))
        for path, sample in zip(paths, samples, strict=True):
            sample.append(column_at(some, path))
    return [
        Ranges.of_sample(path, pa.concat_arrays(sample), num_ranks)
        for path, sample in zip(paths, samples, strict=True)
        if sample
    ]


def column_at(batch: pa.RecordBatch, path: Path) -> Any:
    """Return a column or a field of a struct; the field is NULL if the struct is."""
    column: Any = batch.column(path[0])
    return column if len(path) == 1 else pc.struct_field(column, list(path[1:]))


def sortable_paths(
    schema: StructType, columns: Iterable[str | Path], partition_columns: Sequence[str], what: str
) -> tuple[Path, ...]:
    """Return the columns to sort by, in the schema's spelling.

    Raises:
        InvalidInputError: there are none; or one does not exist, is repeated, is a partition
            column, or has a type without an order.
    """
    paths = tuple(canonical_path_of(schema, column) for column in columns)
    if not paths:
        raise InvalidInputError(f"cannot {what} by no column: name one at least")
    for number, path in enumerate(paths):
        name = ".".join(path)
        field = find_field(schema, path)
        if path in paths[:number]:
            raise InvalidInputError(f"cannot {what} by {name!r} twice")
        if path[0] in partition_columns:
            raise InvalidInputError(
                f"cannot {what} by {name!r}: it is a partition column, every file has one value"
            )
        kind = field.type
        if not isinstance(kind, PrimitiveType) or kind == VOID or is_opaque(kind):
            raise InvalidInputError(
                f"cannot {what} by {name!r}: values of type {kind} have no order"
            )
    return paths


def _comparable(values: Any) -> Any:
    """Cast values to a type that Arrow can search, keeping their order."""
    if pa.types.is_decimal(values.type):
        return values.cast(pa.float64())
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int8())
    return values
