"""The types of Python values as constants, and their conversion to and from Arrow scalars.

Contains the default type of a Python value. Does not depend on expressions.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.argument_types import shortened
from deltalog._util.small_arrays import small_array, small_scalar
from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import common_type
from deltalog.schema.arrow import from_arrow_type, to_arrow_type
from deltalog.schema.primitives import Family, worded_literal
from deltalog.schema.primitives.moments import (
    NANOS_OF_MICRO,
    is_missing,
    micros_of,
    value_or_count,
)
from deltalog.schema.primitives.numbers import MAX_DIGITS
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP_NANOS,
    TIMESTAMP_NANOS_NTZ,
    TIMESTAMP_NTZ,
    VOID,
    YEAR_TO_MONTH,
    ArrayType,
    DataType,
    Field,
    PrimitiveType,
    StructType,
    decimal_type,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_INT_BITS: Final = 31
_LONG_BITS: Final = 63
_OF_PYTHON: Final = frozenset(
    {bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, NoneType}
)
# Matches the name of a NumPy datetime64 or timedelta64 type: its kind, its number of units and its
# unit, such as nanoseconds or months.
_NUMPY_UNIT: Final = re.compile(r"[<>=|]?([mM])8\[(\d*)(\w+)\]")
_MONTHS: Final = {"Y": 12, "M": 1}
_DAYS: Final = frozenset({"Y", "M", "W", "D"})
_FINEST: Final = frozenset({"ps", "fs", "as"})
_DAY: Final = dt.timedelta(days=1)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def values_of(value: object) -> Collection[Any] | None:
    """Return the values of a list, a set, or an array of a library; None for one value."""
    to_list: Any = getattr(value, "tolist", None) or getattr(value, "to_list", None)
    items = value if to_list is None else to_list()
    return items if isinstance(items, list | tuple | set | frozenset) else None


def plain_value(value: object) -> tuple[Any, DataType]:
    """Return a constant as a Python value, with its type in Spark.

    Arrow scalars have their own type; NumPy scalars become Python values, and pandas' NaT and NA
    become None. A timestamp that is not a whole number of microseconds becomes a number of
    nanoseconds. A timedelta must be a whole number of microseconds.

    Raises:
        InvalidInputError: a value of this kind cannot be used in an expression.
    """
    if type(value) in _OF_PYTHON:
        return value, natural_type(value)
    if isinstance(value, pa.Scalar):
        return _of_scalar(value)
    if is_missing(value):
        return None, VOID
    if isinstance(value, UUID):
        return str(value), STRING
    unwrap = getattr(value, "item", None)
    if unwrap is not None and not isinstance(value, dt.date):
        plain = unwrap()
        unit = _NUMPY_UNIT.fullmatch(getattr(getattr(value, "dtype", None), "str", ""))
        if unit is not None and isinstance(plain, int):
            return _of_numpy(value, plain, *unit.groups())
        value = plain
    # A pandas Timestamp is a Python datetime with additional nanoseconds.
    nanos: Any = getattr(value, "nanosecond", 0)
    if isinstance(value, dt.datetime) and isinstance(nanos, int) and nanos:
        fine = micros_of(value) * NANOS_OF_MICRO + nanos
        return fine, TIMESTAMP_NANOS_NTZ if value.tzinfo is None else TIMESTAMP_NANOS
    finer: Any = getattr(value, "nanoseconds", 0)
    if isinstance(value, dt.timedelta) and finer:
        raise _too_fine(value)
    if isinstance(value, pa.MonthDayNano):
        return _of_interval(value)
    return value, natural_type(value)


def _of_scalar(scalar: pa.Scalar[Any]) -> tuple[Any, DataType]:
    if isinstance(scalar, pa.TimestampScalar) and scalar.type.unit == "ns" and scalar.is_valid:
        nanos: Any = scalar.value
        return _of_nanos(nanos, has_zone=scalar.type.tz is not None)
    if isinstance(scalar, pa.MonthDayNanoIntervalScalar):
        found = scalar.as_py()
        return _of_interval(found) if scalar.is_valid else (None, VOID)
    data_type = from_arrow_type(scalar.type, declared=True)
    try:
        return value_or_count(scalar.cast(to_arrow_type(data_type))), data_type
    except (pa.ArrowInvalid, OverflowError) as error:
        if isinstance(scalar, pa.DurationScalar) and scalar.type.unit == "ns":
            raise _too_fine(scalar) from error
        if isinstance(error, OverflowError) or isinstance(
            scalar, pa.TimestampScalar | pa.DurationScalar
        ):
            raise _outside(scalar, data_type) from error
        raise InvalidInputError(f"cannot use {_shown(scalar)} in an expression: {error}") from error


def _of_nanos(nanos: int, *, has_zone: bool) -> tuple[Any, DataType]:
    """Convert nanoseconds to a timestamp; whole microseconds become a microsecond timestamp."""
    if nanos % NANOS_OF_MICRO:
        return nanos, TIMESTAMP_NANOS if has_zone else TIMESTAMP_NANOS_NTZ
    kind = pa.timestamp("us", "UTC" if has_zone else None)
    # Python can represent all values, because 64-bit nanoseconds end in 2262.
    value = pa.scalar(nanos // NANOS_OF_MICRO, kind).as_py()
    return value, natural_type(value)


def _of_numpy(value: object, count: int, kind: str, step: str, unit: str) -> tuple[Any, DataType]:
    """Convert a NumPy datetime64 or timedelta64; nanoseconds and months become integers."""
    count *= int(step or 1)
    if kind == "m" and unit in _MONTHS:
        return _months(count * _MONTHS[unit], value), YEAR_TO_MONTH
    if unit in _FINEST or (kind == "m" and unit == "ns" and count % NANOS_OF_MICRO):
        raise _too_fine(value)
    # For a unit that Python supports, `item` returns an integer only for values out of range.
    if unit != "ns":
        if kind == "m":
            raise _outside(value, DAY_TO_SECOND)
        return _far_of_numpy(value, is_day=unit in _DAYS)
    if kind == "M":
        return _of_nanos(count, has_zone=False)
    return dt.timedelta(microseconds=count // NANOS_OF_MICRO), DAY_TO_SECOND


def _far_of_numpy(value: Any, *, is_day: bool) -> tuple[int, DataType]:
    """Convert a date or time outside of the years 1 to 9999 to days or microseconds since 1970."""
    data_type = DATE if is_day else TIMESTAMP_NTZ
    counted = value.astype("datetime64[D]" if is_day else "datetime64[us]")
    count = int(counted.astype("int64"))
    bits = 32 if is_day else 64
    # NumPy's conversion of a number that is too large overflows without an error.
    if counted.astype(value.dtype) != value or not -(1 << bits - 1) <= count < 1 << bits - 1:
        raise _outside(value, data_type)
    return count, data_type


def _of_interval(value: pa.MonthDayNano) -> tuple[Any, DataType]:
    """Convert an Arrow interval, which must not mix months with days or shorter units."""
    micros, rest = divmod(value.nanoseconds, NANOS_OF_MICRO)
    if rest:
        raise _too_fine(value)
    if not value.months:
        try:
            return value.days * _DAY + dt.timedelta(microseconds=micros), DAY_TO_SECOND
        except OverflowError as error:
            raise _outside(value, DAY_TO_SECOND) from error
    if value.days or value.nanoseconds:
        raise InvalidInputError(
            f"cannot use {value!r} in an expression: an interval has either months, or days "
            "and shorter units"
        )
    return value.months, YEAR_TO_MONTH


def _too_fine(value: object) -> InvalidInputError:
    return InvalidInputError(
        f"cannot use {value!r} in an expression: expected no more than whole microseconds"
    )


def _outside(value: object, data_type: DataType) -> InvalidInputError:
    most = (
        "an interval of less than a billion days"
        if data_type == DAY_TO_SECOND
        else f"a {data_type} of 32 bits of days or 64 bits of microseconds"
    )
    return InvalidInputError(f"cannot use {_shown(value)} in an expression: expected {most}")


def _shown(value: object) -> str:
    """Format a value for messages; `repr` fails for Arrow scalars outside of Python's range."""
    scalar: Any = value
    return f"the {scalar.type} {scalar.value}" if isinstance(value, pa.Scalar) else str(value)


def _months(count: int, value: object) -> int:
    if not -(1 << _INT_BITS) <= count < 1 << _INT_BITS:
        raise InvalidInputError(
            f"cannot use {value!r} in an expression: expected a number of months that fits 32 bits"
        )
    return count


def natural_type(value: object) -> DataType:
    """Return the type of a constant in Spark: `5` is an integer, `3000000000` a long.

    Raises:
        InvalidInputError: a value of this kind cannot be used in an expression.
    """
    match value:
        case None:
            return VOID
        case bool():
            return BOOLEAN
        case int():
            return _integral_type(value)
        case float():
            return DOUBLE
        case Decimal():
            return type_of_decimal(value)
        case str():
            return STRING
        case bytes() | bytearray() | memoryview():
            return BINARY
        case dt.timedelta():
            return DAY_TO_SECOND
        case _:
            found = worded_literal(value)
            return PrimitiveType(found[0].name) if found else _nested_type(value)


def _integral_type(value: int) -> DataType:
    magnitude = value if value >= 0 else -value - 1
    if magnitude.bit_length() <= _INT_BITS:
        return INTEGER
    if magnitude.bit_length() <= _LONG_BITS:
        return LONG
    return type_of_decimal(Decimal(value))


def type_of_decimal(value: Decimal) -> DataType:
    """Return the narrowest type of a finite decimal.

    Raises:
        InvalidInputError: the decimal is not finite, or has too many digits.
    """
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidInputError(f"cannot use {value} in an expression: SQL decimals are finite")
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > MAX_DIGITS:
        raise InvalidInputError(
            f"cannot use {value} in an expression: a decimal has at most {MAX_DIGITS} digits"
        )
    return decimal_type(precision, scale)


def _nested_type(value: object) -> DataType:
    if isinstance(value, list | tuple):
        element: DataType | None = VOID
        for item in value:
            element = element and common_type(element, natural_type(item))
        if element is None:
            raise InvalidInputError(
                f"cannot use {shortened(value)} in an expression: its elements have different types"
            )
        return ArrayType(element, contains_null=any(item is None for item in value))
    if isinstance(value, dict):
        return StructType([Field(str(name), natural_type(item)) for name, item in value.items()])
    raise InvalidInputError(
        f"cannot use {shortened(value)} in an expression: "
        "expected None, bool, int, float, Decimal, str, "
        "bytes, date, datetime, timedelta, list or dict"
    )


def to_scalar(value: object, data_type: DataType) -> pa.Scalar[Any]:
    """Return a constant as an Arrow scalar of its type.

    Raises:
        InvalidInputError: the value does not have that type.
    """
    if isinstance(value, dt.timedelta):
        value = value // _MICROSECOND  # Arrow's own conversion overflows for large timedeltas
    if isinstance(value, dict | list | tuple):
        _check_fields(value, data_type)
    try:
        return small_scalar(value, to_arrow_type(data_type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError) as error:
        reason = str(error).replace(repr(value), shortened(value))
        raise InvalidInputError(
            f"{shortened(value)} is not a value of type {data_type}: {reason}"
        ) from error


def _check_fields(value: object, data_type: DataType) -> None:
    """Raise for parts of a nested value that Arrow would cut or ignore.

    Raises:
        InvalidInputError: a struct lacks a field of a dictionary, or a number in a column of
            integers has a fraction.
    """
    if isinstance(value, list | tuple) and isinstance(data_type, ArrayType):
        for item in value:
            _check_fields(item, data_type.element_type)
    if isinstance(value, float | Decimal) and _is_integral(data_type) and value % 1 != 0:
        raise InvalidInputError(f"{shortened(value)} is not a value of type {data_type}")
    if isinstance(value, dict) and isinstance(data_type, StructType):
        for name, item in value.items():
            if name not in data_type.names:
                raise InvalidInputError(
                    f"{shortened(value)} is not a value of type {data_type}: "
                    f"there is no field {name!r}; "
                    f"the fields are {', '.join(map(repr, data_type.names))}"
                )
            _check_fields(item, data_type.fields_named(name)[0].type)


def _is_integral(data_type: DataType) -> bool:
    return isinstance(data_type, PrimitiveType) and data_type.primitive.family is Family.INTEGRAL


def from_scalar(scalar: pa.Scalar[Any]) -> Any:
    """Return an Arrow scalar as a Python value, with timestamps in UTC and nanoseconds as int.

    A date or timestamp outside of the years 1 to 9999 becomes its number of days or microseconds.

    Raises:
        InvalidInputError: Python cannot represent the value.
    """
    if isinstance(scalar, pa.TimestampScalar) and scalar.type.unit == "ns":
        return scalar.value
    try:
        value = value_or_count(scalar)
    except (OverflowError, ValueError) as error:
        raise InvalidInputError(f"a {scalar.type} is out of Python's range: {error}") from error
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value


def to_array(values: Sequence[object], data_type: DataType) -> pa.Array[Any]:
    """Return constants as an Arrow array of their type; see `to_scalar`."""
    arrow_type = to_arrow_type(data_type)
    if set(map(type, values)) in ({int}, {str}):
        with suppress(pa.ArrowException, OverflowError):  # `to_scalar` raises a better error
            return small_array(values, arrow_type)
    return array_of([to_scalar(value, data_type) for value in values], arrow_type)


def array_of(values: Sequence[pa.Scalar[Any]], arrow_type: pa.DataType) -> pa.Array[Any]:
    """Return an array of constants of one type."""
    counted = pt.is_temporal(arrow_type)  # as numbers, because Python's years end in 9999
    return small_array([one.value if counted else one.as_py() for one in values], arrow_type)  # type: ignore[attr-defined]  # temporal scalars have `value`
