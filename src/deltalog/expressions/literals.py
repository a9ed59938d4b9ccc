"""Python values as constants of a type, and back from Arrow.

Owns which type a bare Python value has. Knows no expressions.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.expressions.coercion import common_type
from deltalog.schema.arrow import from_arrow_type, to_arrow_type
from deltalog.schema.primitives import worded_literal
from deltalog.schema.primitives.numbers import MAX_DIGITS
from deltalog.schema.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DataType,
    Field,
    PrimitiveType,
    StructType,
    decimal_type,
)

_INT_BITS: Final = 31
_LONG_BITS: Final = 63


def plain_value(value: object) -> tuple[Any, DataType]:
    """A constant as a plain Python value, with the type that Spark gives it.

    Arrow scalars keep their type; NumPy scalars become Python's.

    Raises:
        InvalidInputError: a value of this kind cannot stand in an expression.
    """
    if isinstance(value, pa.Scalar):
        data_type = from_arrow_type(value.type)
        return value.cast(to_arrow_type(data_type)).as_py(), data_type
    unwrap = getattr(value, "item", None)
    if unwrap is not None and not isinstance(value, dt.date):
        value = unwrap()
    return value, natural_type(value)


def natural_type(value: object) -> DataType:
    """The type that Spark gives a constant: `5` is an integer, `3000000000` a long.

    Raises:
        InvalidInputError: a value of this kind cannot stand in an expression.
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
        InvalidInputError: it is not finite, or has too many digits.
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
            raise InvalidInputError(f"cannot use {value!r} in an expression: its types differ")
        return ArrayType(element, contains_null=any(item is None for item in value))
    if isinstance(value, dict):
        return StructType([Field(str(name), natural_type(item)) for name, item in value.items()])
    raise InvalidInputError(
        f"cannot use {value!r} in an expression: expected None, bool, int, float, Decimal, str, "
        "bytes, date, datetime, list or dict"
    )


def to_scalar(value: object, data_type: DataType) -> pa.Scalar[Any]:
    """A constant as an Arrow scalar of its type.

    Raises:
        InvalidInputError: the value is none of that type.
    """
    try:
        return pa.scalar(value, type=to_arrow_type(data_type))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{value!r} is no value of type {data_type}: {error}") from error


def from_scalar(scalar: pa.Scalar[Any]) -> Any:
    """The Python value of an Arrow scalar; timestamps keep UTC.

    Raises:
        InvalidInputError: Python has no such value (dates outside of years 1 to 9999).
    """
    try:
        value = scalar.as_py()
    except (OverflowError, ValueError) as error:
        raise InvalidInputError(
            f"a {scalar.type} is outside of what Python can hold: {error}"
        ) from error
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value
