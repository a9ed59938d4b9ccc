"""The functions of queries that DuckDB computes: those over several rows.

Owns which of Spark's have the same meaning in DuckDB, with what type, and how they are written
there. One that is in no row of these tables is refused: its answer could be another one.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.expressions import Expr


class ResultType(StrEnum):
    """Which type the result of a function has in Spark, where DuckDB has another one."""

    SAME = "same"
    INTEGER = "INTEGER"
    LIST = "list"
    """Without NULL, and empty if there is no value."""
    COUNT = "count"
    """A whole number of 64 bits, which is 0 if there is no value."""
    ORDERED = "ordered"
    """That of the argument: DuckDB orders NULL inside of structs and arrays otherwise."""
    BY = "by"
    """Likewise, of the second argument."""
    TEXT = "text"
    """Text, of whatever DuckDB makes texts of."""
    SUM = "sum"
    """By the type of the argument."""
    AVERAGE = "average"
    """By the type of the argument."""


ASKED: Final = frozenset(
    {ResultType.ORDERED, ResultType.BY, ResultType.TEXT, ResultType.SUM, ResultType.AVERAGE}
)
"""Those for which the type of an argument must be known."""


def _as_double(node: Expr) -> Expr:
    """Let a function compute with doubles, as in Spark, where DuckDB would with decimals."""
    node.set("this", exp.cast(node.this, exp.DType.DOUBLE))
    return node


def _with_nulls(name: str) -> Callable[[Expr], Expr]:
    """Return a call of a function of DuckDB that keeps NULL."""

    def written(node: Expr) -> Expr:
        return exp.Anonymous(this=name, expressions=[node.this, node.expression])

    return written


def _quantile(node: Expr) -> Expr:
    value = exp.cast(node.this, exp.DType.DOUBLE)
    return exp.Anonymous(this="quantile_cont", expressions=[value, node.args["quantile"]])


def _same(node: Expr) -> Expr:
    return node


_Row = tuple[ResultType, "Callable[[Expr], Expr]"]
AGGREGATES: Final[dict[type[Expr], _Row]] = {
    exp.Count: (ResultType.SAME, _same),
    exp.CountIf: (ResultType.COUNT, _same),
    exp.Sum: (ResultType.SUM, _same),
    exp.Avg: (ResultType.AVERAGE, _same),
    exp.Min: (ResultType.ORDERED, _same),
    exp.Max: (ResultType.ORDERED, _same),
    exp.First: (ResultType.SAME, _same),
    exp.Last: (ResultType.SAME, _same),
    exp.FirstValue: (ResultType.SAME, _same),
    exp.LastValue: (ResultType.SAME, _same),
    exp.NthValue: (ResultType.SAME, _same),
    exp.AnyValue: (ResultType.SAME, _same),
    exp.ArgMax: (ResultType.BY, _with_nulls("arg_max_null")),
    exp.ArgMin: (ResultType.BY, _with_nulls("arg_min_null")),
    exp.LogicalAnd: (ResultType.SAME, _same),
    exp.LogicalOr: (ResultType.SAME, _same),
    exp.BitwiseAndAgg: (ResultType.SAME, _same),
    exp.BitwiseOrAgg: (ResultType.SAME, _same),
    exp.BitwiseXorAgg: (ResultType.SAME, _same),
    exp.Stddev: (ResultType.SAME, _same),
    exp.StddevPop: (ResultType.SAME, _same),
    exp.StddevSamp: (ResultType.SAME, _same),
    exp.Variance: (ResultType.SAME, _same),
    exp.VariancePop: (ResultType.SAME, _same),
    exp.Corr: (ResultType.SAME, _same),
    exp.CovarPop: (ResultType.SAME, _same),
    exp.CovarSamp: (ResultType.SAME, _same),
    exp.Mode: (ResultType.SAME, _same),
    exp.Median: (ResultType.SAME, _as_double),
    exp.Quantile: (ResultType.SAME, _quantile),
    exp.ApproxDistinct: (ResultType.SAME, _same),
    exp.ArrayAgg: (ResultType.LIST, _same),
    exp.ArrayUniqueAgg: (ResultType.LIST, _same),
    exp.GroupConcat: (ResultType.TEXT, _same),
    exp.RowNumber: (ResultType.INTEGER, _same),
    exp.Rank: (ResultType.INTEGER, _same),
    exp.DenseRank: (ResultType.INTEGER, _same),
    exp.Ntile: (ResultType.INTEGER, _same),
    exp.PercentRank: (ResultType.SAME, _same),
    exp.CumeDist: (ResultType.SAME, _same),
    exp.Lag: (ResultType.SAME, _same),
    exp.Lead: (ResultType.SAME, _same),
    exp.Grouping: (ResultType.SAME, _same),
}
"""Class of sqlglot → the type of its result, and how it is written for DuckDB."""

# Functions that sqlglot has no class for.
BY_NAME: Final[dict[str, type[Expr]]] = {
    "every": exp.LogicalAnd,
    "mean": exp.Avg,
    "std": exp.Stddev,
}
