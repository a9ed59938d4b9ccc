"""Partition values, written: a typed value as the text in the log.

Protocol: Partition Value Serialization
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.partition_values.moments import offset_of
from deltalog.partition_values.parse import is_decimal
from deltalog.schema.arrow import to_arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.schema.types import DataType

    Encoder = Callable[[Any], str]


def encode_value(value: Any, data_type: DataType, *, time_zone: str = "UTC") -> str | None:
    """The serialised form of a partition value; None, "" and b"" are NULL.

    Args:
        value: as Arrow's `as_py` gives it.
        data_type: of the column.
        time_zone: of a naive datetime for a `timestamp` column.

    Raises:
        InvalidInputError: the value is none of the type, or bytes are no UTF-8 (the protocol has
            no text for those).

    Protocol: Partition Value Serialization
    """
    if value is None or (isinstance(value, str | bytes) and not value):
        return None
    encoder = _encoder_of(data_type, time_zone)
    try:
        if encoder is not None:
            return encoder(value)
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        raise InvalidInputError(
            f"cannot write {value!r} as a partition value of type {data_type}: {error}"
        ) from error
    raise InvalidInputError(f"a column of type {data_type} cannot be a partition column")


def _expect(value: Any, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"found a {type(value).__name__}")


def _encoder_of(data_type: DataType, zone: str) -> Encoder | None:
    if is_decimal(data_type):
        return partial(_encode_decimal, arrow_type=to_arrow_type(data_type))
    name = str(data_type)
    return partial(_encode_timestamp, zone=zone) if name == "timestamp" else _ENCODERS.get(name)


def _encode_integer(value: Any, *, bits: int) -> str:
    _expect(value, int)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError("the value is out of range")
    return str(int(value))


def _encode_float(value: Any, *, bits: int) -> str:
    _expect(value, (float, int))
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    # The shortest digits that give the number again: fewer of them in 32 bits than in 64.
    shortest = (
        str(pa.scalar(number, pa.float32()).cast(pa.string())) if bits == 32 else repr(number)
    )
    return _java_float(Decimal(shortest))


def _java_float(number: Decimal) -> str:
    # As Java prints it, so that Spark and deltalog give one text for one value.
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


def _encode_decimal(value: Any, *, arrow_type: pa.DataType) -> str:
    _expect(value, (Decimal, int))
    scalar: Any = pa.scalar(Decimal(value)).cast(arrow_type)
    return f"{scalar.as_py():f}"


def _encode_boolean(value: Any) -> str:
    _expect(value, bool)
    return "true" if value else "false"


def _encode_string(value: Any) -> str:
    _expect(value, str)
    value.encode()  # a lone surrogate is no text
    return str(value)


def _encode_binary(value: Any) -> str:
    _expect(value, (bytes, bytearray, memoryview))
    return bytes(value).decode()


def _encode_date(value: Any) -> str:
    _expect(value, dt.date)
    if isinstance(value, dt.datetime):
        raise TypeError("found a datetime")
    return str(value.isoformat())


def _encode_timestamp(value: Any, *, zone: str) -> str:
    _expect(value, dt.datetime)
    offset = value.utcoffset()
    moment = value.replace(tzinfo=None) - (offset_of(zone, value) if offset is None else offset)
    return f"{moment.isoformat(timespec='microseconds')}Z"


def _encode_timestamp_ntz(value: Any) -> str:
    _expect(value, dt.datetime)
    if value.utcoffset() is not None:
        raise TypeError("found a datetime with a time zone")
    return str(
        value.isoformat(sep=" ", timespec="microseconds" if value.microsecond else "seconds")
    )


_ENCODERS: Final[dict[str, Encoder]] = {
    "string": _encode_string,
    "binary": _encode_binary,
    "byte": partial(_encode_integer, bits=8),
    "short": partial(_encode_integer, bits=16),
    "integer": partial(_encode_integer, bits=32),
    "long": partial(_encode_integer, bits=64),
    "float": partial(_encode_float, bits=32),
    "double": partial(_encode_float, bits=64),
    "boolean": _encode_boolean,
    "date": _encode_date,
    "timestamp_ntz": _encode_timestamp_ntz,
}
