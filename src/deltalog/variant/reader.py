"""Reading the binary form of variants: metadata (a dictionary of names) and value.

Owns the bit format of one value. Knows nothing of Arrow or of shredding.

Protocol: Variant Binary Encoding (Apache Parquet, VariantEncoding.md)
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from deltalog.errors import DataFileUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    # Primitives by type id; a reader gets the bytes after the first.
    Readers = Mapping[int, Callable[[bytes], Any]]

VERSION: Final = 1
# Basic types, in the lowest two bits of a value's first byte.
PRIMITIVE: Final = 0
SHORT_STRING: Final = 1
OBJECT: Final = 2
ARRAY: Final = 3

EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # of the types without a zone
EPOCH_UTC: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
FIRST_DAY: Final = dt.date(1970, 1, 1)
MICROSECOND: Final = dt.timedelta(microseconds=1)


@lru_cache(maxsize=1024)
def names_of(metadata: bytes) -> tuple[str, ...]:
    """The names in the metadata; a field's id is its position.

    Raises:
        DataFileUnreadableError: the metadata is truncated, or of an unknown version.
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
        raise _malformed("the metadata is torn")
    offsets = [_uint(metadata, start + at * width, width) for at in range(count + 1)]
    if data + offsets[-1] > len(metadata) or offsets != sorted(offsets):
        raise _malformed("the metadata's offsets lead out of it")
    try:
        return tuple(
            metadata[data + first : data + last].decode() for first, last in pairwise(offsets)
        )
    except UnicodeDecodeError as error:
        raise _malformed("a name is no UTF-8") from error


def decode(metadata: bytes, value: bytes) -> Any:
    """The Python value of a variant.

    Objects are dicts, arrays lists, decimals `Decimal`, `timestamp` an aware datetime in UTC and
    `timestamp_ntz` a naive one. Nanoseconds are truncated to microseconds, Python's precision;
    `to_json` keeps them.

    Raises:
        DataFileUnreadableError: the bytes are not a variant.
    """
    return read(metadata, value, _PYTHON)


def read(metadata: bytes, value: bytes, readers: Readers) -> Any:
    """A variant's value, with primitives read by `readers`.

    Raises:
        DataFileUnreadableError: the bytes are not a variant.
    """
    try:
        return _read(names_of(metadata), value, readers)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError, ValueError) as error:
        raise _malformed(f"the value {value[:40]!r} is torn or out of range") from error
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
    """The names and encoded values of an object's fields; None if it is not an object.

    Raises:
        DataFileUnreadableError: the bytes are not a variant.
    """
    try:
        if value[0] & 3 != OBJECT:
            return None
        return list(_members(names_of(metadata), value))
    except IndexError as error:
        raise _malformed(f"the object {value[:40]!r} is torn") from error


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
        # Fields are sorted by name, their values may be in any order: so the next offset is not
        # the end of this value.
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


# Bytes of each primitive by type id, the first byte included; 15 and 16 have a length field.
_PRIMITIVE_SIZES: Final = dict(
    enumerate((1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18, 5, 9, 9, 5)),
) | {17: 9, 18: 9, 19: 9, 20: 17}


def _size(value: bytes, at: int) -> int:
    """The number of bytes of the encoded value at `at`."""
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
        # From digits: arithmetic on decimals would round to the context's precision.
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
"""Primitives by type id; dates and times as the integers that are stored."""

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
