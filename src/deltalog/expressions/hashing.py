"""`hash` and `xxhash64` of values of any type, as in Spark.

The hash of each value is the seed for the next value; NULL leaves the seed unchanged.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.kernels import Datum
from deltalog.errors import InvalidInputError
from deltalog.expressions.rows import as_array, python_values
from deltalog.schema.arrow import from_arrow_type
from deltalog.schema.primitives.moments import values_or_counts
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
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Hash = Callable[[Any, int], int]

_M32: Final = (1 << 32) - 1
_M64: Final = (1 << 64) - 1
_SEED: Final = 42
_DAY_ZERO: Final = dt.date(1970, 1, 1)
_MOMENT_ZERO: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # UTC without a time zone
_MICRO: Final = dt.timedelta(microseconds=1)
_LONG_DIGITS: Final = 18
_DIGITS: Final = decimal.Context(prec=80)


class _Murmur3:
    """MurmurHash3 with 32 bits, in Spark's variant, which mixes the remaining bytes one by one."""

    bits = 32

    def of_int(self, value: int, seed: int) -> int:
        return _finish32(_mix32(seed, value & _M32), 4)

    def of_long(self, value: int, seed: int) -> int:
        found = _mix32(seed, value & _M32)
        return _finish32(_mix32(found, (value >> 32) & _M32), 8)

    def of_bytes(self, data: bytes, seed: int) -> int:
        aligned = len(data) - len(data) % 4
        found = seed
        for (word,) in struct.iter_unpack("<I", data[:aligned]):
            found = _mix32(found, word)
        for (byte,) in struct.iter_unpack("<b", data[aligned:]):
            found = _mix32(found, byte & _M32)
        return _finish32(found, len(data))


def _rotate(value: int, by: int, bits: int) -> int:
    return ((value << by) | (value >> (bits - by))) & ((1 << bits) - 1)


def _mix32(seed: int, word: int) -> int:
    word = _rotate(word * 0xCC9E2D51 & _M32, 15, 32) * 0x1B873593 & _M32
    return (_rotate(seed ^ word, 13, 32) * 5 + 0xE6546B64) & _M32


def _finish32(found: int, length: int) -> int:
    found ^= length
    found = (found ^ (found >> 16)) * 0x85EBCA6B & _M32
    found = (found ^ (found >> 13)) * 0xC2B2AE35 & _M32
    return found ^ (found >> 16)


_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


class _XxHash64:
    """xxHash with 64 bits."""

    bits = 64

    def of_int(self, value: int, seed: int) -> int:
        found = (seed + _P5 + 4) & _M64
        found ^= (value & _M32) * _P1 & _M64
        return _finish64((_rotate(found, 23, 64) * _P2 + _P3) & _M64)

    def of_long(self, value: int, seed: int) -> int:
        return _finish64(_mix64((seed + _P5 + 8) & _M64, value & _M64))

    def of_bytes(self, data: bytes, seed: int) -> int:
        length, at = len(data), 0
        if length >= 32:
            quarters = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
            while at + 32 <= length:
                words = struct.unpack_from("<4Q", data, at)
                quarters = [
                    _round64(quarter, word) for quarter, word in zip(quarters, words, strict=True)
                ]
                at += 32
            found = sum(
                _rotate(quarter, by, 64)
                for quarter, by in zip(quarters, (1, 7, 12, 18), strict=True)
            )
            for quarter in quarters:
                found = ((found & _M64 ^ _round64(0, quarter)) * _P1 + _P4) & _M64
        else:
            found = seed + _P5
        found = (found + length) & _M64
        while at + 8 <= length:
            found = _mix64(found, int.from_bytes(data[at : at + 8], "little"))
            at += 8
        if at + 4 <= length:
            found ^= int.from_bytes(data[at : at + 4], "little") * _P1 & _M64
            found = (_rotate(found, 23, 64) * _P2 + _P3) & _M64
            at += 4
        for byte in data[at:]:
            found ^= byte * _P5 & _M64
            found = _rotate(found, 11, 64) * _P1 & _M64
        return _finish64(found)


def _round64(quarter: int, word: int) -> int:
    return _rotate((quarter + word * _P2) & _M64, 31, 64) * _P1 & _M64


def _mix64(found: int, word: int) -> int:
    return (_rotate(found ^ _round64(0, word), 27, 64) * _P1 + _P4) & _M64


def _finish64(found: int) -> int:
    found = (found ^ (found >> 33)) * _P2 & _M64
    found = (found ^ (found >> 29)) * _P3 & _M64
    return found ^ (found >> 32)


def _hash_of(data_type: DataType, method: Any) -> Hash:
    match data_type:
        case ArrayType():
            element = _hash_of(data_type.element_type, method)
            return lambda values, seed: _folded([element] * len(values), values, seed)
        case StructType():
            parts = [_hash_of(field.type, method) for field in data_type]
            return lambda values, seed: _folded(parts, list(values.values()), seed)
        case PrimitiveType() if data_type.is_decimal:
            return _hash_of_decimal(data_type, method)
        case MapType():
            raise InvalidInputError("maps have no hash: their entries have no order")
        case _:
            found = _PRIMITIVES.get(data_type)
            if found is None:
                raise InvalidInputError(f"values of type {data_type} have no hash")
            return found(method)


def _folded(parts: list[Hash], values: list[Any], seed: int) -> int:
    for part, value in zip(parts, values, strict=True):
        seed = seed if value is None else part(value, seed)
    return seed


def _hash_of_decimal(data_type: PrimitiveType, method: Any) -> Hash:
    scale = data_type.scale

    def unscaled(value: Any) -> int:
        return int(value.scaleb(scale, context=_DIGITS))

    if data_type.precision <= _LONG_DIGITS:
        return lambda value, seed: method.of_long(unscaled(value), seed)
    return lambda value, seed: method.of_bytes(_java_bytes(unscaled(value)), seed)


def _java_bytes(value: int) -> bytes:
    """Return an integer's shortest two's complement, as `BigInteger.toByteArray` does."""
    magnitude = value if value >= 0 else ~value
    return value.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _float_bits(value: float) -> int:
    # As in Spark, all NaNs have the same hash, and -0.0 has the hash of 0.0.
    word = b"\x7f\xc0\x00\x00" if value != value else struct.pack(">f", value + 0.0)  # noqa: PLR0124  # only NaN differs from itself
    return int.from_bytes(word, "big")


def _double_bits(value: float) -> int:
    word = b"\x7f\xf8" + bytes(6) if value != value else struct.pack(">d", value + 0.0)  # noqa: PLR0124  # as above
    return int.from_bytes(word, "big")


def _values(argument: Datum, rows: int) -> list[Any]:
    if pa.types.is_date(argument.type) or pa.types.is_timestamp(argument.type):
        return values_or_counts(as_array(argument, rows))
    return python_values(argument, rows)


def _days(value: dt.date | int) -> int:
    return value if isinstance(value, int) else (value - _DAY_ZERO).days


def _micros(value: dt.datetime | int) -> int:
    if isinstance(value, int):  # a timestamp outside of the years 1 to 9999
        return value
    return (value.replace(tzinfo=None) - _MOMENT_ZERO) // _MICRO


def _integer(method: Any) -> Hash:
    found: Hash = method.of_int
    return found


def _long(method: Any) -> Hash:
    found: Hash = method.of_long
    return found


def _bytes(method: Any) -> Hash:
    found: Hash = method.of_bytes
    return found


def _moment(method: Any) -> Hash:
    return lambda value, seed: method.of_long(_micros(value), seed)


_PRIMITIVES: Final[dict[DataType, Callable[[Any], Hash]]] = {
    **dict.fromkeys((BYTE, SHORT, INTEGER), _integer),
    LONG: _long,
    BOOLEAN: lambda method: lambda value, seed: method.of_int(int(value), seed),
    FLOAT: lambda method: lambda value, seed: method.of_int(_float_bits(value), seed),
    DOUBLE: lambda method: lambda value, seed: method.of_long(_double_bits(value), seed),
    DATE: lambda method: lambda value, seed: method.of_int(_days(value), seed),
    TIMESTAMP: _moment,
    TIMESTAMP_NTZ: _moment,
    STRING: lambda method: lambda value, seed: method.of_bytes(value.encode(), seed),
    BINARY: _bytes,
    VOID: lambda _: lambda _value, seed: seed,
}


def _hash(method: Any, result: pa.DataType) -> Callable[..., Datum]:
    """Build a hash function that uses the given method. Cost: by row."""

    def run(*values: Datum) -> Datum:
        parts = [_hash_of(from_arrow_type(value.type), method) for value in values]
        sizes = [len(value) for value in values if not isinstance(value, pa.Scalar)]
        columns = [_values(value, sizes[0] if sizes else 1) for value in values]
        half = 1 << (method.bits - 1)
        found = [
            (_folded(parts, list(row), _SEED) + half) % (2 * half) - half
            for row in zip(*columns, strict=True)
        ]
        return pa.array(found, result) if sizes else pa.scalar(found[0], result)

    return run


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "hash": _hash(_Murmur3(), pa.int32()),
    "xxhash64": _hash(_XxHash64(), pa.int64()),
}
