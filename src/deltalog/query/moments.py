"""Skewness and kurtosis of the values in lists, with Spark's results.

DuckDB computes them from sums of powers, which lose the digits of large values. Here, the powers
are those of the deviations from the mean, as in Spark.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import pc
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
    return _of_each(lists, lambda n, m2, m3, _: (math.sqrt(n) * m3, math.sqrt(m2 * m2 * m2)))


def kurtosis(lists: Any) -> pa.Array[Any]:
    """Return the excess kurtosis of the population in each list; NULL and NaN as `skewness`."""
    return _of_each(lists, lambda n, m2, _, m4: (n * m4, m2 * m2), less=3)


def _of_each(
    lists: Any,
    compute: Callable[[float, float, float, float], tuple[float, float]],
    *,
    less: float = 0,
) -> pa.Array[Any]:
    """Return a statistic of each list.

    Args:
        lists: the lists of doubles.
        compute: returns dividend and divisor, by the number of values and the sums of powers.
        less: what to subtract from the quotient.

    Raises:
        InvalidInputError: the values differ so little that the divisor is 0.
    """
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    rows: Any = pc.list_parent_indices(lists)
    values: Any = pc.list_flatten(lists)
    is_known = pc.is_valid(values)
    rows, values = rows.filter(is_known), values.filter(is_known)
    groups = pa.table({"row": rows, "x": values}).group_by("row", use_threads=False)
    facts = groups.aggregate([("x", "mean"), ("x", "min"), ("x", "max"), ("x", "count")])
    places = pc.index_in(rows, value_set=facts.column("row").combine_chunks())
    # The mean of large values loses the digits in which they differ, so use differences.
    shifted = pc.subtract(values, facts.column("x_min").take(places))
    groups = pa.table({"row": rows, "x": shifted}).group_by("row", use_threads=False)
    means = groups.aggregate([("x", "mean")]).column("x_mean")
    deviations = pc.subtract(shifted, means.take(places))
    squares = pc.multiply(deviations, deviations)
    powers = [squares, pc.multiply(squares, deviations), pc.multiply(squares, squares)]
    sums = pa.table([rows, *powers], names=["row", *_POWERS]).group_by("row", use_threads=False)
    totals = sums.aggregate([(name, "sum") for name in _POWERS])
    found: list[float | None] = [None] * len(lists)
    for fact, total in zip(facts.to_pylist(), totals.to_pylist(), strict=True):
        if not math.isfinite(fact["x_mean"]):
            found[fact["row"]] = math.nan
        elif fact["x_min"] != fact["x_max"]:  # the mean of equal values may be rounded
            moments = (total[f"{name}_sum"] for name in _POWERS)
            dividend, divisor = compute(fact["x_count"], *moments)
            if not divisor:
                raise InvalidInputError(f"{BY_ZERO}; the values differ by too little")
            found[fact["row"]] = dividend / divisor - less
    return pa.array(found, pa.float64())
