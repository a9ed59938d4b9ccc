"""Reading the binary form of variants: metadata (a dictionary of names) and a value.

Decodes the bits of one value. Does not depend on Arrow or shredding.

Protocol: Variant Binary Encoding (Apache Parquet, VariantEncoding.md)
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import struct
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from deltalog._util.json import dumps
from deltalog.errors import DataFileUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Readers = Mapping[int, Callable[[bytes], Any]]

VERSION: Final = 1
# The basic types, which are in the lowest two bits of a value's first byte.
PRIMITIVE: Final = 0
SHORT_STRING: Final = 1
OBJECT: Final = 2
ARRAY: Final = 3

EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # for the types without a time zone
EPOCH_UTC: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
FIRST_DAY: Final = dt.date(1970, 1, 1)
MICROSECOND: Final = dt.timedelta(microseconds=1)


@lru_cache(maxsize=1024)
def names_of(metadata: bytes) -> tuple[str, ...]:
    """Return the names in the metadata; the id of a name is its position.

    Raises:
        DataFileUnreadableError: the metadata is truncated, or its version is unknown.
    """
    if not metadata:
        raise _malformed("the metadata is empty")
    header = metadata[0]
    if header & 0x0F != VERSION:
        raise _malformed(f"expected metadata of version {VERSION}, found {header & 0x0F}")
    width = (header >> 6) + 1
    count = _uint(metadata, 1, width)
    start = 1 + width
    data = start + (count + 1) * width
    if data > len(metadata):
        raise _malformed("the metadata is cut off")
    offsets = [_uint(metadata, start + at * width, width) for at in range(count + 1)]
    if data + offsets[-1] > len(metadata) or offsets != sorted(offsets):
        raise _malformed("the metadata's offsets are out of range")
    try:
        return tuple(
            metadata[data + first : data + last].decode() for first, last in pairwise(offsets)
        )
    except UnicodeDecodeError as error:
        raise _malformed("a name is not UTF-8") from error


def decode(metadata: bytes, value: bytes) -> Any:
    """Return the Python value of a variant.

    Objects become dicts, arrays become lists, decimals become `Decimal`, `timestamp` becomes an
    aware datetime in UTC, and `timestamp_ntz` a naive datetime. Nanoseconds are truncated to
    microseconds, unlike in `to_json`.

    Raises:
        DataFileUnreadableError: the bytes are not a variant.
    """
    return read(metadata, value, _PYTHON)


def read(metadata: bytes, value: bytes, readers: Readers) -> Any:
    """Decode a variant; `readers` decode its primitives.

    Raises:
        DataFileUnreadableError: the bytes are not a variant.
    """
    try:
        return _read(names_of(metadata), value, readers)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError, ValueError) as error:
        raise _malformed(f"the value {value[:40]!r} is truncated or out of range") from error
    except RecursionError as error:
        raise _malformed("it is nested too deeply") from error


def _read(names: Sequence[str], value: bytes, readers: Readers) -> Any:
    header = value[0]
    basic = header & 3
    if basic == SHORT_STRING:
        return readers[16](_slice(value, 1, header >> 2))
    if basic == OBJECT:
        return {name: _read(names, part, readers) for name, part in _members(names, value)}
    if basic == ARRAY:
        return [_read(names, part, readers) for part in _elements(value)]
    kind = header >> 2
    reader = readers.get(kind)
    if reader is None:
        raise _malformed(f"deltalog does not know its primitive type {kind}")
    return reader(_sized(value) if kind in {15, 16} else value[1:])


def members(metadata: bytes, value: bytes) -> list[tuple[str, bytes]] | None:
    """Return the names and encoded values of an object's fields; None if it is not an object.

    Raises:
        DataFileUnreadableError: the bytes are not a variant.
    """
    try:
        if value[0] & 3 != OBJECT:
            return None
        return list(_members(names_of(metadata), value))
    except IndexError as error:
        raise _malformed(f"the object {value[:40]!r} is truncated") from error


def _members(names: Sequence[str], value: bytes) -> Iterator[tuple[str, bytes]]:
    header = value[0] >> 2
    offset_width, id_width = (header & 3) + 1, (header >> 2 & 3) + 1
    count_width = 4 if header >> 4 & 1 else 1
    count = _uint(value, 1, count_width)
    ids = 1 + count_width
    offsets = ids + count * id_width
    data = offsets + (count + 1) * offset_width
    for at in range(count):
        name = names[_uint(value, ids + at * id_width, id_width)]
        first = data + _uint(value, offsets + at * offset_width, offset_width)
        # Fields are sorted by name, but their values may be in any order. So the offset of the next
        # field is not the end of this value.
        yield name, _slice(value, first, _size(value, first))


def _elements(value: bytes) -> Iterator[bytes]:
    header = value[0] >> 2
    width = (header & 3) + 1
    count_width = 4 if header >> 2 & 1 else 1
    count = _uint(value, 1, count_width)
    offsets = 1 + count_width
    data = offsets + (count + 1) * width
    for at in range(count):
        first = _uint(value, offsets + at * width, width)
        last = _uint(value, offsets + (at + 1) * width, width)
        yield _slice(value, data + first, last - first)


# Type id of a primitive → its number of bytes, including the first byte. The types 15 and 16 are
# missing, because their values contain their length.
_PRIMITIVE_SIZES: Final = dict(
    enumerate((1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18, 5, 9, 9, 5)),
) | {17: 9, 18: 9, 19: 9, 20: 17}


def _size(value: bytes, at: int) -> int:
    """Return the number of bytes of the encoded value that begins at `at`."""
    header = value[at]
    basic = header & 3
    if basic == SHORT_STRING:
        return 1 + (header >> 2)
    if basic == PRIMITIVE:
        kind = header >> 2
        if kind in {15, 16}:
            return 5 + _uint(value, at + 1, 4)
        if kind not in _PRIMITIVE_SIZES:
            raise _malformed(f"deltalog does not know its primitive type {kind}")
        return _PRIMITIVE_SIZES[kind]
    bits = header >> 2
    offset_width = (bits & 3) + 1
    is_large = bits >> (4 if basic == OBJECT else 2) & 1
    count_width = 4 if is_large else 1
    count = _uint(value, at + 1, count_width)
    id_width = (bits >> 2 & 3) + 1 if basic == OBJECT else 0
    end = 1 + count_width + count * id_width + (count + 1) * offset_width
    return end + _uint(value, at + end - offset_width, offset_width)


def _uint(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise IndexError(at)
    return int.from_bytes(data[at : at + width], "little")


def _slice(data: bytes, at: int, size: int) -> bytes:
    if size < 0 or at + size > len(data):
        raise IndexError(at)
    return data[at : at + size]


def _sized(value: bytes) -> bytes:
    return _slice(value, 5, _uint(value, 1, 4))


def _unpacker(form: str) -> Callable[[bytes], Any]:
    unpack = struct.Struct(form).unpack_from
    return lambda data: unpack(data)[0]


def _decimal_reader(width: int) -> Callable[[bytes], Decimal]:
    def reader(data: bytes) -> Decimal:
        scale = data[0]
        if scale > 38:
            raise ValueError(scale)
        unscaled = int.from_bytes(_slice(data, 1, width), "little", signed=True)
        # Create the decimal from its digits, because arithmetic would round it to the precision of
        # the decimal context.
        return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))

    return reader


_int32: Final = _unpacker("<i")
_int64: Final = _unpacker("<q")

PLAIN_READERS: Final[dict[int, Callable[[bytes], Any]]] = {
    0: lambda _: None,
    1: lambda _: True,
    2: lambda _: False,
    3: _unpacker("<b"),
    4: _unpacker("<h"),
    5: _int32,
    6: _int64,
    7: _unpacker("<d"),
    8: _decimal_reader(4),
    9: _decimal_reader(8),
    10: _decimal_reader(16),
    11: _int32,
    12: _int64,
    13: _int64,
    14: _unpacker("<f"),
    15: bytes,
    16: lambda data: data.decode(),
    17: _int64,
    18: _int64,
    19: _int64,
    20: lambda data: UUID(bytes=_slice(data, 0, 16)),
}
"""Type id of a primitive → its decoder. Dates and times are returned as the stored integers."""

_PYTHON: Final[dict[int, Callable[[bytes], Any]]] = {
    **PLAIN_READERS,
    11: lambda data: FIRST_DAY + dt.timedelta(days=_int32(data)),
    12: lambda data: EPOCH_UTC + _int64(data) * MICROSECOND,
    13: lambda data: EPOCH + _int64(data) * MICROSECOND,
    17: lambda data: (EPOCH + _int64(data) * MICROSECOND).time(),
    18: lambda data: EPOCH_UTC + _int64(data) // 1000 * MICROSECOND,
    19: lambda data: EPOCH + _int64(data) // 1000 * MICROSECOND,
}


def _malformed(what: str) -> DataFileUnreadableError:
    return DataFileUnreadableError(f"cannot read a variant: {what}")


# --- Variants as JSON


def to_json(metadata: bytes, value: bytes) -> str:
    """Return the variant as one line of JSON; the keys are in the order of the binary form.

    Raises:
        DataFileUnreadableError: the bytes are not a variant.
    """
    return _text(read(metadata, value, _LEXEMES))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{_quoted(name)}:{_text(part)}" for name, part in value.items()) + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return str(value)


def _quoted(text: str) -> str:
    return dumps(text).decode()


def _lexeme(kind: int, form: Callable[[Any], str]) -> Callable[[bytes], str]:
    plain = PLAIN_READERS[kind]
    return lambda data: form(plain(data))


def _floating(value: float, shortest: str) -> str:
    if math.isfinite(value):
        return shortest
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _single(value: float) -> str:
    # Find the fewest digits that identify the 32-bit number. Python's repr would print more digits,
    # because it treats the number as a double.
    for digits in range(6, 9):
        shortest = f"{value:.{digits}g}"
        if struct.pack("<f", float(shortest)) == struct.pack("<f", value):
            return _floating(value, repr(float(shortest)))
    return _floating(value, repr(float(f"{value:.9g}")))


def _day(days: int) -> str:
    return f'"{(FIRST_DAY + dt.timedelta(days=days)).isoformat()}"'


def _moment(units: int, per_second: int, zone: str) -> str:
    seconds, rest = divmod(units, per_second)
    moment = EPOCH + dt.timedelta(seconds=seconds)
    return f'"{moment.isoformat(sep=" ")}{_fraction(rest, per_second)}{zone}"'


def _fraction(rest: int, per_second: int) -> str:
    width = len(str(per_second)) - 1
    return f".{rest:0{width}d}".rstrip("0").rstrip(".")


def _clock(micros: int) -> str:
    seconds, rest = divmod(micros, 1_000_000)
    clock = (EPOCH + dt.timedelta(seconds=seconds)).time()
    return f'"{clock.isoformat()}{_fraction(rest, 1_000_000)}"'


def _decimal(value: Any) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_MILLION: Final = 10**6
_BILLION: Final = 10**9

_LEXEMES: Final[dict[int, Callable[[bytes], str]]] = {
    0: lambda _: "null",
    1: lambda _: "true",
    2: lambda _: "false",
    **{kind: _lexeme(kind, str) for kind in (3, 4, 5, 6)},
    7: _lexeme(7, lambda value: _floating(value, repr(value))),
    **{kind: _lexeme(kind, _decimal) for kind in (8, 9, 10)},
    11: _lexeme(11, _day),
    12: _lexeme(12, lambda micros: _moment(micros, _MILLION, "+00:00")),
    13: _lexeme(13, lambda micros: _moment(micros, _MILLION, "")),
    14: _lexeme(14, _single),
    15: _lexeme(15, lambda data: f'"{base64.b64encode(data).decode()}"'),
    16: _lexeme(16, _quoted),
    17: _lexeme(17, _clock),
    18: _lexeme(18, lambda nanos: _moment(nanos, _BILLION, "+00:00")),
    19: _lexeme(19, lambda nanos: _moment(nanos, _BILLION, "")),
    20: _lexeme(20, lambda value: f'"{value}"'),
}
