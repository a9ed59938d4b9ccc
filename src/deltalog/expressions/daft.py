"""Converting Daft's expressions with its visitor interface.

Decides which parts of a Daft filter can be converted. Daft filters the rows again after reading, so
leaving out a part of the filter only costs time.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from deltalog.expressions import nodes
from deltalog.expressions.nodes import Column, Expression, Literal
from deltalog.schema.primitives import Family
from deltalog.schema.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_VALUES: Final[Mapping[DataType, tuple[type, ...]]] = {
    BYTE: (int,),
    SHORT: (int,),
    INTEGER: (int,),
    LONG: (int,),
    FLOAT: (int, float),
    DOUBLE: (int, float),
    STRING: (str,),
    DATE: (dt.date,),
}
"""Column type → the Python types of constants that Daft compares with it without a cast."""
_FLOATING: Final = frozenset({FLOAT, DOUBLE})
_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class InexactError(Exception):
    """A part of the filter cannot be converted exactly."""


@dataclass(frozen=True, slots=True)
class _Operands:
    """The operands of the outermost AND, without those that cannot be converted."""

    operands: tuple[Expression, ...]


class DaftConverter:
    """Converts a Daft filter to a condition that is true for at least the rows of the filter.

    The methods implement Daft's `PredicateVisitor`; derive a class from both. A method raises
    `InexactError` for a part that cannot be converted exactly.

    Args:
        schema: the schema of the rows; names must match exactly.
    """

    visit: Any  # inherited from Daft's visitor

    def __init__(self, schema: StructType) -> None:
        self._types = {field.name: field.type for field in schema}
        self._is_negated = False

    def parts(self, expression: Any) -> list[Expression]:
        """Return the operands of the outermost AND that can be converted."""
        try:
            found = self.visit(expression)
        except Exception:  # noqa: BLE001  # expressions of other releases of Daft may raise any exception
            return []
        return list(found.operands) if isinstance(found, _Operands) else [found]

    def visit_col(self, name: str) -> Expression:
        """Convert a column."""
        if name not in self._types:
            raise InexactError
        return Column((name,))

    def visit_lit(self, value: Any) -> Expression:
        """Convert a constant."""
        return Literal(value)

    def visit_alias(self, expr: Any, alias: str) -> Expression:
        """Convert a named expression; the name is ignored."""
        del alias
        return self.visit(expr)  # type: ignore[no-any-return]  # `visit` returns an expression

    def visit_cast(self, expr: Any, dtype: Any) -> Expression:
        """Refuse a cast, because Daft's cast rules differ."""
        del expr, dtype
        raise InexactError

    def visit_coalesce(self, args: list[Any]) -> Expression:
        """Refuse COALESCE."""
        del args
        raise InexactError

    def visit_function(self, name: str, args: list[Any]) -> Expression:
        """Refuse any other function."""
        del name, args
        raise InexactError

    def visit_and(self, left: Any, right: Any) -> Any:
        """Convert AND; outside of NOT and OR, an operand that cannot be converted is left out."""
        if self._is_negated:
            return nodes.And((self.visit(left), self.visit(right)))
        return _Operands(tuple(part for side in (left, right) for part in self.parts(side)))

    def visit_or(self, left: Any, right: Any) -> Expression:
        """Convert OR; both operands must be convertible."""
        sides = [self._whole(side) for side in (left, right)]
        return nodes.Or((sides[0], sides[1]))

    def visit_not(self, expr: Any) -> Expression:
        """Convert NOT; the operand must be convertible exactly."""
        before, self._is_negated = self._is_negated, True
        try:
            return nodes.Not(self.visit(expr))
        finally:
            self._is_negated = before

    def visit_equal(self, left: Any, right: Any) -> Expression:
        """Convert `=`."""
        return self._compared("=", left, right)

    def visit_not_equal(self, left: Any, right: Any) -> Expression:
        """Convert `<>`."""
        return self._compared("<>", left, right)

    def visit_less_than(self, left: Any, right: Any) -> Expression:
        """Convert `<`."""
        return self._compared("<", left, right)

    def visit_less_than_or_equal(self, left: Any, right: Any) -> Expression:
        """Convert `<=`."""
        return self._compared("<=", left, right)

    def visit_greater_than(self, left: Any, right: Any) -> Expression:
        """Convert `>`."""
        return self._compared(">", left, right)

    def visit_greater_than_or_equal(self, left: Any, right: Any) -> Expression:
        """Convert `>=`."""
        return self._compared(">=", left, right)

    def visit_between(self, expr: Any, lower: Any, upper: Any) -> Expression:
        """Convert BETWEEN, which includes both bounds."""
        above, below = self._compared(">=", expr, lower), self._compared("<=", expr, upper)
        return nodes.And((above, below))

    def visit_is_in(self, expr: Any, items: list[Any]) -> Expression:
        """Convert IN."""
        column = self.visit(expr)
        options = tuple(self._constant(column, self.visit(item)) for item in items)
        if not options:
            raise InexactError
        return nodes.In(column, options)

    def visit_is_null(self, expr: Any) -> Expression:
        """Convert IS NULL."""
        return nodes.IsNull(self._column(self.visit(expr)))

    def visit_not_null(self, expr: Any) -> Expression:
        """Convert IS NOT NULL."""
        return nodes.Not(nodes.IsNull(self._column(self.visit(expr))))

    def _whole(self, expression: Any) -> Expression:
        """Convert an operand of OR or NOT, which must be exact."""
        before, self._is_negated = self._is_negated, True
        try:
            found: Expression = self.visit(expression)
        finally:
            self._is_negated = before
        return found

    def _compared(self, operator: str, left: Any, right: Any) -> Expression:
        one, other = self.visit(left), self.visit(right)
        if isinstance(one, Literal):
            one, other, operator = other, one, _MIRRORED[operator]
        return nodes.Comparison(operator, self._column(one), self._constant(one, other))

    def _column(self, operand: Any) -> Column:
        if not isinstance(operand, Column):
            raise InexactError
        return operand

    def _constant(self, column: Any, operand: Any) -> Literal:
        """Return a constant of the column's type; NaN is refused, because its order varies."""
        if not isinstance(operand, Literal):
            raise InexactError
        kind, value = self._types[self._column(column).path[0]], operand.value
        if kind in _FLOATING and (self._is_negated or math.isnan(value)):
            raise InexactError
        if not _is_of(kind, value):
            raise InexactError
        return operand


def _is_of(kind: DataType, value: Any) -> bool:
    """Whether a constant can be compared with a column of this type without a cast."""
    if isinstance(kind, PrimitiveType) and kind.primitive.family is Family.DECIMAL:
        return isinstance(value, Decimal)
    if isinstance(value, dt.datetime):
        return kind == (TIMESTAMP_NTZ if value.tzinfo is None else TIMESTAMP)
    if isinstance(value, bool):
        return kind == BOOLEAN
    return isinstance(value, _VALUES.get(kind, ()))
