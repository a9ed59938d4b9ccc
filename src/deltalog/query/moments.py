"""Skewness and kurtosis of the values in lists, with Spark's results.

DuckDB computes them from sums of powers, which lose the digits of large values. Here, the powers
are those of the deviations from the mean, as in Spark.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import Array, arrow, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.query.duckdb_expressions import BY_ZERO

if TYPE_CHECKING:
    from collections.abc import Callable

_POWERS: Final = ("square", "cube", "fourth")
"""The powers of deviations whose sums are computed."""


def skewness(lists: Any) -> pa.Array[Any]:
    """Return the skewness of the population in each list of doubles, NULL values omitted.

    NULL if there are no values, or if all values are equal. NaN if a value is NaN or infinite.

    Cost: memory for some doubles for each value.
    """

    def parts(count: Array, squares: Array, cubes: Array, _: Array) -> tuple[Array, Array]:
        divisor = pc.sqrt(compute.multiply(compute.multiply(squares, squares), squares))
        return compute.multiply(pc.sqrt(count), cubes), divisor

    return _of_each(lists, parts)


def kurtosis(lists: Any) -> pa.Array[Any]:
    """Return the excess kurtosis of the population in each list; NULL and NaN as `skewness`."""

    def parts(count: Array, squares: Array, _: Array, fourths: Array) -> tuple[Array, Array]:
        return compute.multiply(count, fourths), compute.multiply(squares, squares)

    return _of_each(lists, parts, less=3)


def _of_each(
    lists: Any,
    parts: Callable[[Array, Array, Array, Array], tuple[Array, Array]],
    *,
    less: float = 0,
) -> pa.Array[Any]:
    """Return a statistic of each list.

    Args:
        lists: the lists of doubles.
        parts: returns dividend and divisor, by the number of values and the sums of powers.
        less: what to subtract from the quotient.

    Raises:
        InvalidInputError: the values differ so little that the divisor is 0.
    """
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    rows: Any = compute.list_parent_indices(lists)
    values: Any = compute.list_flatten(lists)
    is_known = compute.is_valid(values)
    rows, values = rows.filter(is_known), values.filter(is_known)
    groups = pa.table({"row": rows, "x": values}).group_by("row", use_threads=False)
    facts = groups.aggregate([("x", "mean"), ("x", "min"), ("x", "max"), ("x", "count")])
    own_rows: Any = facts.column("row").combine_chunks()
    places = compute.index_in(rows, value_set=own_rows)
    # The mean of large values loses the digits in which they differ, so use differences.
    shifted: Any = compute.subtract(values, facts.column("x_min").take(places))
    groups = pa.table({"row": rows, "x": shifted}).group_by("row", use_threads=False)
    means = groups.aggregate([("x", "mean")]).column("x_mean")
    deviations = compute.subtract(shifted, means.take(places))
    squares = compute.multiply(deviations, deviations)
    powers: list[Any] = [
        squares,
        compute.multiply(squares, deviations),
        compute.multiply(squares, squares),
    ]
    sums = pa.table([rows, *powers], names=["row", *_POWERS]).group_by("row", use_threads=False)
    totals = sums.aggregate([(name, "sum") for name in _POWERS])
    moments = [totals.column(f"{name}_sum") for name in _POWERS]
    dividend, divisor = parts(facts.column("x_count").cast(pa.float64()), *moments)
    is_finite: Any = compute.is_finite(facts.column("x_mean"))
    # The mean of equal values may be rounded, so their deviations may not be 0.
    differ: Any = compute.not_equal(facts.column("x_min"), facts.column("x_max"))
    is_zero = compute.and_(compute.and_(is_finite, differ), compute.equal(divisor, 0.0))
    if compute.any(is_zero).as_py():
        raise InvalidInputError(f"{BY_ZERO}; the values differ by too little")
    quotient = compute.subtract(compute.divide(dividend, divisor), less)
    found = compute.if_else(differ, quotient, pa.scalar(None, pa.float64()))
    result: pa.Array[Any] = compute.if_else(is_finite, found, math.nan).combine_chunks()
    return result.take(compute.index_in(arrow.arange(0, len(lists)), value_set=own_rows))
