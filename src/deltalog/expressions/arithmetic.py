"""`+ - * / %` as in Spark's ANSI mode.

Contains the rules for overflow, division by zero, the sign of remainders and the rounding of
decimals. `resolve` guarantees that operands have one type, or are two decimals.
"""

from __future__ import annotations

import decimal
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.decimals import cast_decimals, rounded, rounded_wide, truncated
from deltalog._util.kernels import Array, Datum, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import arithmetic_type
from deltalog.expressions.functions import TRIED
from deltalog.expressions.rows import as_array, by_row, nulls
from deltalog.schema.arrow import from_arrow_type, to_arrow_type
from deltalog.schema.primitives.numbers import MAX_DIGITS
from deltalog.schema.types import PrimitiveType

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
_WIDEST: Final = 75
"""The maximum number of digits of an exact result. Decimal256 has one more, for rounding up."""
_SHORT_DIVISOR: Final = 9
"""The maximum number of digits of divisors of 32 bits. With longer divisors, Arrow's quotients of
dividends of more than 128 bits may be wrong (pyarrow 26)."""
_EXACT: Final = decimal.Context(prec=160, rounding=decimal.ROUND_HALF_UP)
# Spark rounds a product of decimals to 39 digits (Java's MathContext), and then to the result type.
_PRODUCT: Final = decimal.Context(prec=39, rounding=decimal.ROUND_HALF_UP)
_QUOTIENT_UNIT: Final = decimal.Decimal(1).scaleb(-39)


def calculate(operator: str, left: Datum, right: Datum) -> Datum:
    """Return `left operator right`.

    Raises:
        InvalidInputError: the divisor is zero, or the result does not fit its type.
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
    # As in Spark's ANSI mode, NULL / 0 is NULL, and a double divided by 0 is an error and not
    # infinity.
    is_zero = compute.equal(right, pa.scalar(0, right.type))
    if compute.any(compute.and_(is_zero, compute.is_valid(left))).as_py():
        raise InvalidInputError("division by zero: guard it with NULLIF or CASE")


def remainder(left: Datum, right: Datum) -> Datum:
    """Return the remainder with the sign of the left side, as in Java; `right` is not zero.

    Cost: by row for floats and doubles.
    """
    if pt.is_floating(left.type):
        return by_row(fmod, left.type, left, right)
    # The smallest integer divided by -1 overflows. Divide by 1 instead of -1, because both
    # remainders are always 0.
    is_one = compute.equal(right, pa.scalar(-1, right.type))
    is_unfit = pc.or_kleene(is_one, compute.equal(right, pa.scalar(0, right.type)))
    divisor = compute.if_else(is_unfit, pa.scalar(1, right.type), right)
    return compute.subtract(left, compute.multiply(compute.divide(left, divisor), divisor))


def fmod(left: float, right: float) -> float:
    """Java's remainder of doubles: NaN if the left side is infinite or the right side is zero."""
    return math.nan if math.isinf(left) or right == 0 else math.fmod(left, right)


def _decimals(operator: str, left: Datum, right: Datum) -> Datum:
    left_type, right_type = from_arrow_type(left.type), from_arrow_type(right.type)
    assert isinstance(left_type, PrimitiveType)  # noqa: S101  # both sides are decimals
    assert isinstance(right_type, PrimitiveType)  # noqa: S101  # as above
    result = arithmetic_type(operator, left_type, right_type)
    found = _COLUMNAR[operator](left, right, result)
    if found is not None:
        return _fitted(found, result)
    return by_row(_BY_ROW[operator](result), to_arrow_type(result), left, right)


def _exact(operator: str, left: Datum, right: Datum, _result: PrimitiveType) -> Datum | None:
    """Return the exact sum, difference or product; None if it may have too many digits.

    Cost: a pass over both sides, and another one to count digits if the types are wide.
    """
    digits = _exact_digits(operator, left.type, right.type)
    if digits > _WIDEST:
        left, right = _narrowed(left), _narrowed(right)
        digits = _exact_digits(operator, left.type, right.type)
        if digits > _WIDEST:
            return None
    width = pa.decimal128 if digits <= MAX_DIGITS else pa.decimal256
    exact: Any = _CHECKED[operator](_declared(left, width), _declared(right, width))
    if operator == "*" and digits > _PRODUCT.prec and _num_digits(exact) > _PRODUCT.prec:
        return None  # Spark rounds such products twice
    return exact


def _quotient(left: Datum, right: Datum, result: PrimitiveType) -> Datum | None:
    """Return quotients, truncated to one more decimal place than the result type has.

    The extra place decides how a quotient is rounded. None if a quotient may have too many digits.
    """
    right = _narrowed(right)
    kind: Any = right.type
    if kind.precision + result.scale >= _PRODUCT.prec:
        return None  # Spark rounds the quotient twice: first to 39 decimal places
    return _cut_quotient(_narrowed(left), right, result.scale + 1)


def average(totals: Datum, counts: Datum, result: PrimitiveType) -> Datum:
    """Return sums of decimals divided by their counts, rounded to a type; NULL for a count of 0.

    Cost: by row for sums of more than about 30 digits.
    """
    none = pa.scalar(None, pa.int64())
    divisors = pc.if_else(compute.equal(counts, 0), none, compute.cast(counts, pa.int64()))
    divisors = compute.cast(divisors, pa.decimal128(19, 0))
    found = _quotient(totals, divisors, result)
    if found is not None:
        return _fitted(found, result)
    return by_row(_BY_ROW["/"](result), to_arrow_type(result), totals, divisors)


def _cut_quotient(left: Datum, right: Datum, scale: int) -> Datum | None:
    """Return quotients, truncated to at least `scale` decimal places; None if they are too long.

    Both sides must be in their narrowest types.
    """
    left_type: Any = left.type
    right_type: Any = right.type
    # Arrow's quotient has `left.scale + right.precision - right.scale + 1` decimal places.
    needed = max(scale - 1 - right_type.precision + right_type.scale, left_type.scale)
    precision = left_type.precision + needed - left_type.scale
    is_short = right_type.precision <= _SHORT_DIVISOR
    if precision + right_type.precision >= (_WIDEST if is_short else MAX_DIGITS):
        return None
    return compute.divide(compute.cast(left, pa.decimal256(precision, needed)), right)


def _remainder(left: Datum, right: Datum, result: PrimitiveType) -> Datum | None:
    quotient = _cut_quotient(_narrowed(left), _narrowed(right), 1)
    whole = None if quotient is None else _narrowed(truncated(quotient, 0))
    multiple = None if whole is None else _exact("*", whole, right, result)
    return None if multiple is None else _exact("-", left, multiple, result)


_COLUMNAR: Final[dict[str, Callable[[Datum, Datum, PrimitiveType], Datum | None]]] = {
    **{operator: partial(_exact, operator) for operator in "+-*"},
    "/": _quotient,
    "%": _remainder,
}


def _exact_digits(operator: str, left: Any, right: Any) -> int:
    if operator == "*":
        return int(left.precision + right.precision + 1)
    scale = max(left.scale, right.scale)
    return int(max(left.precision - left.scale, right.precision - right.scale) + scale + 1)


def _narrowed(side: Datum) -> Datum:
    """Convert an operand to the type with the fewest digits that all its values fit in."""
    arrow_type: Any = side.type
    precision = max(_num_digits(side), arrow_type.scale, 1)
    return compute.cast(side, pa.decimal256(precision, arrow_type.scale))


def _num_digits(side: Datum) -> int:
    """Return the number of digits of the longest value."""
    arrow_type: Any = side.type
    if isinstance(side, pa.Scalar):
        values = [side.as_py()]
    else:
        values = list(compute.min_max(side).as_py().values())
    return max(
        (abs(value.scaleb(arrow_type.scale, _EXACT)).adjusted() + 1 for value in values if value),
        default=0,
    )


def _declared(side: Datum, width: Callable[[int, int], pa.DataType]) -> Datum:
    arrow_type: Any = side.type
    wanted = width(arrow_type.precision, arrow_type.scale)
    return side if arrow_type == wanted else compute.cast(side, wanted)


def _fitted(exact: Datum, result: PrimitiveType) -> Datum:
    """Return exact values in the result type; halves are rounded away from zero.

    Raises:
        InvalidInputError: a value has too many digits.
    """
    if isinstance(exact, pa.Scalar):
        return _fitted(pa.array([exact], exact.type), result)[0]
    if (found := rounded(exact, to_arrow_type(result))) is not None:
        return found
    try:
        return cast_decimals(rounded_wide(exact, result.scale), to_arrow_type(result))
    except pa.ArrowInvalid:
        raise InvalidInputError(f"the result does not fit {result}: cast an operand") from None


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


# The functions that return NULL instead of an error: `try_add`, `try_divide`, …


def _attempt(operator: str, left: Datum, right: Datum) -> Datum:
    """Compute the operator, with NULL for errors.

    Cost: a pass over the column, and a few more for each row with an error.
    """
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _attempt(operator, as_array(left, 1), as_array(right, 1))[0]
    rows = max(len(side) for side in (left, right) if not isinstance(side, pa.Scalar))
    one, other = as_array(left, rows), as_array(right, rows)
    pieces = _pieces(operator, one, other)
    known = [piece.type for piece in pieces if not isinstance(piece, int)]
    result = known[0] if known else calculate(operator, one[:0], other[:0]).type
    return pa.concat_arrays(
        [nulls(piece, result) if isinstance(piece, int) else piece for piece in pieces]
    )


def _pieces(operator: str, left: Array, right: Array) -> list[Any]:
    """Return arrays of results; an integer between arrays is a number of rows with errors."""
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
