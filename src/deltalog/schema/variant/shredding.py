"""Encoding variants, and reading shredded variants.

Converts `typed_value` columns to the binary form, so that deltalog returns every variant as
`struct<metadata, value>`. deltalog does not write shredded variants.

Protocol: Variant Shredding (Apache Parquet, VariantShredding.md)
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.argument_types import kind_of
from deltalog._util.kernels import arrow
from deltalog.errors import DataFileUnreadableError, InvalidInputError
from deltalog.schema.arrow import VARIANT_STORAGE, is_list
from deltalog.schema.primitives.moments import has_nanoseconds
from deltalog.schema.variant import reader
from deltalog.schema.variant.reader import members, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Rows = Sequence[bytes | None]
    Build = Callable[[int, "_NameIds"], bytes | None]


# --- Writing the binary form of variants


NULL: Final = b"\x00"
EMPTY_METADATA: Final = b"\x01\x00\x00"

_SORTED: Final = 0x10


def encode(value: Any) -> tuple[bytes, bytes]:
    """Encode a Python value as a variant; return the metadata and the value.

    Accepts None, bool, int, float, Decimal, str, bytes, date, time, datetime (aware: `timestamp`,
    naive: `timestamp_ntz`), UUID, lists of such values, and mappings from strings to such values.

    Raises:
        InvalidInputError: a value has another type, or is too large.
    """
    try:
        names = sorted(_keys(value), key=str.encode)
        ids = {name: at for at, name in enumerate(names)}
        return encode_metadata(names, is_sorted=True), _encode(value, ids)
    except RecursionError as error:
        raise InvalidInputError("cannot make a variant: it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"cannot make a variant of a string that is not Unicode: {error}"
        ) from error


def encode_metadata(names: Sequence[str], *, is_sorted: bool = False) -> bytes:
    """Return the metadata with `names` in the given order."""
    if not names:
        return EMPTY_METADATA
    parts = [name.encode() for name in names]
    ends = _ends(parts)
    width = _width(max(ends[-1], len(parts)))
    header = reader.VERSION | (_SORTED if is_sorted else 0) | (width - 1) << 6
    numbers = [len(parts), *ends]
    return bytes([header]) + _pack(numbers, width) + b"".join(parts)


def encode_object(fields: Iterable[tuple[str, bytes]], ids: Mapping[str, int]) -> bytes:
    """Encode an object of encoded values; `ids` are the positions of the names in the metadata."""
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
    """Encode an array of encoded values."""
    ends = _ends(parts)
    width = _width(ends[-1])
    is_large = len(parts) > 255
    header = reader.ARRAY | (width - 1) << 2 | is_large << 4
    count = len(parts).to_bytes(4 if is_large else 1, "little")
    return b"".join((bytes([header]), count, _pack(ends, width), *parts))


def primitive(kind: int, data: bytes = b"") -> bytes:
    """Encode a primitive with the type id `kind`."""
    return bytes([kind << 2]) + data


def encode_text(value: str) -> bytes:
    """Encode a string; if it has fewer than 64 bytes, in the short form."""
    data = value.encode()
    if len(data) < 64:
        return bytes([reader.SHORT_STRING | len(data) << 2]) + data
    return primitive(16, struct.pack("<I", len(data)) + data)


def encode_bytes(value: bytes) -> bytes:
    """Encode a binary value."""
    return primitive(15, struct.pack("<I", len(value)) + value)


def encode_integer(value: int) -> bytes:
    """Encode an integer in the narrowest type that can contain it."""
    for kind, width in ((3, 1), (4, 2), (5, 4), (6, 8)):
        if -(1 << (8 * width - 1)) <= value < 1 << (8 * width - 1):
            return primitive(kind, value.to_bytes(width, "little", signed=True))
    return encode_decimal(value, 0)


def encode_decimal(unscaled: int, scale: int) -> bytes:
    """Encode the decimal `unscaled * 10 ** -scale` in the narrowest type that can contain it.

    Raises:
        InvalidInputError: the decimal has more than 38 digits.
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
    raise InvalidInputError(f"cannot make a variant of {value!r}, {kind_of(value)}")


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise InvalidInputError(
                f"cannot make a variant: expected a string as key, found {wrong[0]!r}"
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


# The order is important, because a bool is also an int, and a datetime is also a date.
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


# --- Reading shredded variants


def unshred(array: Any) -> Any:
    """Return variants as `struct<metadata: binary not null, value: binary not null>`.

    Args:
        array: a struct array with `metadata`, and `value` or `typed_value` or both, in any order;
            or a chunked array of such structs; or one of these in the extension type.

    Raises:
        DataFileUnreadableError: the columns are not those of a variant, or they contradict each
            other.

    Protocol: Variant Shredding (Reconstructing a Shredded Variant)
    Cost: without `typed_value`, nothing is decoded; with it, Python decodes each row.
    """
    if isinstance(array, pa.ChunkedArray):
        return arrow.chunked_array([unshred(chunk) for chunk in array.chunks], VARIANT_STORAGE)
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if array.type == VARIANT_STORAGE:
        return array
    columns = _columns(array)
    metadata = columns.get("metadata")
    if metadata is None or len(columns) < 2:
        raise DataFileUnreadableError(
            f"cannot read a variant from {array.type}: expected metadata, and value or typed_value"
        )
    metadata = metadata.cast(pa.binary())
    value = _value_column(columns, len(array))
    typed = columns.get("typed_value")
    if typed is not None and typed.null_count < len(typed):
        metadata, value = _put_together(metadata, columns, array)
    mask = None
    if array.null_count:
        mask = array.is_null()
        metadata = metadata.fill_null(b"")
    # Parquet says: "If a Variant is missing in a context where a value is required, readers must
    # return a Variant null."
    return pa.StructArray.from_arrays(
        [metadata, value.fill_null(NULL)], fields=list(VARIANT_STORAGE), mask=mask
    )


def _columns(array: Any) -> dict[str, Any]:
    if not pt.is_struct(array.type):
        raise DataFileUnreadableError(f"cannot read a variant from {array.type}: expected a struct")
    return {field.name: column for field, column in zip(array.type, array.flatten(), strict=True)}


def _value_column(columns: dict[str, Any], rows: int) -> Any:
    value = columns.get("value")
    return pa.nulls(rows, pa.binary()) if value is None else value.cast(pa.binary())


def _put_together(metadata: Any, columns: dict[str, Any], array: Any) -> tuple[Any, Any]:
    build = _build_columns(columns, len(array))
    metadata_rows: list[bytes | None] = metadata.to_pylist()
    values: list[bytes | None] = []
    is_changed = False
    for row, here in enumerate(metadata_rows):
        if here is None:
            values.append(None)
            continue
        names = _NameIds(here)
        values.append(build(row, names))
        if names.added:
            metadata_rows[row] = names.metadata()
            is_changed = True
    if is_changed:
        metadata = pa.array(metadata_rows, pa.binary())
    return metadata, pa.array(values, pa.binary())


class _NameIds:
    """The ids of one row's names; names that are not in the metadata are appended to it."""

    __slots__ = ("_known", "added", "stored")

    def __init__(self, stored: bytes) -> None:
        self.stored = stored
        self.added: list[str] = []
        self._known: dict[str, int] | None = None

    def ids(self, names: Sequence[str]) -> dict[str, int]:
        if self._known is None:
            self._known = {name: at for at, name in enumerate(names_of(self.stored))}
        for name in names:
            if name not in self._known:
                self._known[name] = len(names_of(self.stored)) + len(self.added)
                self.added.append(name)
        return self._known

    def metadata(self) -> bytes:
        return encode_metadata([*names_of(self.stored), *self.added])


def _build_columns(columns: dict[str, Any], rows: int) -> Build:
    typed = columns.get("typed_value")
    plain: Rows = _value_column(columns, rows).to_pylist()
    if typed is None or typed.null_count == len(typed):
        return lambda row, _: plain[row]
    if isinstance(typed.type, pa.BaseExtensionType):
        typed = typed.storage
    if pt.is_struct(typed.type):
        return _object_builder(typed, plain)
    if is_list(typed.type):
        return _array_builder(typed, plain)
    encoded = _encode_column(typed)

    def build(row: int, names: _NameIds) -> bytes | None:
        del names
        return encoded[row] if encoded[row] is not None else plain[row]

    return build


def _object_builder(typed: Any, plain: Rows) -> Build:
    is_there = typed.is_valid().to_pylist()
    fields = [
        (name, _build_columns(_columns(column), len(column)))
        for name, column in _columns(typed).items()
    ]

    def build(row: int, names: _NameIds) -> bytes | None:
        rest = plain[row]
        if not is_there[row]:
            return rest
        parts: dict[str, bytes] = {}
        if rest is not None:
            unshredded = members(names.stored, rest)
            if unshredded is None:
                raise DataFileUnreadableError(
                    "cannot read a variant: it is shredded as an object, but has another value"
                )
            parts.update(unshredded)
        for name, field in fields:
            part = field(row, names)
            if part is not None:
                parts[name] = part
        return encode_object(parts.items(), names.ids(list(parts)))

    return build


def _array_builder(typed: Any, plain: Rows) -> Build:
    if not (pt.is_list(typed.type) or pt.is_large_list(typed.type)):
        raise DataFileUnreadableError(f"cannot read a variant shredded as {typed.type}")
    is_there = typed.is_valid().to_pylist()
    offsets: list[int] = typed.offsets.to_pylist()
    values = typed.values
    element = _build_columns(_columns(values), len(values))

    def build(row: int, names: _NameIds) -> bytes | None:
        if not is_there[row]:
            return plain[row]
        parts = (element(at, names) for at in range(offsets[row], offsets[row + 1]))
        return encode_array([NULL if part is None else part for part in parts])

    return build


def _encode_column(typed: Any) -> Rows:
    found = typed.type
    if pt.is_decimal(found):
        return _encode_decimals(typed)
    if pt.is_timestamp(found) or pt.is_time(found):
        return _encode_moments(typed)
    for applies, prepare, encode in _PRIMITIVES:
        if applies(found):
            column = typed if prepare is None else typed.cast(prepare)
            return [None if item is None else encode(item) for item in column.to_pylist()]
    raise DataFileUnreadableError(f"cannot read a variant shredded as {found}")


def _encode_decimals(typed: Any) -> Rows:
    # The width of the encoded decimals depends on the precision of the column, not on each value.
    found = typed.type
    kind, width = (8, 4) if found.precision <= 9 else (9, 8) if found.precision <= 18 else (10, 16)
    scale = found.scale
    if not 0 <= scale <= 38:
        raise DataFileUnreadableError(f"cannot read a variant shredded as {found}")
    head = primitive(kind, bytes([scale]))
    # With scale 0, the view of a decimal is its unscaled integer.
    digits = typed.cast(pa.decimal128(38, scale)).view(pa.decimal128(38, 0)).to_pylist()
    return [
        None if item is None else head + int(item).to_bytes(width, "little", signed=True)
        for item in digits
    ]


def _encode_moments(typed: Any) -> Rows:
    found = typed.type
    if pt.is_time(found):
        kind = 17
        wanted: pa.DataType = pa.time64("us")
    else:
        unit: Any = "ns" if has_nanoseconds(found) else "us"
        kind = (18 if unit == "ns" else 12) + (found.tz is None)
        wanted = pa.timestamp(unit, found.tz)
    numbers = typed.cast(wanted).cast(pa.int64()).to_pylist()
    return [None if item is None else primitive(kind, struct.pack("<q", item)) for item in numbers]


def _packer(kind: int, form: str) -> Callable[[Any], bytes]:
    pack = struct.Struct(form).pack
    return lambda item: primitive(kind, pack(item))


def _is_text(found: Any) -> bool:
    return pt.is_string(found) or pt.is_large_string(found) or pt.is_string_view(found)


def _is_bytes(found: Any) -> bool:
    return pt.is_binary(found) or pt.is_large_binary(found) or pt.is_binary_view(found)


_PRIMITIVES: Final[
    tuple[tuple[Callable[[Any], bool], pa.DataType | None, Callable[[Any], bytes]], ...]
] = (
    (pt.is_boolean, None, lambda item: primitive(1 if item else 2)),
    (pt.is_int8, None, _packer(3, "<b")),
    (pt.is_int16, None, _packer(4, "<h")),
    (pt.is_int32, None, _packer(5, "<i")),
    (pt.is_int64, None, _packer(6, "<q")),
    (pt.is_float32, None, _packer(14, "<f")),
    (pt.is_float64, None, _packer(7, "<d")),
    (pt.is_date32, pa.int32(), _packer(11, "<i")),
    (_is_text, None, encode_text),
    (_is_bytes, None, encode_bytes),
    (lambda found: found == pa.binary(16), None, lambda item: primitive(20, item)),
)
