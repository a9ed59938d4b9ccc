"""The functions `regr_…` of a linear regression, in DuckDB's SQL with Spark's results.

DuckDB returns other values than Spark for one pair, for equal values and for NaN. So each result is
computed from the sums of squares and products, of which DuckDB computes the same as Spark.

Protocol: none; follows Spark's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from sqlglot import exp

from deltalog.query.query_trees import of_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot.expressions import Expr

PARTS_OF_REGRESSION: Final[tuple[Callable[..., Expr], ...]] = (
    of_pairs(exp.AnyValue, is_second=False),
    of_pairs(exp.AnyValue, is_second=True),
    exp.RegrSxx,
    exp.RegrSyy,
    exp.RegrSxy,
    exp.RegrCount,
    *(of_pairs(kind, is_second=False) for kind in (exp.Avg, exp.Sum, exp.Count)),
    *(of_pairs(kind, is_second=True) for kind in (exp.Avg, exp.Sum, exp.Count)),
)
"""The calls from which a regression is computed: the fields of `Regression` after the first one."""


@dataclass(frozen=True, slots=True)
class Regression:
    """A function of a regression of y, the first argument, by x, the second argument.

    Args:
        function: the name of the function, in lower case.
        any_y: the call for y in any pair.
        any_x: the call for x in any pair.
        sxx: the sum of the squared deviations of x. DuckDB returns 0 for one pair.
        syy: the same of y.
        sxy: the sum of the products of the deviations.
        count: the number of pairs.
        of_y: average, sum and number of y.
        of_x: the same of x.
    """

    function: str
    any_y: str
    any_x: str
    sxx: str
    syy: str
    sxy: str
    count: str
    of_y: tuple[str, ...]
    of_x: tuple[str, ...]

    @classmethod
    def of(cls, calls: Sequence[str]) -> Self:
        """Return the function of an aggregate's calls: its own, then those of its parts."""
        call, any_y, any_x, sxx, syy, sxy, count, *averages = calls
        function, of_y, of_x = call.partition("(")[0].lower(), averages[:3], averages[3:]
        return cls(function, any_y, any_x, sxx, syy, sxy, count, tuple(of_y), tuple(of_x))

    @property
    def averaged(self) -> int | None:
        """The argument of which the function is the average; None if it is another function."""
        return {"regr_avgy": 0, "regr_avgx": 1}.get(self.function)

    @property
    def average(self) -> tuple[str, ...]:
        """The average of that argument, and its sum and count."""
        return self.of_x if self.averaged else self.of_y

    def sql(self, typed: Callable[[str], str]) -> str:
        """Return the SQL of another function.

        Args:
            typed: casts the arguments in a call to doubles.
        """
        # NaN or an infinite value makes the sum of squares NaN, also that of one value.
        sxx = f"({self.sxx} + 0 * {self.any_x})"
        syy = f"({self.syy} + 0 * {self.any_y})"
        slope = f"({self.sxy} / nullif({sxx}, 0))"
        made = {
            "regr_count": f"CAST(coalesce({self.count}, 0) AS BIGINT)",
            "regr_sxx": sxx,
            "regr_syy": syy,
            "regr_sxy": self.sxy,
            "regr_slope": slope,
            "regr_intercept": f"({self.of_y[0]} - {slope} * {self.of_x[0]})",
            "regr_r2": f"(CASE WHEN {sxx} = 0 THEN NULL WHEN {syy} = 0 THEN 1 "
            f"ELSE pow({self.sxy} / sqrt({sxx} * {syy}), 2) END)",
        }
        return typed(made[self.function])
