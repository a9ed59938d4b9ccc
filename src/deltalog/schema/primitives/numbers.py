"""Codecs of numbers: integers, floats, decimals.

Protocol: Primitive Types, Partition Value Serialization, Per-file Statistics
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.decimals import cast_decimals, parse_decimals
from deltalog._util.kernels import Array, compute
from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.row import Bounds, ValueCodec
from deltalog.schema.primitives.strings import check_kind, check_match

MAX_DIGITS: Final = 38
_NUMBER: Final = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_DECIMAL: Final = re.compile(r"decimal(?:\(\s*(\d+)\s*,\s*(-?\d+)\s*\))?")
# The maximum number of digits of a precision or scale, because int() fails for very long strings.
_MOST_DIGITS: Final = 18
_NON_FINITE: Final = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def canonical_decimal(name: str) -> str | None:
    """Return the name as `decimal(p,s)` without spaces, or None; `decimal` is `decimal(10,0)`.

    Raises:
        InvalidInputError: precision or scale are out of range.
    """
    match = _DECIMAL.fullmatch(name)
    if match is None:
        return None
    if any(len(digits or "") > _MOST_DIGITS for digits in match.groups()):
        raise InvalidInputError(
            f"cannot make a decimal of a precision or scale of {len(name)} characters: expected "
            f"1 <= precision <= {MAX_DIGITS} and 0 <= scale <= precision"
        )
    precision, scale = int(match[1] or 10), int(match[2] or 0)
    if not 1 <= precision <= MAX_DIGITS or not 0 <= scale <= precision:
        raise InvalidInputError(
            f"cannot make a decimal of precision {precision} and scale {scale}: expected "
            f"1 <= precision <= {MAX_DIGITS} and 0 <= scale <= precision"
        )
    return f"decimal({precision},{scale})"


def arrow_decimal(precision: str, scale: str) -> pa.DataType:
    """Return the Arrow type of `decimal(p,s)`."""
    return pa.decimal128(int(precision), int(scale))


def decimal_parameters(arrow_type: Any) -> tuple[str, ...] | None:
    """Return precision and scale of the decimal type that can store values of an Arrow decimal."""
    # Arrow allows scales that Delta does not: 1E3 may have the scale -3, and 0.001 the precision 1.
    if not pt.is_decimal(arrow_type) or arrow_type.scale > MAX_DIGITS:
        return None
    scale = max(arrow_type.scale, 0)
    precision = max(arrow_type.precision - min(arrow_type.scale, 0), scale)
    return str(min(precision, MAX_DIGITS)), str(scale)


def java_word(number: float) -> str | None:
    """Return Java's name of infinity or NaN; None for other numbers."""
    if math.isfinite(number):
        return None
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _conform_integer(array: Array, target: Any) -> Array | None:
    found = array.type
    exact = pt.is_integer(found) or pt.is_floating(found) or pt.is_decimal(found)
    return array.cast(target) if exact else None


def _parse_integer(texts: pa.StringArray, arrow_type: pa.DataType, _zone: str) -> Array:
    check_match(texts, r"[+-]?\d+")  # Arrow also accepts hexadecimal numbers
    return compute.ascii_ltrim(texts, "+").cast(arrow_type)


def _encode_integer(value: Any, arrow_type: pa.DataType) -> str:
    check_kind(value, int)
    limit = 1 << (arrow_type.bit_width - 1)
    if not -limit <= value < limit:
        raise ValueError("the value is out of range")
    return str(int(value))


def _conform_float(array: Array, target: Any) -> Array | None:
    found = array.type
    if not (pt.is_integer(found) or pt.is_floating(found)):
        return None
    result = array.cast(target)
    if pt.is_floating(found) and found.bit_width > target.bit_width:
        # As in Spark, a double is rounded to the nearest float. An infinite result is an error.
        overflow = compute.and_(compute.is_finite(array), compute.invert(compute.is_finite(result)))
        if compute.any(overflow).as_py():
            raise pa.ArrowInvalid("a value is out of range")
    return result


def _parse_float(texts: pa.StringArray, arrow_type: pa.DataType, _zone: str) -> Array:
    check_match(texts, f"(?i:{_NUMBER}|nan|[+-]?inf(?:inity)?)")
    return texts.cast(arrow_type)


def _encode_float(value: Any, arrow_type: pa.DataType) -> str:
    check_kind(value, (float, int))
    number = float(value)
    return java_word(number) or _java_float(Decimal(_shortest(number, arrow_type)))


def _shortest(number: float, arrow_type: pa.DataType) -> str:
    """Return the shortest string that identifies the number in the width of the type."""
    if arrow_type.bit_width == 64:
        return repr(number)
    return str(pa.scalar(number, arrow_type).cast(pa.string()))


def _java_float(number: Decimal) -> str:
    # Use Java's format, so that Spark and deltalog write the same string for the same value.
    sign, digits, _ = number.as_tuple()
    minus = "-" if sign else ""
    exponent = number.adjusted()
    text = "".join(map(str, digits)).rstrip("0")
    if not text:
        return f"{minus}0.0"
    if -3 <= exponent < 7:
        plain = f"{abs(number.normalize()):f}"
        return f"{minus}{plain}" if "." in plain else f"{minus}{plain}.0"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{exponent}"


def _float_texts(values: Array) -> Array:
    texts = compute.replace_substring_regex(values.cast(pa.string()), r"^(-?\d+)$", r"\1.0")
    for word, quoted in _NON_FINITE.items():
        texts = compute.if_else(compute.equal(texts, pa.scalar(word)), quoted, texts)
    return texts


def _conform_decimal(array: Array, target: Any) -> Array | None:
    if pt.is_integer(array.type):
        # A direct cast fails if the target cannot store every integer of the source type.
        return array.cast(pa.decimal256(76, target.scale)).cast(target)
    return cast_decimals(array, target) if pt.is_decimal(array.type) else None


def _parse_decimal(texts: pa.StringArray, arrow_type: pa.DataType, _zone: str) -> Array:
    check_match(texts, _NUMBER)
    return parse_decimals(texts, arrow_type)


def _encode_decimal(value: Any, arrow_type: pa.DataType) -> str:
    check_kind(value, (Decimal, int))
    scalar: Any = pa.scalar(Decimal(value), arrow_type)
    return f"{scalar.as_py():f}"


INTEGER: Final = ValueCodec(
    conform=_conform_integer,
    parse=_parse_integer,
    encode=_encode_integer,
    bounds=Bounds(wire=pa.int64()),
)
FLOAT: Final = ValueCodec(
    conform=_conform_float,
    parse=_parse_float,
    encode=_encode_float,
    # The bound of the float 0.1 is stored as 0.1, and not as 0.10000000149011612.
    bounds=Bounds(texts=_float_texts, stored=lambda low, kind: float(_shortest(low, kind))),
)
DECIMAL: Final = ValueCodec(
    conform=_conform_decimal, parse=_parse_decimal, encode=_encode_decimal, bounds=Bounds()
)
