"""Translate the filters that Spark pushes to a Python source.

Owns which of them can be translated. Spark evaluates all of them again, so a translation may keep
too many rows, but never drop a row for which a filter is true.

Protocol: none
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import datasource

from deltalog.errors import InvalidInputError
from deltalog.expressions import Column, Literal, TextRules, lit, resolve_predicate
from deltalog.expressions.nodes import Call, Comparison, Expression, In, IsNull, Not

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deltalog.schema import StructType

_COMPARISONS: Final = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_TEXTS: Final = {
    "StringStartsWith": "startswith",
    "StringEndsWith": "endswith",
    "StringContains": "contains",
}


def as_predicate(filters: Iterable[datasource.Filter], schema: StructType) -> Expression | None:
    """Combine the filters that can be translated into one condition; None if there are none.

    Args:
        filters: all of them hold for the requested rows.
        schema: of the table.
    """
    found = []
    for one in filters:
        expression = _expression(one)
        if expression is None:
            continue
        try:
            found.append(resolve_predicate(expression, schema, text_rules=TextRules.NONE))
        except InvalidInputError:  # a column that the table lacks, or an unsupported type
            continue
    return reduce(and_, found) if found else None


def _expression(one: Any) -> Expression | None:
    kind = type(one).__name__
    if kind == "Not":
        inner = _expression(one.child)
        return None if inner is None else Not(inner)
    column = Column(tuple(one.attribute))
    match kind:
        case "IsNull":
            return IsNull(column)
        case "IsNotNull":
            return Not(IsNull(column))
        case "In":
            return In(column, tuple(map(lit, one.value)))
        case _ if kind in _COMPARISONS:
            return Comparison(_COMPARISONS[kind], column, Literal(one.value))
        case _ if kind in _TEXTS:
            return Call(_TEXTS[kind], (column, Literal(one.value)))
        case _:
            return None
