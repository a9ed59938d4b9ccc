"""`CAST` over Arrow arrays with Spark's ANSI rules.

Owns the conversion between primitive types and which values a cast refuses. A kernel gives the
converted array and a mask of the rows that it refused; those are errors, or NULL for `TRY_CAST`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions import texts
from deltalog.expressions.coercion import (
    DATETIMES,
    FRACTIONALS,
    INTEGRALS,
    can_cast,
    decimal_of,
    is_decimal,
    is_numeric,
)
from deltalog.expressions.nested import cast_nested, nested_texts
from deltalog.expressions.rows import NO, as_array, nulls
from deltalog.kernels import Array, Datum
from deltalog.kernels import untyped as pc
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400_000_000
_WIDE: Final = pa.decimal256(76, 38)


class Converted(NamedTuple):
    """What a cast kernel gives: values, and which rows it refused (None: none)."""

    values: Array
    refused: Array | None = None


def cast(datum: Datum, source: DataType, to: DataType, *, is_try: bool = False) -> Datum:
    """Values in another type.

    Args:
        datum: values of type `source`, or one constant.
        source: the type of the values.
        to: the type wanted.
        is_try: NULL for a value that cannot be converted, instead of an error.

    Raises:
        InvalidInputError: there is no such cast, or a value cannot be converted.
    """
    if source == to:
        return datum
    if isinstance(datum, pa.Scalar):
        return cast(as_array(datum, 1), source, to, is_try=is_try)[0]
    if source == VOID:
        return nulls(len(datum), to_arrow_type(to))
    if not can_cast(source, to):
        raise InvalidInputError(f"cannot cast {source} to {to}: SQL has no such cast")
    if not isinstance(source, PrimitiveType) and not isinstance(to, PrimitiveType):
        return cast_nested(datum, source, to, partial(cast, is_try=is_try))
    values, refused = _kernel(source, to)(datum, source, to)
    if refused is not None and not is_try:
        _refuse(datum, refused, source, to)
    return values


def _refuse(array: Array, refused: Array, source: DataType, to: DataType) -> None:
    rows = pc.indices_nonzero(pc.fill_null(refused, NO))
    if len(rows) == 0:
        return
    row = array.slice(rows[0].as_py(), 1)
    shown = repr(row[0].as_py()) if source == STRING else cast(row, source, STRING)[0].as_py()
    raise InvalidInputError(
        f"cannot cast {shown} to {to}: it is no such value or out of range "
        "(TRY_CAST gives NULL instead)"
    )


def _kernel(source: DataType, to: DataType) -> Callable[[Array, Any, Any], Converted]:
    if to == STRING:
        return _texts_of
    if source == STRING:
        return _FROM_TEXT.get(to, _text_to_number if is_numeric(to) else _unsupported)
    if to == BOOLEAN:
        return _number_to_boolean
    if source == BOOLEAN:
        return _boolean_to_number
    if source in DATETIMES and to in DATETIMES:
        return _between_datetimes
    if source == TIMESTAMP:
        return _timestamp_to_number
    if to == TIMESTAMP:
        return _number_to_timestamp
    return _between_numbers if is_numeric(source) and is_numeric(to) else _unsupported


def _unsupported(_array: Array, source: DataType, to: DataType) -> Converted:
    raise InvalidInputError(f"cannot cast {source} to {to}: deltalog does not have this cast")


def _between_numbers(array: Array, source: PrimitiveType, to: PrimitiveType) -> Converted:
    if to in FRACTIONALS:
        return Converted(_to_fractional(array, source, to))
    if is_decimal(to):
        if source in FRACTIONALS:
            return _fractional_to_decimal(array, source, to)
        return to_decimal(array, decimal_of(source), to)
    if source in FRACTIONALS:
        return _fractional_to_integral(array, to)
    # One digit more, because Arrow truncates no decimal that has none before the point.
    whole = pc.trunc(_widened(array, 1)) if is_decimal(source) else array
    return _to_integral(whole, to)


def _to_fractional(array: Array, source: PrimitiveType, to: PrimitiveType) -> Array:
    if is_decimal(source):
        # Arrow multiplies by a power of ten and can be one unit off; texts convert exactly.
        array = pc.cast(array, pa.string())
    return pc.cast(array, to_arrow_type(to), safe=False)


def _to_integral(array: Array, to: PrimitiveType) -> Converted:
    arrow_type = to_arrow_type(to)
    try:
        return Converted(pc.cast(array, arrow_type))
    except pa.ArrowInvalid:
        limit = 1 << (to.primitive.bits - 1)
        wide = pc.cast(array, pa.decimal128(38, 0), safe=True)
        low = pa.scalar(-limit, wide.type)
        refused = pc.or_(pc.less(wide, low), pc.greater(wide, pa.scalar(limit - 1, wide.type)))
        return Converted(pc.cast(_without(array, refused), arrow_type), refused)


def _fractional_to_integral(array: Array, to: PrimitiveType) -> Converted:
    whole = pc.trunc(pc.cast(array, pa.float64()))
    limit = float(1 << (to.primitive.bits - 1))
    top = limit if to == LONG else limit - 1
    fits = pc.and_(pc.greater_equal(whole, -limit), pc.less_equal(whole, top))
    refused = pc.invert(fits)
    # The JVM compares with the double next to 2^63 - 1, which is 2^63, and saturates there.
    is_top = pc.equal(whole, limit)
    values = pc.cast(pc.if_else(pc.and_(fits, pc.invert(is_top)), whole, None), to_arrow_type(to))
    if to == LONG:
        values = pc.if_else(pc.fill_null(is_top, NO), int(limit) - 1, values)
    return Converted(values, refused)


def _fractional_to_decimal(array: Array, source: PrimitiveType, to: PrimitiveType) -> Converted:
    finite = pc.is_finite(array)
    # Spark reads the shortest text of the double, as Java prints it; a float counts as a double.
    text = pc.cast(pc.cast(pc.if_else(finite, array, None), pa.float64()), pa.string())
    # NaN and the infinities are NULL as decimals, even in ANSI mode.
    return _text_to_decimal(text, source, to)


def to_decimal(array: Array, source: PrimitiveType, to: PrimitiveType) -> Converted:
    """Exact numbers as decimals, halves rounded away from zero."""
    arrow_type = to_arrow_type(to)
    if not pa.types.is_decimal(array.type):
        array = pc.cast(array, pa.decimal128(source.precision, 0))
    if source.scale > to.scale:
        array = pc.round(_widened(array, 1), ndigits=to.scale, round_mode="half_towards_infinity")
    try:
        return Converted(pc.cast(array, arrow_type))
    except pa.ArrowInvalid:
        wide = pc.cast(array, _WIDE)
        limit = pc.cast(pa.scalar(10 ** (to.precision - to.scale), pa.decimal256(39, 0)), _WIDE)
        refused = pc.greater_equal(pc.abs(wide), limit)
        return Converted(pc.cast(_without(wide, refused), arrow_type), refused)


def _widened(array: Array, digits: int) -> Array:
    arrow_type: Any = array.type
    precision = min(arrow_type.precision + digits, _WIDE.precision)
    return pc.cast(array, pa.decimal256(precision, arrow_type.scale))


def _number_to_boolean(array: Array, _source: DataType, _to: DataType) -> Converted:
    # NaN is not zero, so it is true; Arrow's `not_equal` says the same.
    return Converted(pc.not_equal(array, pa.scalar(0, array.type)))


def _boolean_to_number(array: Array, _source: DataType, to: PrimitiveType) -> Converted:
    return _between_numbers(pc.cast(array, pa.int8()), BYTE, to)


def _between_datetimes(array: Array, _source: DataType, to: DataType) -> Converted:
    # UTC is the zone: with and without zone hold the same number, and a date is its midnight.
    try:
        return Converted(pc.cast(array, to_arrow_type(to), safe=to != DATE))
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"cannot cast a value to {to}: {error}") from error


def _timestamp_to_number(array: Array, _source: DataType, to: PrimitiveType) -> Converted:
    micros = pc.cast(array, pa.int64())
    if to in INTEGRALS:
        return _to_integral(floor_divide(micros, MICROS_PER_SECOND), to)
    if to in FRACTIONALS:
        seconds = pc.divide(pc.cast(micros, pa.float64(), safe=False), float(MICROS_PER_SECOND))
        return Converted(pc.cast(seconds, to_arrow_type(to), safe=False))
    exact = pc.multiply(
        pc.cast(micros, pa.decimal128(19, 0)), pc.cast(pa.scalar("0.000001"), pa.decimal128(7, 6))
    )
    return to_decimal(exact, decimal_type(27, 6), to)


def _number_to_timestamp(array: Array, source: PrimitiveType, to: DataType) -> Converted:
    arrow_type = to_arrow_type(to)
    if source in FRACTIONALS:
        micros = pc.multiply(pc.cast(array, pa.float64()), float(MICROS_PER_SECOND))
        whole = _fractional_to_integral(micros, LONG)
        return Converted(pc.cast(whole.values, arrow_type), whole.refused)
    if is_decimal(source):
        scaled = pc.multiply(_widened(array, 0), pa.scalar(MICROS_PER_SECOND, pa.decimal256(7, 0)))
        whole = _to_integral(pc.cast(pc.trunc(scaled), pa.decimal128(38, 0), safe=False), LONG)
        return Converted(pc.cast(whole.values, arrow_type), whole.refused)
    try:
        micros = pc.multiply_checked(pc.cast(array, pa.int64()), MICROS_PER_SECOND)
    except pa.ArrowInvalid as error:
        raise InvalidInputError("cannot cast a number to timestamp: it is out of range") from error
    return Converted(pc.cast(micros, arrow_type))


def floor_divide(array: Array, divisor: int) -> Array:
    """Integers divided by a positive constant, rounded down."""
    quotient = pc.divide(array, divisor)
    is_above = pc.greater(pc.multiply(quotient, divisor), array)
    return pc.subtract(quotient, pc.cast(is_above, quotient.type))


def _texts_of(array: Array, source: DataType, _to: DataType) -> Converted:
    """Values as the texts that Spark shows."""
    if source == BINARY:
        return Converted(pc.cast(array, pa.string()))
    if source in FRACTIONALS:
        return Converted(texts.of_fractionals(array))
    if source in DATETIMES:
        to_texts = texts.of_dates if source == DATE else texts.of_timestamps
        return Converted(to_texts(array))
    if is_decimal(source):
        return Converted(texts.of_decimals(array))
    if isinstance(source, PrimitiveType):
        return Converted(pc.cast(array, pa.string()))
    if isinstance(source, ArrayType | MapType | StructType):
        return Converted(pa.array(_nested_texts(array, source), pa.string()))
    return _unsupported(array, source, STRING)


def _nested_texts(array: Array, source: DataType) -> list[str | None]:
    if isinstance(source, PrimitiveType):
        shown: list[str | None] = cast(array, source, STRING).to_pylist()
        return shown
    return nested_texts(array, source, _nested_texts)


def _text_to_number(array: Array, source: DataType, to: PrimitiveType) -> Converted:
    trimmed = texts.trim_all(array)
    if to in FRACTIONALS:
        return _text_to_fractional(trimmed, to)
    if is_decimal(to):
        return _text_to_decimal(trimmed, source, to)
    valid = pc.match_substring_regex(trimmed, r"\A[+-]?[0-9]+\z")
    kept = pc.if_else(valid, trimmed, None)
    try:
        return Converted(pc.cast(texts.without_plus(kept), to_arrow_type(to)), pc.invert(valid))
    except pa.ArrowInvalid:
        fits = texts.integers_within(kept, to.primitive.bits)
        values = pc.cast(texts.without_plus(pc.if_else(fits, kept, None)), to_arrow_type(to))
        return Converted(values, pc.invert(_fit_too(valid, fits)))


def _fit_too(valid: Array, fits: Array) -> Array:
    # Rows that are valid and fit; NULL where there was no text.
    return pc.and_kleene(valid, pc.if_else(valid, fits, False))  # noqa: FBT003  # a value, no flag


def _text_to_fractional(trimmed: Array, to: PrimitiveType) -> Converted:
    lowered = pc.ascii_lower(trimmed)
    valid = pc.match_substring_regex(
        lowered,
        r"\A([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?[df]?|[+-]?inf(inity)?|[+-]?nan)\z",
    )
    kept = pc.if_else(valid, lowered, None)
    bare = pc.replace_substring_regex(kept, r"([0-9.])[df]\z", r"\1")
    bare = pc.replace_substring_regex(bare, r"\A[+-]nan\z", "nan")
    return Converted(pc.cast(texts.without_plus(bare), to_arrow_type(to)), pc.invert(valid))


def _text_to_decimal(trimmed: Array, _source: DataType, to: PrimitiveType) -> Converted:
    """Texts as decimals, halves rounded away from zero; exponents are known."""
    valid = pc.match_substring_regex(
        trimmed, r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
    )
    kept = pc.if_else(valid, trimmed, None)
    try:
        exact = pc.cast(kept, _WIDE)
    except pa.ArrowInvalid:
        values, fits = texts.decimals_by_row(kept, to.precision, to.scale)
        return Converted(pc.cast(values, to_arrow_type(to)), pc.invert(_fit_too(valid, fits)))
    values, refused = to_decimal(exact, decimal_type(38, 38), to)
    if refused is None:
        return Converted(values, pc.invert(valid))
    return Converted(values, pc.or_kleene(pc.invert(valid), refused))


def _text_to_boolean(array: Array, _source: DataType, _to: DataType) -> Converted:
    lowered = pc.utf8_lower(texts.trim_all(array))
    is_true = pc.is_in(lowered, pa.array(["t", "true", "y", "yes", "1"]))
    is_false = pc.is_in(lowered, pa.array(["f", "false", "n", "no", "0"]))
    known = pc.or_(is_true, is_false)
    return Converted(
        pc.if_else(known, is_true, None), pc.and_(pc.invert(known), pc.is_valid(array))
    )


def _text_to_date(array: Array, _source: DataType, _to: DataType) -> Converted:
    return Converted(*texts.to_dates(array))


def _text_to_moment(array: Array, _source: DataType, to: DataType) -> Converted:
    micros, refused = texts.to_micros(array, has_zone=to == TIMESTAMP)
    return Converted(pc.cast(micros, to_arrow_type(to)), refused)


def _text_to_binary(array: Array, _source: DataType, _to: DataType) -> Converted:
    return Converted(pc.cast(array, pa.binary()))


_FROM_TEXT: Final[dict[DataType, Callable[[Array, Any, Any], Converted]]] = {
    BOOLEAN: _text_to_boolean,
    DATE: _text_to_date,
    TIMESTAMP: _text_to_moment,
    TIMESTAMP_NTZ: _text_to_moment,
    BINARY: _text_to_binary,
}


def _without(array: Array, refused: Array) -> Array:
    return pc.if_else(refused, None, array)
