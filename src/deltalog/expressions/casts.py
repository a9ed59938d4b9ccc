"""`CAST` of Arrow arrays by the rules of Spark's ANSI mode.

Converts between primitive types, and decides which values cannot be cast. A kernel returns the
converted array and a mask of the rows that cannot be cast. `CAST` raises an error for such rows;
`TRY_CAST` returns NULL.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog._util.clock import MICROS_PER_SECOND
from deltalog._util.decimals import fit_decimals, rounded, rounded_wide, truncated
from deltalog._util.kernels import Array, Datum, compute, pc
from deltalog.errors import InvalidInputError
from deltalog.expressions import string_forms
from deltalog.expressions.coercion import (
    DATETIMES,
    FINE_MOMENTS,
    FRACTIONALS,
    INTEGRALS,
    can_cast,
    decimal_of,
    is_decimal,
    is_numeric,
    is_relabelled,
)
from deltalog.expressions.rows import NO, as_array, nulls
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.primitives.moments import NANOS_OF_MICRO, instants, parted_nanos, wall_clocks
from deltalog.schema.types import (
    BINARY,
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
    TIMESTAMP_NANOS,
    TIMESTAMP_NANOS_NTZ,
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

    Convert = Callable[[Array, DataType, DataType], Array]

_MOST_DIGITS: Final = 75
"""The number of digits of decimals to be rounded. 256 bits have one more, which rounding needs."""
# The maximum number of microseconds since 1970 that fits in 64 bits as nanoseconds.
_MOST_MICROS: Final = (1 << 63) // NANOS_OF_MICRO
_WITH_AND_WITHOUT_ZONE: Final = {TIMESTAMP, TIMESTAMP_NTZ}


class Converted(NamedTuple):
    """Converted values, and a mask of the rows that cannot be cast, or None if all rows can."""

    values: Array
    refused: Array | None = None


def needs_zone(source: DataType, to: DataType) -> bool:
    """Whether a cast between the types converts to or from local time, at any depth."""
    if isinstance(source, PrimitiveType) and isinstance(to, PrimitiveType):
        return {source, to} == _WITH_AND_WITHOUT_ZONE
    match source, to:
        case ArrayType(), ArrayType():
            return needs_zone(source.element_type, to.element_type)
        case MapType(), MapType():
            return needs_zone(source.key_type, to.key_type) or needs_zone(
                source.value_type, to.value_type
            )
        case StructType(), StructType():
            return any(needs_zone(m.type, t.type) for m, t in zip(source, to, strict=False))
        case _:
            return False


def cast(datum: Datum, source: DataType, to: DataType, *, is_try: bool = False) -> Datum:
    """Cast values to another type, with UTC as the time zone; see `cast_in_zone`."""
    return cast_in_zone(datum, source, to, is_try=is_try, time_zone=None)


def cast_in_zone(
    datum: Datum, source: DataType, to: DataType, *, is_try: bool, time_zone: str | None
) -> Datum:
    """Cast values to another type.

    Args:
        datum: values of type `source`, or one constant.
        source: the type of the values.
        to: the target type.
        is_try: whether a value that cannot be converted becomes NULL instead of an error.
        time_zone: the zone for casts between `timestamp_ntz` and `timestamp`; None is UTC.

    Raises:
        InvalidInputError: there is no such cast, or a value cannot be converted.
    """
    if source == to:
        return datum
    if isinstance(datum, pa.Scalar):
        array = as_array(datum, 1)
        return cast_in_zone(array, source, to, is_try=is_try, time_zone=time_zone)[0]
    if source == VOID:
        return nulls(len(datum), to_arrow_type(to))
    if not can_cast(source, to):
        raise InvalidInputError(f"cannot cast {source} to {to}: SQL has no such cast")
    if is_relabelled(source, to):
        return datum
    if not isinstance(source, PrimitiveType) and not isinstance(to, PrimitiveType):
        return cast_nested(
            datum, source, to, partial(cast_in_zone, is_try=is_try, time_zone=time_zone)
        )
    if time_zone is not None and needs_zone(source, to):
        return wall_clocks(datum, time_zone) if to == TIMESTAMP_NTZ else instants(datum, time_zone)
    if is_try and source in FINE_MOMENTS:
        # Spark's TRY_CAST truncates nanoseconds to microseconds, but the kernels of this module
        # would return NULL for such values.
        raise InvalidInputError(f"cannot try to cast {source} to {to}: use CAST, which is exact")
    values, refused = _kernel(source, to)(datum, source, to)
    if refused is not None and not is_try:
        _refuse(datum, refused, source, to)
    return values


_FORMS: Final[dict[DataType, str]] = {
    DATE: "YYYY-MM-DD, such as 2024-01-31",
    TIMESTAMP: "YYYY-MM-DD HH:MM:SS, such as 2024-01-31 12:00:00",
    TIMESTAMP_NTZ: "YYYY-MM-DD HH:MM:SS, such as 2024-01-31 12:00:00",
    BOOLEAN: "true or false",
}
"""Type → the form of its strings, for errors."""
_FLOATS: Final = frozenset({FLOAT, DOUBLE})
_RANGES: Final[dict[DataType, str]] = {
    BYTE: "a whole number from -128 to 127",
    SHORT: "a whole number from -32768 to 32767",
    INTEGER: "a whole number from -2147483648 to 2147483647",
    LONG: "a whole number of 64 bits",
}
"""Type → its values, for errors."""


def cast_advice(problem: str) -> str:
    """Return the advice at the end of an error if a cast failed; otherwise an empty string."""
    is_cast = "cannot cast " in problem and "TRY_CAST" not in problem
    return "; try_cast returns NULL instead" if is_cast else ""


_MOST_SHOWN: Final = 200
"""The most characters of a value in an error."""


def _refuse(array: Array, refused: Array, source: DataType, to: DataType) -> None:
    rows = compute.indices_nonzero(compute.fill_null(refused, NO))
    if len(rows) == 0:
        return
    row = array.slice(rows[0].as_py(), 1)
    shown = repr(row[0].as_py()) if source == STRING else cast(row, source, STRING)[0].as_py()
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[:_MOST_SHOWN]}…"
    form = _RANGES.get(to)
    if source != STRING and isinstance(to, PrimitiveType) and to.is_decimal:
        form = f"at most {to.precision - to.scale} digits before the point"
    if source == STRING and form is None:
        has_point = is_decimal(to) or to in _FLOATS
        form = "digits and a point, such as 12.5" if has_point else _FORMS.get(to)
    hint = f"; expected {form}" if form else ""
    raise InvalidInputError(
        f"cannot cast {shown} to {to}: it is not a value of that type, or out of range{hint}"
    )


def _kernel(source: DataType, to: DataType) -> Callable[[Array, Any, Any], Converted]:
    if to == STRING:
        return _to_string
    if source == STRING:
        return _FROM_STRING.get(to, _string_to_number if is_numeric(to) else _unsupported)
    if to == BOOLEAN:
        return _number_to_boolean
    if source == BOOLEAN:
        return _boolean_to_number
    if to in FINE_MOMENTS:
        return _to_nanos
    if source in FINE_MOMENTS:
        return _from_nanos
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
    # Add a digit, because Arrow cannot truncate decimals whose type allows only a fraction.
    whole = pc.trunc(_widened(array, 1)) if is_decimal(source) else array
    return _to_integral(whole, to)


def _to_fractional(array: Array, source: PrimitiveType, to: PrimitiveType) -> Array:
    if is_decimal(source):
        # A cast through strings is exact. Arrow's direct cast multiplies by a power of ten, so the
        # last digit of its result may be wrong.
        array = array.cast(pa.string())
    return array.cast(to_arrow_type(to), safe=False)


def _to_integral(array: Array, to: PrimitiveType) -> Converted:
    arrow_type = to_arrow_type(to)
    try:
        return Converted(array.cast(arrow_type))
    except pa.ArrowInvalid:
        limit = 1 << (to.primitive.bits - 1)
        wide = array if pa.types.is_decimal(array.type) else array.cast(pa.decimal128(38, 0))
        low, high = pa.scalar(-limit, wide.type), pa.scalar(limit - 1, wide.type)
        refused = compute.or_(compute.less(wide, low), compute.greater(wide, high))
        return Converted(_without(array, refused).cast(arrow_type), refused)


def _fractional_to_integral(array: Array, to: PrimitiveType) -> Converted:
    whole = pc.trunc(array.cast(pa.float64()))
    limit = float(1 << (to.primitive.bits - 1))
    top = limit if to == LONG else limit - 1
    # NaN fails both comparisons, so it is refused like values out of range.
    fits = compute.and_(compute.greater_equal(whole, -limit), compute.less_equal(whole, top))
    refused = compute.invert(fits)
    # No double equals 2^63 - 1. Java compares with 2^63 instead, and casts 2^63 to 2^63 - 1.
    is_top = compute.equal(whole, limit)
    values = _without(whole, compute.or_(refused, is_top)).cast(to_arrow_type(to))
    if to == LONG:
        values = compute.if_else(compute.fill_null(is_top, NO), int(limit) - 1, values)
    return Converted(values, refused)


def _fractional_to_decimal(array: Array, source: PrimitiveType, to: PrimitiveType) -> Converted:
    finite = compute.is_finite(array)
    # Spark casts a float to double, and then converts the shortest decimal form of the double.
    text = compute.if_else(finite, array, None).cast(pa.float64()).cast(pa.string())
    # NaN and the infinities become NULL, even in ANSI mode.
    return _string_to_decimal(text, source, to)


def to_decimal(array: Array, source: PrimitiveType, to: PrimitiveType) -> Converted:
    """Convert exact numbers to decimals; halves are rounded away from zero."""
    arrow_type = to_arrow_type(to)
    if not pa.types.is_decimal(array.type):
        array = array.cast(pa.decimal128(source.precision, 0))
    if source.scale > to.scale:
        if (found := rounded(array, arrow_type)) is not None:
            return Converted(found)
        array = rounded_wide(array, to.scale)
    return Converted(*fit_decimals(array, arrow_type))


def _widened(array: Array, digits: int) -> Array:
    arrow_type: Any = array.type
    precision = min(arrow_type.precision + digits, _MOST_DIGITS + 1)
    return array.cast(pa.decimal256(precision, arrow_type.scale))


def _number_to_boolean(array: Array, _source: DataType, _to: DataType) -> Converted:
    # NaN becomes true, because it is not equal to zero.
    return Converted(compute.not_equal(array, pa.scalar(0, array.type)))


def _boolean_to_number(array: Array, _source: DataType, to: PrimitiveType) -> Converted:
    return _between_numbers(array.cast(pa.int8()), BYTE, to)


def _between_datetimes(array: Array, _source: DataType, to: DataType) -> Converted:
    # The time zone is UTC here. So TIMESTAMP and TIMESTAMP_NTZ have the same stored number, and a
    # date becomes the midnight of that day.
    try:
        return Converted(array.cast(to_arrow_type(to), safe=to != DATE))
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"cannot cast a value to {to}: {error}") from error


def _to_nanos(array: Array, _source: DataType, to: DataType) -> Converted:
    arrow_type: Any = to_arrow_type(to)
    # A date becomes the midnight of that day. A zone in Arrow's type does not change the number.
    micros = array.cast(pa.timestamp("us", arrow_type.tz)).cast(pa.int64())
    refused = compute.or_(
        compute.less(micros, -_MOST_MICROS), compute.greater(micros, _MOST_MICROS)
    )
    nanos = compute.multiply(_without(micros, refused), NANOS_OF_MICRO)
    return Converted(nanos.cast(arrow_type), refused)


def _from_nanos(array: Array, source: DataType, to: DataType) -> Converted:
    micros, is_whole = parted_nanos(array)
    if not compute.all(is_whole, min_count=0).as_py():
        raise InvalidInputError(
            f"cannot cast {source} to {to}: a value has parts of a microsecond, which would be lost"
        )
    return Converted(micros.cast(to_arrow_type(to)))


def _timestamp_to_number(array: Array, _source: DataType, to: PrimitiveType) -> Converted:
    micros = array.cast(pa.int64())
    if to in INTEGRALS:
        return _to_integral(floor_divide(micros, MICROS_PER_SECOND), to)
    if to in FRACTIONALS:
        seconds = compute.divide(micros.cast(pa.float64(), safe=False), float(MICROS_PER_SECOND))
        return Converted(seconds.cast(to_arrow_type(to), safe=False))
    exact = compute.multiply(
        micros.cast(pa.decimal128(19, 0)),
        pa.scalar("0.000001").cast(pa.decimal128(7, 6)),
    )
    return to_decimal(exact, decimal_type(27, 6), to)


def _number_to_timestamp(array: Array, source: PrimitiveType, to: DataType) -> Converted:
    arrow_type = to_arrow_type(to)
    if source in FRACTIONALS:
        micros = compute.multiply(array.cast(pa.float64()), float(MICROS_PER_SECOND))
        whole = _fractional_to_integral(micros, LONG)
        return Converted(whole.values.cast(arrow_type), whole.refused)
    if is_decimal(source):
        unit = pa.scalar(MICROS_PER_SECOND, pa.decimal256(7, 0))
        scaled = compute.multiply(_widened(array, 0), unit)
        whole = _to_integral(truncated(scaled, 0), LONG)
        return Converted(whole.values.cast(arrow_type), whole.refused)
    try:
        micros = pc.multiply_checked(array.cast(pa.int64()), MICROS_PER_SECOND)
    except pa.ArrowInvalid as error:
        raise InvalidInputError("cannot cast a number to timestamp: it is out of range") from error
    return Converted(micros.cast(arrow_type))


def floor_divide(array: Array, divisor: int) -> Array:
    """Divide integers by a positive constant, and round down."""
    quotient = compute.divide(array, divisor)
    is_above = compute.greater(compute.multiply(quotient, divisor), array)
    return compute.subtract(quotient, is_above.cast(quotient.type))


def _to_string(array: Array, source: DataType, _to: DataType) -> Converted:
    """Convert values to strings in Spark's form."""
    if source == BINARY:
        return Converted(array.cast(pa.string()))
    if source in FRACTIONALS:
        return Converted(string_forms.of_fractionals(array))
    if source in DATETIMES:
        write = string_forms.of_dates if source == DATE else string_forms.of_timestamps
        return Converted(write(array))
    if is_decimal(source):
        return Converted(string_forms.of_decimals(array))
    if isinstance(source, PrimitiveType):
        return Converted(array.cast(pa.string()))
    if isinstance(source, ArrayType | MapType | StructType):
        return Converted(pa.array(_nested_strings(array, source), pa.string()))
    return _unsupported(array, source, STRING)


def _nested_strings(array: Array, source: DataType) -> list[str | None]:
    if isinstance(source, PrimitiveType):
        shown: list[str | None] = cast(array, source, STRING).to_pylist()
        return shown
    return nested_texts(array, source, _nested_strings)


def _string_to_number(array: Array, source: DataType, to: PrimitiveType) -> Converted:
    trimmed = string_forms.trim_all(array)
    if to in FRACTIONALS:
        return _string_to_fractional(trimmed, to)
    if is_decimal(to):
        return _string_to_decimal(trimmed, source, to)
    valid = compute.match_substring_regex(trimmed, r"\A[+-]?[0-9]+\z")
    kept = compute.if_else(valid, trimmed, None)
    try:
        return Converted(
            string_forms.without_plus(kept).cast(to_arrow_type(to)), compute.invert(valid)
        )
    except pa.ArrowInvalid:
        fits = string_forms.integers_within(kept, to.primitive.bits)
        short = string_forms.without_plus(compute.if_else(fits, kept, None))
        return Converted(short.cast(to_arrow_type(to)), compute.invert(_fit_too(valid, fits)))


def _fit_too(valid: Array, fits: Array) -> Array:
    # `valid` is NULL for NULL strings, and so is the result.
    return pc.and_kleene(valid, compute.if_else(valid, fits, False))  # noqa: FBT003  # a constant


def _string_to_fractional(trimmed: Array, to: PrimitiveType) -> Converted:
    lowered = pc.ascii_lower(trimmed)
    valid = compute.match_substring_regex(
        lowered,
        r"\A([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?[df]?|[+-]?inf(inity)?|[+-]?nan)\z",
    )
    kept = compute.if_else(valid, lowered, None)
    bare = compute.replace_substring_regex(kept, r"([0-9.])[df]\z", r"\1")
    bare = compute.replace_substring_regex(bare, r"\A[+-]nan\z", "nan")
    return Converted(string_forms.without_plus(bare).cast(to_arrow_type(to)), compute.invert(valid))


def _string_to_decimal(trimmed: Array, _source: DataType, to: PrimitiveType) -> Converted:
    """Convert strings, also with an exponent, to decimals; halves are rounded away from zero.

    Cost: by row for values with too many digits for a pass over the column.
    """
    valid = compute.match_substring_regex(
        trimmed, r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
    )
    # A whole digit more than the type has, so that a value out of range is one after rounding, too.
    digits = to.precision - to.scale + 1
    wide = pa.decimal256(_MOST_DIGITS, min(_MOST_DIGITS - digits, to.scale + 36))
    short = compute.match_substring_regex(trimmed, _short_number(digits, wide.scale))
    kept = compute.if_else(compute.and_(valid, short), trimmed, None)
    values, refused = to_decimal(kept.cast(wide), decimal_type(38, 38), to)
    unfit = compute.invert(valid)
    if refused is not None:
        unfit = compute.or_(unfit, compute.fill_null(refused, NO))
    long = compute.and_(valid, compute.invert(short))
    if compute.any(long).as_py():
        found, fits = string_forms.decimals_by_row(trimmed.filter(long), to.precision, to.scale)
        values = pc.replace_with_mask(values, long, found)
        unfit = pc.replace_with_mask(unfit, long, compute.invert(fits))
    return Converted(values, unfit)


def _short_number(digits: int, places: int) -> str:
    """Return a pattern of numbers with at most so many digits before and after the point."""
    forms = [rf"[0-9]{{0,{digits}}}(\.[0-9]{{0,{places}}})?"]
    # Doubles have at most 17 digits. Arrow writes the large and the small ones with an exponent.
    if places >= 17 + 19:  # the digits and the exponent
        forms.append(r"[0-9]?(\.[0-9]{0,17})?[eE]-(0?[0-9]|1[0-9])")
    if digits > 9:  # the largest exponent below
        forms.append(r"[0-9]?(\.[0-9]{0,17})?[eE]\+?0?[0-9]")
    if digits > 29:  # as above
        forms.append(r"[0-9]?(\.[0-9]{0,17})?[eE]\+?[12][0-9]")
    return rf"\A[+-]?({'|'.join(forms)})\z"


def _string_to_boolean(array: Array, _source: DataType, _to: DataType) -> Converted:
    lowered = compute.utf8_lower(string_forms.trim_all(array))
    is_true = compute.is_in(lowered, pa.array(["t", "true", "y", "yes", "1"]))
    is_false = compute.is_in(lowered, pa.array(["f", "false", "n", "no", "0"]))
    known = compute.or_(is_true, is_false)
    return Converted(
        compute.if_else(known, is_true, None),
        compute.and_(compute.invert(known), compute.is_valid(array)),
    )


def _string_to_date(array: Array, _source: DataType, _to: DataType) -> Converted:
    return Converted(*string_forms.to_dates(array))


def _string_to_timestamp(array: Array, _source: DataType, to: DataType) -> Converted:
    micros, refused = string_forms.to_micros(array, has_zone=to == TIMESTAMP)
    return Converted(micros.cast(to_arrow_type(to)), refused)


def _string_to_nanos(array: Array, _source: DataType, to: DataType) -> Converted:
    nanos, refused = string_forms.to_nanos(array, has_zone=to == TIMESTAMP_NANOS)
    return Converted(nanos.cast(to_arrow_type(to)), refused)


def _string_to_binary(array: Array, _source: DataType, _to: DataType) -> Converted:
    return Converted(array.cast(pa.binary()))


_FROM_STRING: Final[dict[DataType, Callable[[Array, Any, Any], Converted]]] = {
    BOOLEAN: _string_to_boolean,
    DATE: _string_to_date,
    TIMESTAMP: _string_to_timestamp,
    TIMESTAMP_NTZ: _string_to_timestamp,
    TIMESTAMP_NANOS: _string_to_nanos,
    TIMESTAMP_NANOS_NTZ: _string_to_nanos,
    BINARY: _string_to_binary,
}


def _without(array: Array, refused: Array) -> Array:
    return compute.if_else(refused, None, array)


# --- Casts of arrays, maps and structs, and their conversion to strings


def cast_nested(array: Array, source: DataType, to: DataType, convert: Convert) -> Array:
    """Cast the values of a nested type recursively; `convert` casts the parts."""
    match source, to:
        case ArrayType(), ArrayType():
            values = convert(compute.list_flatten(array), source.element_type, to.element_type)
            return compute.cast(_as_lists(array, values), to_arrow_type(to))
        case MapType(), MapType():
            return _cast_map(array, source, to, convert)
        case StructType(), StructType():
            parts = [
                convert(compute.struct_field(array, [index]), mine.type, theirs.type)
                for index, (mine, theirs) in enumerate(zip(source, to, strict=True))
            ]
            fields: Any = to_arrow_type(to)
            return pa.StructArray.from_arrays(
                parts, fields=list(fields), mask=compute.is_null(array)
            )
        case _:
            raise TypeError(f"{source} and {to} are not nested alike")


def _as_lists(array: Array, values: Array) -> pa.ListArray[Any]:
    offsets = _offsets(compute.fill_null(compute.list_value_length(array), 0))
    return pa.ListArray.from_arrays(offsets, values, mask=compute.is_null(array))


def _offsets(lengths: Array) -> Array:
    ends = compute.cumulative_sum(compute.cast(lengths, pa.int32()))
    return pa.concat_arrays([pa.array([0], pa.int32()), ends])


def _cast_map(array: Array, source: MapType, to: MapType, convert: Convert) -> Array:
    keys, items, lengths = map_parts(array)
    keys = convert(keys, source.key_type, to.key_type)
    items = convert(items, source.value_type, to.value_type)
    built = pa.MapArray.from_arrays(_offsets(lengths), keys, items, mask=compute.is_null(array))
    return compute.cast(built, to_arrow_type(to))


def map_parts(array: Array) -> tuple[Array, Array, Array]:
    """Return the keys and items of maps as flat arrays, and each map's number of entries."""
    lengths = compute.subtract(array.offsets[1:], array.offsets[:-1])
    lengths = compute.if_else(compute.is_valid(array), lengths, pa.scalar(0, lengths.type))
    # Arrow has no kernel that flattens maps. The entries of NULL maps must be omitted.
    known = array.drop_null()
    if len(known) == 0:
        return array.keys.slice(0, 0), array.items.slice(0, 0), lengths
    starts, ends = known.offsets[:-1].to_pylist(), known.offsets[1:].to_pylist()
    keys = [known.keys.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
    items = [known.items.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
    return pa.concat_arrays(keys), pa.concat_arrays(items), lengths


def nested_texts(
    array: Array, source: DataType, texts_of: Callable[[Array, DataType], list[str | None]]
) -> list[str | None]:
    """Convert nested values to Spark's strings: `[1, null]`, `{a -> 1}`, `{1, x}`. Cost: by row."""
    valid = compute.is_valid(array).to_pylist()
    match source:
        case ArrayType():
            shown = _shown(texts_of(compute.list_flatten(array), source.element_type))
            lengths: Any = compute.fill_null(compute.list_value_length(array), 0).to_pylist()
            rows = [f"[{', '.join(part)}]" for part in _slices(shown, lengths)]
        case MapType():
            keys, items, counts = map_parts(array)
            pairs = zip(
                _shown(texts_of(keys, source.key_type)),
                _shown(texts_of(items, source.value_type)),
                strict=True,
            )
            shown = [f"{key} -> {item}" for key, item in pairs]
            rows = [f"{{{', '.join(part)}}}" for part in _slices(shown, counts.to_pylist())]
        case StructType():
            columns = [
                _shown(texts_of(compute.struct_field(array, [index]), field.type))
                for index, field in enumerate(source)
            ]
            rows = [f"{{{', '.join(row)}}}" for row in zip(*columns, strict=True)]
        case _:
            raise TypeError(f"{source} is not nested")
    return [row if is_valid else None for row, is_valid in zip(rows, valid, strict=True)]


def _shown(texts: list[str | None]) -> list[str]:
    return ["null" if text is None else text for text in texts]


def _slices(values: list[str], lengths: list[int]) -> list[list[str]]:
    found: list[list[str]] = []
    start = 0
    for length in lengths:
        found.append(values[start : start + length])
        start += length
    return found
