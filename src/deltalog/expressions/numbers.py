"""Functions of numbers, as in Spark's ANSI mode."""

from __future__ import annotations

import base64
import decimal
import math
import re
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.kernels import Datum, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.expressions.arithmetic import calculate, fmod
from deltalog.expressions.casts import cast, to_decimal
from deltalog.expressions.comparing import compare
from deltalog.expressions.rows import NO, by_row, choose, on_array, refusing
from deltalog.expressions.signatures import round_result
from deltalog.schema.arrow import from_arrow_type, to_arrow_type
from deltalog.schema.primitives.numbers import MAX_DIGITS
from deltalog.schema.types import LONG, PrimitiveType, decimal_type

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_LONG: Final = (1 << 63) - 1
_MIN_LONG: Final = -(1 << 63)
# The rounding modes, named as in Arrow.
Rounding = Literal["half_towards_infinity", "half_to_even", "up", "down"]
_EXACT: Final = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)


def absolute(value: Datum) -> Datum:
    """`abs`; an error for the smallest integer, whose absolute value is out of range."""
    return _checked(pc.abs_checked, "abs", value)


def negative(value: Datum) -> Datum:
    """Return the negated value; an error for the smallest integer."""
    return _checked(pc.negate_checked, "negation", value)


def _checked(kernel: Callable[[Datum], Datum], name: str, value: Datum) -> Datum:
    with refusing(f"{name} overflows {from_arrow_type(value.type)}"):
        return kernel(value)


def ceiling(value: Datum, digits: Datum | None = None) -> Datum:
    """Round up to an integer, or to a decimal with `digits` digits."""
    if digits is not None:
        return round_decimal(value, digits.as_py(), "up")
    return _to_whole(pc.ceil, value, up=True)


def floor(value: Datum, digits: Datum | None = None) -> Datum:
    """Round down to an integer, or to a decimal with `digits` digits."""
    if digits is not None:
        return round_decimal(value, digits.as_py(), "down")
    return _to_whole(pc.floor, value, up=False)


def _to_whole(kernel: Callable[[Datum], Datum], value: Datum, *, up: bool) -> Datum:
    if pt.is_integer(value.type):
        return value
    if pt.is_decimal(value.type):
        return on_array(lambda array: _decimal_to_whole(array, up=up), value)
    # Java casts a double that is out of range to the nearest long, and NaN to 0.
    whole = kernel(value)
    low, high = pa.scalar(float(_MIN_LONG)), pa.scalar(float(_MAX_LONG))
    is_high = compute.greater_equal(whole, high)
    safe = compute.if_else(compute.or_(is_high, compute.is_nan(whole)), pa.scalar(0.0), whole)
    safe = compute.if_else(compute.less(safe, low), low, safe)
    return compute.if_else(is_high, pa.scalar(_MAX_LONG), compute.cast(safe, pa.int64()))


def _decimal_to_whole(array: Datum, *, up: bool) -> Datum:
    arrow_type = array.type
    if arrow_type.scale == 0:
        return array
    precision = min(arrow_type.precision - arrow_type.scale + 1, 38)
    wide = compute.cast(array, pa.decimal256(arrow_type.precision + 1, arrow_type.scale))
    rounded = pc.round(wide, ndigits=0, round_mode="up" if up else "down")
    return compute.cast(rounded, pa.decimal128(precision, 0))


def round_half_up(value: Datum, digits: Datum | None = None) -> Datum:
    """Round halves away from zero; with negative digits, round left of the decimal point.

    Spark rounds the shortest decimal form of a double (2.675 to 2.68), not its binary value. A
    float is converted to double first.

    Cost: by row for floats and doubles.
    """
    places = 0 if digits is None else digits.as_py()
    if places is None:
        return null_of(value)
    if pt.is_decimal(value.type):
        return round_decimal(value, places, "half_towards_infinity")
    if pt.is_integer(value.type):
        return value if places >= 0 else _round_integer(value, places)
    return by_row(lambda number: _round_double(number, places), value.type, value)


def null_of(value: Datum) -> Datum:
    """Return NULL with the result type of `round`, which is its result if `digits` is NULL."""
    return pa.scalar(None, to_arrow_type(round_result(from_arrow_type(value.type), 0)))


def _round_double(number: float, places: int) -> float:
    if not math.isfinite(number):
        return number
    unit = decimal.Decimal(1).scaleb(-places)
    # Java's BigDecimal has no negative zero, so -0.4 rounds to 0.0. Adding 0.0 has the same effect.
    return float(decimal.Decimal(repr(number)).quantize(unit, context=_EXACT)) + 0.0


def _round_integer(value: Datum, places: int) -> Datum:
    exact = by_row(
        lambda number: int(
            decimal.Decimal(number).quantize(decimal.Decimal(1).scaleb(-places), context=_EXACT)
        ),
        pa.decimal128(38, 0),
        value,
    )
    with refusing(f"round overflows {from_arrow_type(value.type)}"):
        return compute.cast(exact, value.type)


def round_decimal(value: Datum, places: int, mode: Rounding) -> Datum:
    """Round decimals to a number of digits; negative digits are left of the decimal point.

    Args:
        value: decimals.
        places: the number of digits after the point, limited to the scale of the type.
        mode: up, down, or to the nearest value, with halves away from zero or to the even
        neighbour.

    Raises:
        InvalidInputError: a rounded value has more than 38 digits.
    """
    return on_array(lambda array: _round_decimal(array, places, mode), value)


def _round_decimal(array: Datum, places: int, mode: Rounding) -> Datum:
    source = from_arrow_type(array.type)
    assert isinstance(source, PrimitiveType)  # noqa: S101  # the array is of a decimal type
    result = round_result(source, places)
    assert isinstance(result, PrimitiveType)  # noqa: S101  # the type of a rounded decimal
    if places >= source.scale:
        rounded = array
    elif mode.startswith("half") and -places > source.precision - source.scale:
        # The rounding unit is more than twice every value, so all values round to zero.
        zero = pa.scalar(0, to_arrow_type(result))
        return pc.if_else(compute.is_null(array), pa.scalar(None, zero.type), zero)
    else:
        rounded = _rounded(array, places, mode)
    values, refused = to_decimal(rounded, source, result)
    if refused is not None and compute.any(refused).as_py():
        raise InvalidInputError(f"the rounded value does not fit {result}")
    return values


def _rounded(array: Datum, places: int, mode: Rounding) -> Datum:
    """Round with Arrow's kernel, which needs extra digits for the rounding unit and a carry."""
    precision, scale = array.type.precision, array.type.scale
    if not mode.startswith("half") and places < 0:
        # Round to whole numbers first, because no type has enough digits for both the rounding unit
        # and the fraction.
        array = pc.round(compute.cast(array, pa.decimal256(precision + 1, scale)), 0, mode)
        array = compute.cast(array, pa.decimal256(MAX_DIGITS + 1, 0))
        precision, scale, places = MAX_DIGITS, 0, max(places, -MAX_DIGITS)
    digits = max(precision, scale - places) + 2
    return pc.round(compute.cast(array, pa.decimal256(digits, scale)), places, mode)


def positive_remainder(left: Datum, right: Datum) -> Datum:
    """Return `pmod`, a remainder that is positive for a positive divisor.

    Cost: by row, except for integers.
    """
    rest = calculate("%", left, right)
    if pt.is_decimal(rest.type):
        return by_row(_shifted_decimal, rest.type, rest, right)
    if pt.is_floating(rest.type):
        return by_row(_shifted_float, rest.type, rest, right)
    # A negative remainder plus a positive divisor cannot overflow. If both are negative, Spark
    # returns the remainder.
    is_apart = pc.and_kleene(compute.less(rest, _zero(rest)), compute.greater(right, _zero(right)))
    return compute.if_else(is_apart, compute.add(rest, right), rest)


def _shifted_decimal(rest: decimal.Decimal, right: decimal.Decimal) -> decimal.Decimal:
    return rest if rest >= 0 else (rest + right) % right


def _shifted_float(rest: float, right: float) -> float:
    return rest if not rest < 0 else fmod(rest + right, right)


def _zero(value: Datum) -> Datum:
    return pa.scalar(0, value.type)


def whole_quotient(left: Datum, right: Datum) -> Datum:
    """Return `div`: the quotient as a long, truncated towards zero."""
    is_zero = pc.and_kleene(compute.equal(right, _zero(right)), compute.is_valid(left))
    if compute.any(is_zero).as_py():
        raise InvalidInputError("division by zero: guard it with NULLIF or CASE")
    if pt.is_decimal(left.type):
        quotient = by_row(_whole_quotient, pa.decimal128(38, 0), left, right)
        return cast(quotient, decimal_type(38, 0), LONG)
    safe = compute.if_else(compute.is_valid(left), right, pa.scalar(None, right.type))
    with refusing("div overflows long"):
        return pc.divide_checked(left, safe)


def _whole_quotient(left: decimal.Decimal, right: decimal.Decimal) -> decimal.Decimal:
    return _EXACT.divide_int(left, right)


def sign(value: Datum) -> Datum:
    """Return -1.0, 0.0 or 1.0; NaN for NaN, and -0.0 for -0.0."""
    return compute.if_else(compute.equal(value, 0.0), value, pc.sign(value))


def is_nan(value: Datum) -> Datum:
    """Whether a value is NaN; false for NULL."""
    return compute.fill_null(compute.is_nan(value), NO)


def greatest(*values: Datum) -> Datum:
    """Return the greatest value that is not NULL; NaN is greater than all others."""
    return _extreme(">", *values)


def least(*values: Datum) -> Datum:
    """Return the least value that is not NULL."""
    return _extreme("<", *values)


def _extreme(operator: str, *values: Datum) -> Datum:
    found, *others = values
    for other in others:
        is_better = compute.fill_null(compare(operator, other, found), NO)
        is_better = compute.or_(is_better, compute.is_null(found))
        found = choose(is_better, other, found)
    return found


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "abs": absolute,
    "negative": negative,
    "positive": lambda value: value,
    "ceil": ceiling,
    "floor": floor,
    "round": round_half_up,
    "&": compute.bit_wise_and,
    "|": compute.bit_wise_or,
    "^": pc.bit_wise_xor,
    "~": pc.bit_wise_not,
    "pmod": positive_remainder,
    "div": whole_quotient,
    "sqrt": pc.sqrt,  # NaN for negative numbers
    "sign": sign,
    "isnan": is_nan,
    "greatest": greatest,
    "least": least,
}


# --- Conversions between numbers, bytes and strings: number bases, base 64 and character sets


_UNSIGNED: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LEAST_BASE: Final = 2
_MOST_BASE: Final = 36
_LINE: Final = 76
_MOST_SHOWN: Final = 100
_HEX: Final = re.compile(r"[0-9A-Fa-f]*\Z")
_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_EXACT_DIGITS: Final = decimal.Context(prec=500, rounding=decimal.ROUND_HALF_EVEN)
# Spark's name of a character set → Python's name.
_CHARSETS: Final = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "UTF-16": "utf-16",
    "UTF-32": "utf-32",
}


def _hex(value: int | str | bytes) -> str:
    match value:
        case int():
            return format(value & _UNSIGNED, "X")
        case str():
            return value.encode().hex().upper()
        case _:
            return value.hex().upper()


def _unhex(text: str) -> bytes | None:
    if not _HEX.match(text):
        return None
    return bytes.fromhex("0" * (len(text) % 2) + text)


def _conv(text: str, source: int, to: int) -> str | None:
    digits = text.strip(" ")
    if not (_LEAST_BASE <= source <= _MOST_BASE and _LEAST_BASE <= abs(to) <= _MOST_BASE):
        return None
    if not digits:
        return None
    is_negative = digits.startswith("-")
    number = 0
    for digit in digits[is_negative:].upper():
        place = _DIGITS.find(digit)
        if not 0 <= place < source:
            break
        number = number * source + place
        if number > _UNSIGNED:
            shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
            raise InvalidInputError(
                f"conv overflows: {shown!r} has more than 64 bits in base {source}"
            )
    signed = number - (1 << 64) if number & _SIGN else number
    if is_negative and to > 0:
        signed = -1 if signed < 0 else -signed
    if to < 0 and signed < 0:
        signed, is_negative = -signed, True
    shown = _in_base(signed & _UNSIGNED, abs(to))
    return f"-{shown}" if is_negative and to < 0 else shown


def _in_base(number: int, base: int) -> str:
    found = ""
    while number:
        number, place = divmod(number, base)
        found = _DIGITS[place] + found
    return found or "0"


def _base64(data: bytes) -> str:
    text = base64.b64encode(data).decode()
    return "\r\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE))


def _unbase64(text: str) -> bytes:
    """Decode base 64 like Java's MIME decoder, which ignores characters outside the alphabet."""
    found, bits, count, at = bytearray(), 0, 0, 0
    while at < len(text):
        char, at = text[at], at + 1
        if char == "=":
            # If a group of base 64 has only two characters, exactly `==` must follow.
            if count == 0 or (count == 2 and text[at : at + 1] != "="):
                raise InvalidInputError(f"{text!r} is not base 64: a sign = is misplaced")
            break
        place = _BASE64.find(char)
        if place >= 0:
            bits, count = bits << 6 | place, count + 1
        if count == 4:
            found += bits.to_bytes(3, "big")
            bits = count = 0
    if count == 1 or any(char in _BASE64 for char in text[at:]):
        raise InvalidInputError(f"{text!r} is not base 64: the last group is incomplete")
    if count:
        found += (bits << 6 * (4 - count)).to_bytes(3, "big")[: count - 1]
    return bytes(found)


def _charset(name: str) -> str:
    found = _CHARSETS.get(name.upper())
    if found is None:
        raise InvalidInputError(
            f"there is no character set {name!r}; known: {', '.join(_CHARSETS)}"
        )
    return found


def _encode(text: str, charset: str) -> bytes:
    # Java writes UTF-16 in big-endian order with a byte order mark, and UTF-32 without a mark.
    name = _charset(charset)
    try:
        if name == "utf-16":
            return b"\xfe\xff" + text.encode("utf-16-be") if text else b""
        return text.encode("utf-32-be" if name == "utf-32" else name)
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{text!r} has characters that {charset} does not have") from error


def _decode(data: bytes, charset: str) -> str:
    name = _charset(charset)
    try:
        if name in {"utf-16", "utf-32"} and not data.startswith((b"\xfe\xff", b"\xff\xfe")):
            name += "-be"
        return data.decode(name)
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"a binary value is not valid {charset}: {error}") from error


def _format_number(value: Any, digits: int) -> str | None:
    if digits < 0:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    exact = decimal.Decimal(repr(value)) if isinstance(value, float) else decimal.Decimal(value)
    return format(exact.quantize(decimal.Decimal(1).scaleb(-digits), context=_EXACT_DIGITS), ",f")


ROWS: Final[dict[str, Callable[..., Any]]] = {
    "hex": _hex,
    "unhex": _unhex,
    "conv": _conv,
    "base64": _base64,
    "unbase64": _unbase64,
    "encode": _encode,
    "decode": _decode,
    "format_number": _format_number,
}
