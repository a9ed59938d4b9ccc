"""Functions of numbers and bits that Spark computes with Java's mathematics."""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import Datum, compute
from deltalog.errors import InvalidInputError
from deltalog.expressions import java_math
from deltalog.expressions.numbers import null_of, round_decimal
from deltalog.expressions.render import simple_name
from deltalog.expressions.rows import NO, by_row, refusing
from deltalog.schema.arrow import from_arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

_SAME_NAMES: Final = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh"),
    *("cosh", "exp", "expm1", "sinh", "tanh"),
)
_FACTORIALS: Final = 20
_EXACT: Final = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_EVEN)


def _signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def _shift(operation: Callable[[int, int, int], int]) -> Callable[[Datum, Datum], Datum]:
    """Return a shift function; as in Java, the number of bits is taken modulo 32 or 64."""

    def run(value: Datum, count: Datum) -> Datum:
        bits = 64 if pt.is_int64(value.type) else 32
        return by_row(
            lambda number, by: _signed(operation(number, by & (bits - 1), bits), bits),
            value.type,
            value,
            count,
        )

    return run


def _factorial(number: int) -> int | None:
    return math.factorial(number) if 0 <= number <= _FACTORIALS else None


def _rint(value: float) -> float:
    if not math.isfinite(value) or abs(value) >= 1 << 52:
        return value
    return math.copysign(round(value), value)


def _to_degrees(value: Datum) -> Datum:
    # The factors here and in `_to_radians` are those of java.lang.Math.
    return compute.multiply(value, pa.scalar(57.29577951308232))


def _to_radians(value: Datum) -> Datum:
    return compute.multiply(value, pa.scalar(0.017453292519943295))


def _bround(value: Datum, digits: Datum | None = None) -> Datum:
    """Round halves to the even neighbour. Cost: by row, except for decimals."""
    places = 0 if digits is None else digits.as_py()
    if places is None:
        return null_of(value)
    if pt.is_decimal(value.type):
        return round_decimal(value, places, "half_to_even")
    if pt.is_integer(value.type):
        return value if places >= 0 else _bround_integer(value, places)
    return by_row(
        lambda number: (
            float(_to_even(decimal.Decimal(repr(number)), places)) + 0.0
            if math.isfinite(number)
            else number
        ),
        value.type,
        value,
    )


def _bround_integer(value: Datum, places: int) -> Datum:
    exact = by_row(
        lambda number: int(_to_even(decimal.Decimal(number), places)), pa.decimal128(38, 0), value
    )
    with refusing(f"bround overflows {from_arrow_type(value.type)}"):
        return compute.cast(exact, value.type)


def _to_even(number: decimal.Decimal, places: int) -> decimal.Decimal:
    return number.quantize(decimal.Decimal(1).scaleb(-places), context=_EXACT)


def _above(least: float, logarithm: Callable[[float], float]) -> Callable[[float], float | None]:
    """Return a logarithm that is NULL for arguments of at most `least`, as in Spark."""
    return lambda value: None if value <= least else logarithm(value)


def _log_to_base(base: float, value: float) -> float | None:
    if base <= 0 or value <= 0:
        return None
    above, below = java_math.log(value), java_math.log(base)
    if below == 0:
        return math.nan if above == 0 or math.isnan(above) else math.copysign(math.inf, above)
    return above / below


ROWS: Final[dict[str, Callable[..., Any]]] = {
    **{name: getattr(java_math, name) for name in _SAME_NAMES},
    # Spark adds 0.0 to both arguments, which turns -0.0 into 0.0.
    "atan2": lambda y, x: java_math.atan2(y + 0.0, x + 0.0),
    "cbrt": java_math.cbrt,
    "hypot": java_math.hypot,
    "pow": java_math.power,
    "ln": _above(0.0, java_math.log),
    "log": _log_to_base,
    "log2": _above(0.0, java_math.log2),
    "log10": _above(0.0, java_math.log10),
    "log1p": _above(-1.0, java_math.log1p),
    "bin": lambda number: format(number & ((1 << 64) - 1), "b"),
    "bit_count": lambda number: (number & ((1 << 64) - 1)).bit_count(),
    "factorial": _factorial,
    "rint": _rint,
}


def _assert_true(condition: Datum, message: Datum | None = None) -> Datum:
    """Return NULL for every row; raise an error unless the condition is true for all rows."""
    if not compute.all(compute.fill_null(condition, NO), min_count=0).as_py():
        reason = (
            message.as_py() if isinstance(message, pa.Scalar) else "the assertion fails for a row"
        )
        raise InvalidInputError(f"assert_true: {reason}")
    return pa.scalar(None, pa.null())


def _typeof(value: Datum) -> Datum:
    return pa.scalar(simple_name(from_arrow_type(value.type)))


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "shiftleft": _shift(lambda number, by, _: number << by),
    "shiftright": _shift(lambda number, by, _: number >> by),
    "shiftrightunsigned": _shift(lambda number, by, bits: (number & ((1 << bits) - 1)) >> by),
    "degrees": _to_degrees,
    "radians": _to_radians,
    "assert_true": _assert_true,
    "typeof": _typeof,
    "bround": _bround,
    "e": lambda: pa.scalar(math.e),
    "pi": lambda: pa.scalar(math.pi),
}
