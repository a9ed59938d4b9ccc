"""`+ - * / %` as in Spark's ANSI mode.

Owns overflow, division by zero, the sign of remainders and the rounding of decimals. `resolve`
guarantees that operands have one type, or are two decimals.
"""

from __future__ import annotations

import decimal
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import Array, Datum, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.expressions.casts import to_decimal
from deltalog.expressions.coercion import arithmetic_type
from deltalog.expressions.functions import TRIED
from deltalog.expressions.rows import as_array, by_row, nulls
from deltalog.schema.arrow import from_arrow_type, to_arrow_type
from deltalog.schema.types import PrimitiveType, decimal_type

if TYPE_CHECKING:
    from collections.abc import Callable

_CHECKED: Final[dict[str, Callable[..., Any]]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_FLOATING: Final[dict[str, Callable[..., Any]]] = {
    "+": compute.add,
    "-": compute.subtract,
    "*": compute.multiply,
    "/": compute.divide,
}
_WIDEST: Final = 76
_EXACT: Final = decimal.Context(prec=160, rounding=decimal.ROUND_HALF_UP)
# Spark multiplies decimals with 39 digits (Java's MathContext) before it rounds to the result type.
_PRODUCT: Final = decimal.Context(prec=39, rounding=decimal.ROUND_HALF_UP)
_QUOTIENT_UNIT: Final = decimal.Decimal(1).scaleb(-39)


def calculate(operator: str, left: Datum, right: Datum) -> Datum:
    """Return `left operator right`.

    Raises:
        InvalidInputError: the divisor is zero, or the result is out of range for its type.
    """
    if operator in "/%":
        _check_divisor(left, right)
    if pt.is_decimal(left.type):
        return _decimals(operator, left, right)
    if operator == "%":
        return remainder(left, right)
    if pt.is_floating(left.type):
        return _FLOATING[operator](left, right)
    try:
        return _CHECKED[operator](left, right)
    except pa.ArrowInvalid as error:
        name = from_arrow_type(left.type)
        raise InvalidInputError(
            f"{operator} overflows {name}: cast an operand to a wider type"
        ) from error


def _check_divisor(left: Datum, right: Datum) -> None:
    # NULL / 0 is NULL, also in ANSI mode. Doubles are checked too: Spark never returns infinity
    # here.
    is_zero = compute.equal(right, pa.scalar(0, right.type))
    if compute.any(compute.and_(is_zero, compute.is_valid(left))).as_py():
        raise InvalidInputError("division by zero: guard it with NULLIF or CASE")


def remainder(left: Datum, right: Datum) -> Datum:
    """Return the remainder with the sign of `left`, as in Java; `right` must not be zero.

    Cost: by row for floats and doubles.
    """
    if pt.is_floating(left.type):
        return by_row(fmod, left.type, left, right)
    # The smallest integer divided by -1 overflows. Division by -1 and by 1 have the same remainder,
    # 0, so divide by 1 instead.
    is_one = compute.equal(right, pa.scalar(-1, right.type))
    is_unfit = pc.or_kleene(is_one, compute.equal(right, pa.scalar(0, right.type)))
    divisor = compute.if_else(is_unfit, pa.scalar(1, right.type), right)
    return compute.subtract(left, compute.multiply(compute.divide(left, divisor), divisor))


def fmod(left: float, right: float) -> float:
    """Return Java's remainder of doubles: NaN if `left` is infinite or `right` is zero."""
    return math.nan if math.isinf(left) or right == 0 else math.fmod(left, right)


def _decimals(operator: str, left: Datum, right: Datum) -> Datum:
    left_type, right_type = from_arrow_type(left.type), from_arrow_type(right.type)
    assert isinstance(left_type, PrimitiveType)  # noqa: S101  # a decimal, as the caller saw
    assert isinstance(right_type, PrimitiveType)  # noqa: S101  # as above
    result = arithmetic_type(operator, left_type, right_type)
    # The exact result fits decimal256 if the operands have fewer than 38 digits in total.
    if operator in "+-*" and left_type.precision + right_type.precision < _WIDEST // 2:
        exact: Any = _CHECKED[operator](_wide(left), _wide(right))
        return _fitted(exact, result)
    return by_row(_BY_ROW[operator](result), to_arrow_type(result), left, right)


def _wide(side: Datum) -> Datum:
    arrow_type: Any = side.type
    return compute.cast(side, pa.decimal256(arrow_type.precision, arrow_type.scale))


def _fitted(exact: Datum, result: PrimitiveType) -> Datum:
    if isinstance(exact, pa.Scalar):
        return _fitted(pa.array([exact], exact.type), result)[0]
    arrow_type: Any = exact.type
    wide = decimal_type(38, 0)
    if arrow_type.scale <= wide.precision:
        wide = decimal_type(38, arrow_type.scale)
    values, refused = to_decimal(exact, wide, result)
    if refused is not None and compute.any(refused).as_py():
        raise InvalidInputError(f"the result does not fit {result}: cast an operand")
    return values


def _by_exact_row(
    operation: Callable[[decimal.Decimal, decimal.Decimal], decimal.Decimal],
) -> Callable[[PrimitiveType], Callable[..., decimal.Decimal]]:
    def bind(result: PrimitiveType) -> Callable[..., decimal.Decimal]:
        unit = decimal.Decimal(1).scaleb(-result.scale)
        whole = result.precision - result.scale

        def run(left: decimal.Decimal, right: decimal.Decimal) -> decimal.Decimal:
            value = operation(left, right).quantize(unit, context=_EXACT)
            if value and value.adjusted() >= whole:
                raise InvalidInputError(f"{value} does not fit {result}: cast an operand")
            return value

        return run

    return bind


_BY_ROW: Final = {
    "+": _by_exact_row(_EXACT.add),
    "-": _by_exact_row(_EXACT.subtract),
    "*": _by_exact_row(_PRODUCT.multiply),
    "/": _by_exact_row(
        lambda left, right: _EXACT.divide(left, right).quantize(_QUOTIENT_UNIT, context=_EXACT)
    ),
    "%": _by_exact_row(_EXACT.remainder),
}


# --- Operators that return NULL instead of an error: `try_add`, `try_divide`, …


def _attempt(operator: str, left: Datum, right: Datum) -> Datum:
    """Compute the operator; the result is NULL in rows with an error.

    Cost: a pass over the column, and a few more for each row with an error.
    """
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _attempt(operator, as_array(left, 1), as_array(right, 1))[0]
    rows = max(len(side) for side in (left, right) if not isinstance(side, pa.Scalar))
    pieces = _pieces(operator, as_array(left, rows), as_array(right, rows))
    known = [piece.type for piece in pieces if not isinstance(piece, int)]
    result = known[0] if known else calculate(operator, left[:0], right[:0]).type
    return pa.concat_arrays(
        [nulls(piece, result) if isinstance(piece, int) else piece for piece in pieces]
    )


def _pieces(operator: str, left: Array, right: Array) -> list[Any]:
    """Return arrays of results; an integer in the list is a number of adjacent rows with errors."""
    try:
        return [calculate(operator, left, right)]
    except InvalidInputError:
        if len(left) == 1:
            return [1]
    half = len(left) // 2
    return [
        *_pieces(operator, left[:half], right[:half]),
        *_pieces(operator, left[half:], right[half:]),
    ]


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    name: partial(_attempt, operator) for name, operator in TRIED.items()
}
