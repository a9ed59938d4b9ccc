"""Writing the binary form of variants.

Owns the choice of the narrowest encoding. Metadata is sorted and has each name once, so that equal
values have equal bytes.

Protocol: Variant Binary Encoding (Apache Parquet, VariantEncoding.md)
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from deltalog.errors import InvalidInputError
from deltalog.variant import reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

NULL: Final = b"\x00"
EMPTY_METADATA: Final = b"\x01\x00\x00"

_SORTED: Final = 0x10


def encode(value: Any) -> tuple[bytes, bytes]:
    """Metadata and value of the variant for a Python value.

    Takes None, bool, int, float, Decimal, str, bytes, date, time, datetime (aware: `timestamp`,
    naive: `timestamp_ntz`), UUID, and lists and str-keyed mappings of those.

    Raises:
        InvalidInputError: a value is none of these, or too large.
    """
    try:
        names = sorted(_keys(value), key=str.encode)
        ids = {name: at for at, name in enumerate(names)}
        return encode_metadata(names, is_sorted=True), _encode(value, ids)
    except RecursionError as error:
        raise InvalidInputError("cannot make a variant: it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"cannot make a variant of a text that is no Unicode: {error}"
        ) from error


def encode_metadata(names: Sequence[str], *, is_sorted: bool = False) -> bytes:
    """The metadata that lists `names` in this order."""
    if not names:
        return EMPTY_METADATA
    parts = [name.encode() for name in names]
    ends = _ends(parts)
    width = _width(max(ends[-1], len(parts)))
    header = reader.VERSION | (_SORTED if is_sorted else 0) | (width - 1) << 6
    numbers = [len(parts), *ends]
    return bytes([header]) + _pack(numbers, width) + b"".join(parts)


def encode_object(fields: Iterable[tuple[str, bytes]], ids: Mapping[str, int]) -> bytes:
    """An object of encoded values; `ids` are the places of the names in the metadata."""
    ordered = sorted(fields, key=lambda field: field[0].encode())
    parts = [part for _, part in ordered]
    numbers = [ids[name] for name, _ in ordered]
    ends = _ends(parts)
    offset_width, id_width = _width(ends[-1]), _width(max(numbers, default=0))
    is_large = len(parts) > 255
    header = reader.OBJECT | (offset_width - 1) << 2 | (id_width - 1) << 4 | is_large << 6
    count = len(parts).to_bytes(4 if is_large else 1, "little")
    return b"".join(
        (bytes([header]), count, _pack(numbers, id_width), _pack(ends, offset_width), *parts)
    )


def encode_array(parts: Sequence[bytes]) -> bytes:
    """An array of encoded values."""
    ends = _ends(parts)
    width = _width(ends[-1])
    is_large = len(parts) > 255
    header = reader.ARRAY | (width - 1) << 2 | is_large << 4
    count = len(parts).to_bytes(4 if is_large else 1, "little")
    return b"".join((bytes([header]), count, _pack(ends, width), *parts))


def primitive(kind: int, data: bytes = b"") -> bytes:
    """A primitive of type id `kind`."""
    return bytes([kind << 2]) + data


def encode_text(value: str) -> bytes:
    """A string, in its short form if it has fewer than 64 bytes."""
    data = value.encode()
    if len(data) < 64:
        return bytes([reader.SHORT_STRING | len(data) << 2]) + data
    return primitive(16, struct.pack("<I", len(data)) + data)


def encode_bytes(value: bytes) -> bytes:
    """A binary value."""
    return primitive(15, struct.pack("<I", len(value)) + value)


def encode_integer(value: int) -> bytes:
    """An integer, in the narrowest type that can hold it."""
    for kind, width in ((3, 1), (4, 2), (5, 4), (6, 8)):
        if -(1 << (8 * width - 1)) <= value < 1 << (8 * width - 1):
            return primitive(kind, value.to_bytes(width, "little", signed=True))
    return encode_decimal(value, 0)


def encode_decimal(unscaled: int, scale: int) -> bytes:
    """The decimal `unscaled * 10 ** -scale`, in the narrowest type that can hold it.

    Raises:
        InvalidInputError: it has more than 38 digits.
    """
    digits = len(str(abs(unscaled)))
    if digits > 38 or not 0 <= scale <= 38:
        raise InvalidInputError(
            f"cannot make a variant of a decimal of {digits} digits and scale {scale}: "
            "expected at most 38 digits and a scale from 0 to 38"
        )
    kind, width = (8, 4) if digits <= 9 else (9, 8) if digits <= 18 else (10, 16)
    return primitive(kind, bytes([scale]) + unscaled.to_bytes(width, "little", signed=True))


def _encode(value: Any, ids: Mapping[str, int]) -> bytes:
    if isinstance(value, dict):
        return encode_object(((name, _encode(part, ids)) for name, part in value.items()), ids)
    if isinstance(value, list | tuple):
        return encode_array([_encode(part, ids) for part in value])
    for kind, encoder in _ENCODERS:
        if isinstance(value, kind):
            return encoder(value)
    raise InvalidInputError(f"cannot make a variant of {value!r}, a {type(value).__name__}")


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise InvalidInputError(
                f"cannot make a variant: expected a text as key, found {wrong[0]!r}"
            )
        return set(value).union(*map(_keys, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(_keys, value))
    return set()


def _encode_decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidInputError(f"cannot make a variant of {value!r}")
    unscaled = int("".join(map(str, digits))) * 10 ** min(max(exponent, 0), 99)
    return encode_decimal(-unscaled if sign else unscaled, max(-exponent, 0))


def _encode_datetime(value: dt.datetime) -> bytes:
    if value.tzinfo is None:
        return primitive(13, struct.pack("<q", (value - reader.EPOCH) // reader.MICROSECOND))
    return primitive(12, struct.pack("<q", (value - reader.EPOCH_UTC) // reader.MICROSECOND))


def _encode_time(value: dt.time) -> bytes:
    since_midnight = (
        dt.datetime.combine(reader.FIRST_DAY, value.replace(tzinfo=None)) - reader.EPOCH
    )
    return primitive(17, struct.pack("<q", since_midnight // reader.MICROSECOND))


# In this order, because a bool is an int, and a datetime is a date.
_ENCODERS: Final[tuple[tuple[type, Callable[[Any], bytes]], ...]] = (
    (type(None), lambda _: NULL),
    (bool, lambda value: primitive(1 if value else 2)),
    (int, encode_integer),
    (float, lambda value: primitive(7, struct.pack("<d", value))),
    (Decimal, _encode_decimal),
    (str, encode_text),
    (bytes, encode_bytes),
    (dt.datetime, _encode_datetime),
    (dt.date, lambda value: primitive(11, struct.pack("<i", (value - reader.FIRST_DAY).days))),
    (dt.time, _encode_time),
    (UUID, lambda value: primitive(20, value.bytes)),
)


def _ends(parts: Sequence[bytes]) -> list[int]:
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part))
    if ends[-1] >= 1 << 32:
        raise InvalidInputError("cannot make a variant of 4 GiB or more")
    return ends


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _pack(numbers: Iterable[int], width: int) -> bytes:
    return b"".join(number.to_bytes(width, "little") for number in numbers)
