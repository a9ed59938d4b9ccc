"""Deletion vectors: which rows of a data file are deleted.

Core: no I/O. This module parses, encodes and combines bitmaps of deleted rows, and converts them to
Arrow masks. A bitmap is stored in the log or in a file.

Protocol: Deletion Vectors
"""

from __future__ import annotations

import base64
import struct
import zlib
from array import array
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

import pyarrow as pa
from pyroaring import BitMap64

from deltalog._util.kernels import FALSE, arrow, compute
from deltalog._util.paths import check_confined, decode_path, encode_path
from deltalog.errors import DeletionVectorError, InvalidInputError
from deltalog.protocol.actions.codec import check_storage_type
from deltalog.protocol.actions.model import DeletionVectorDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "INLINE",
    "DeletionBitmap",
    "absolute_descriptor",
    "byte_range",
    "check_file_version",
    "check_rows",
    "encode_file",
    "encode_z85",
    "inline_descriptor",
    "keep_mask",
    "location",
    "parse_framed",
    "parse_inline",
]


FORMAT_VERSION: Final = 1
INLINE: Final = "i"
UUID_FILE: Final = "u"
ABSOLUTE_PATH: Final = "p"

_UUID_CHARS: Final = 20
_MOST_SHOWN: Final = 200
"""The maximum number of characters of an inline vector in a message."""
_INT_BYTES: Final = 4
# The alphabets of Z85 (ZeroMQ RFC 32) and of Python's base85. The encodings are otherwise the same.
_Z85: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_B85: Final = (
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)
_MISSING: Final = "#"
_TO_B85: Final = {ord(char): " " for char in _B85} | str.maketrans(_Z85, _B85)
_TO_Z85: Final = str.maketrans(_B85, _Z85)


def encode_z85(data: bytes) -> str:
    """Encode bytes as Z85: five printable characters for every four bytes.

    Raises:
        DeletionVectorError: the length is not a multiple of four.
    """
    if len(data) % 4:
        raise DeletionVectorError(
            f"cannot encode {len(data)} bytes as Z85: expected a multiple of 4"
        )
    return base64.b85encode(data).decode("ascii").translate(_TO_Z85)


def decode_z85(text: str) -> bytes:
    """Decode a Z85 string without padding.

    Raises:
        DeletionVectorError: the length is not a multiple of five, a character is not in the
            alphabet, or five characters exceed 32 bits.
    """
    if len(text) % 5:
        raise DeletionVectorError(
            f"cannot decode {text!r} as Z85: expected a multiple of 5 characters, found {len(text)}"
        )
    try:
        return base64.b85decode(text.translate(_TO_B85))
    except ValueError as error:
        raise DeletionVectorError(
            f"cannot decode {text!r} as Z85: a character is not in its alphabet, or a group of "
            "five exceeds 32 bits"
        ) from error


def decode_padded_z85(text: str, size_bytes: int) -> bytes:
    """Decode a Z85 string that may be padded.

    RFC 32 does not define how to encode bytes that do not fill a group of four. Delta Spark and
    deltalog append zeros. Writers that use Rust's `z85` crate start the last group with one `#` for
    each missing byte; its other characters encode the remaining bytes as a number. In plain Z85, no
    group starts with `#`, because it would exceed 32 bits.

    Args:
        text: groups of five characters.
        size_bytes: number of bytes to return.

    Raises:
        DeletionVectorError: the string is not Z85, its padding has neither form, or the number of
            bytes is wrong.
    """
    missing = len(text[-5:]) - len(text[-5:].lstrip(_MISSING))
    if len(text) % 5 or not missing:
        data = decode_z85(text)
    else:
        data = decode_z85(text[:-5]) + _partial_group(text, missing)
    if len(data) < size_bytes or size_bytes < 0 or (missing and len(data) != size_bytes):
        raise DeletionVectorError(
            f"cannot decode {text!r} as Z85: expected {size_bytes} bytes, found {len(data)}"
        )
    return data[:size_bytes]


def _partial_group(text: str, missing: int) -> bytes:
    """Decode the last group of a string, which starts with a `#` for each missing byte."""
    digits = [_Z85.find(char) for char in text[-5:][missing:]]
    number = reduce(lambda found, digit: found * 85 + digit, digits, 0)
    num_bytes = 4 - missing
    if num_bytes < 1 or min(digits) < 0 or number >= 256**num_bytes:
        raise DeletionVectorError(
            f"cannot decode {text!r} as Z85: expected a last group that starts with 1 to 3 "
            f"{_MISSING!r}, one for each missing byte, and encodes the other bytes, found "
            f"{text[-5:]!r}"
        )
    return number.to_bytes(num_bytes, "big")


def file_name(uuid: UUID, prefix: str = "") -> str:
    """Return the path of a deletion vector file, relative to the table's root."""
    name = f"deletion_vector_{uuid}.bin"
    return f"{prefix}/{name}" if prefix else name


def location(descriptor: DeletionVectorDescriptor) -> str | None:
    """Return the decoded path of the vector's file; None if the vector is inline.

    Raises:
        DeletionVectorError: the descriptor does not name a valid file.
        UnsafePathError: the path is outside of its directory.
        UnsupportedFeatureError: the storage type belongs to an unsupported table feature.
    """
    text = descriptor.path_or_inline_dv
    match descriptor.storage_type:
        case "i":
            return None
        case "u":
            if len(text) < _UUID_CHARS:
                raise DeletionVectorError(
                    f"cannot find the deletion vector {text!r}: expected at least {_UUID_CHARS} "
                    f"characters of a file's UUID, found {len(text)}"
                )
            prefix, encoded = text[:-_UUID_CHARS], text[-_UUID_CHARS:]
            path = file_name(UUID(bytes=decode_z85(encoded)), prefix)
        case "p":
            path = decode_path(text)
        case other:
            check_storage_type(other)
            raise DeletionVectorError(
                f"cannot find a deletion vector of storage type {other!r}: expected 'u', 'i' or 'p'"
            )
    check_confined(path)
    return path


def byte_range(descriptor: DeletionVectorDescriptor) -> tuple[int, int]:
    """Return position and length in bytes of the vector's frame: size field, bitmap, checksum."""
    if descriptor.size_bytes < 0 or (descriptor.offset or 0) < 0:
        raise DeletionVectorError(
            f"cannot find the deletion vector {descriptor.unique_id!r}: "
            f"its offset or its size ({descriptor.size_bytes}) is negative"
        )
    return descriptor.offset or 0, descriptor.size_bytes + 2 * _INT_BYTES


def parse_inline(descriptor: DeletionVectorDescriptor) -> DeletionBitmap:
    """Parse the vector that an inline descriptor contains.

    Raises:
        DeletionVectorError: the vector is not Z85, is shorter than its size, or is not a bitmap.
    """
    data = decode_padded_z85(descriptor.path_or_inline_dv, descriptor.size_bytes)
    bitmap = DeletionBitmap.parse(data)
    return _check_cardinality(bitmap, descriptor)


def check_file_version(data: bytes | memoryview) -> None:
    """Raise DeletionVectorError unless a file's first byte is a supported format version."""
    found = bytes(data[:1])
    if found != bytes([FORMAT_VERSION]):
        raise DeletionVectorError(
            f"cannot read a deletion vector file: expected format version {FORMAT_VERSION}, "
            f"found {found[0] if found else 'an empty file'}"
        )


def parse_framed(
    data: bytes | memoryview, descriptor: DeletionVectorDescriptor, *, data_offset: int = 0
) -> DeletionBitmap:
    """Return the vector in a range of its file, after checking it against its descriptor.

    Args:
        data: the file, or the range that `byte_range` returns.
        descriptor: the descriptor of the vector.
        data_offset: position of `data` in the file.

    Raises:
        DeletionVectorError: the file is too short, or size, checksum, magic number, bitmap or
            cardinality is wrong; the message states which.

    Protocol: Deletion Vector File Storage Format
    """
    start, length = byte_range(descriptor)
    frame = memoryview(data)[start - data_offset : start - data_offset + length]
    if start < data_offset or len(frame) < length:
        raise _unreadable(descriptor, f"the file ends after {len(frame)} of its {length} bytes")
    size = int.from_bytes(frame[:_INT_BYTES], "big")
    if size != descriptor.size_bytes:
        raise _unreadable(
            descriptor, f"expected a size field of {descriptor.size_bytes}, found {size}"
        )
    content = frame[_INT_BYTES:-_INT_BYTES]
    expected, found = int.from_bytes(frame[-_INT_BYTES:], "big"), zlib.crc32(content)
    if expected != found:
        raise _unreadable(descriptor, f"expected checksum {expected:08x}, found {found:08x}")
    try:
        bitmap = DeletionBitmap.parse(content)
    except DeletionVectorError as error:
        raise error.with_note(f"in deletion vector {descriptor.unique_id!r}")  # noqa: B904 -- the same error
    return _check_cardinality(bitmap, descriptor)


def parse_file(data: bytes, descriptor: DeletionVectorDescriptor) -> DeletionBitmap:
    """Return the vector in a whole file.

    Raises:
        DeletionVectorError: the file has an unknown format version, or see `parse_framed`.
    """
    check_file_version(data)
    return parse_framed(data, descriptor)


def check_rows(
    bitmap: DeletionBitmap, descriptor: DeletionVectorDescriptor, num_rows: int | None
) -> None:
    """Raise if a vector marks a row that its data file does not have.

    Args:
        bitmap: the marked rows.
        descriptor: the descriptor, for the message.
        num_rows: the number of physical rows of the data file; None if unknown.

    Raises:
        DeletionVectorError: there is such a row; the message contains its number.
    """
    last = bitmap.max_row
    if last is not None and num_rows is not None and last >= num_rows:
        raise _unreadable(
            descriptor,
            f"expected rows below {num_rows}, which its data file has, found row {last}; the "
            "vector is wrong or belongs to another file: restore the table to an earlier "
            "version, or write it again from its source",
        )


def inline_descriptor(bitmap: DeletionBitmap) -> DeletionVectorDescriptor:
    """Return a descriptor that contains the vector itself."""
    data = bitmap.encode()
    return DeletionVectorDescriptor(
        storage_type=INLINE,
        path_or_inline_dv=encode_z85(data + bytes(-len(data) % 4)),
        size_bytes=len(data),
        cardinality=bitmap.cardinality,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorFile:
    """A new file with the vectors of several data files.

    Args:
        path: the path, relative to the table's root.
        data: the whole content.
        descriptors: the descriptor of each vector, in the same order.
    """

    path: str
    data: bytes
    descriptors: tuple[DeletionVectorDescriptor, ...]


def encode_file(
    bitmaps: Sequence[DeletionBitmap], uuid: UUID, *, prefix: str = ""
) -> DeletionVectorFile:
    """Encode several vectors as one file, with a descriptor for each.

    Args:
        bitmaps: the vector of each data file.
        uuid: a new UUID for the name of the file.
        prefix: directory below the table's root, for tables with random file prefixes.
    """
    parts = [bytes([FORMAT_VERSION])]
    descriptors: list[DeletionVectorDescriptor] = []
    offset = 1
    for bitmap in bitmaps:
        content = bitmap.encode()
        parts += (
            len(content).to_bytes(_INT_BYTES, "big"),
            content,
            zlib.crc32(content).to_bytes(_INT_BYTES, "big"),
        )
        descriptors.append(
            DeletionVectorDescriptor(
                storage_type=UUID_FILE,
                path_or_inline_dv=prefix + encode_z85(uuid.bytes),
                offset=offset,
                size_bytes=len(content),
                cardinality=bitmap.cardinality,
            )
        )
        offset += len(content) + 2 * _INT_BYTES
    return DeletionVectorFile(
        path=file_name(uuid, prefix), data=b"".join(parts), descriptors=tuple(descriptors)
    )


def absolute_descriptor(
    descriptor: DeletionVectorDescriptor, root: str
) -> DeletionVectorDescriptor:
    """Return a descriptor of the same vector with an absolute path, for a shallow clone.

    Args:
        descriptor: a descriptor in the log of the table at `root`; inline and absolute descriptors
            are returned unchanged.
        root: the absolute, decoded location of that table.
    """
    path = location(descriptor)
    if path is None or descriptor.storage_type != UUID_FILE:
        return descriptor
    return replace(
        descriptor,
        storage_type=ABSOLUTE_PATH,
        path_or_inline_dv=encode_path(f"{root.rstrip('/')}/{path}"),
    )


def _check_cardinality(
    bitmap: DeletionBitmap, descriptor: DeletionVectorDescriptor
) -> DeletionBitmap:
    if bitmap.cardinality != descriptor.cardinality:
        raise _unreadable(
            descriptor,
            f"expected a cardinality of {descriptor.cardinality}, found {bitmap.cardinality}",
        )
    return bitmap


def _unreadable(descriptor: DeletionVectorDescriptor, reason: str) -> DeletionVectorError:
    name = descriptor.unique_id
    shown = name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}…"
    return DeletionVectorError(f"cannot read deletion vector {shown!r}: {reason}")


# --- The set of deleted rows of a file


MAGIC_PORTABLE: Final = 1681511377
MAGIC_NATIVE: Final = 1681511376

_MAGIC_BYTES: Final = 4
_MAX_ROWS: Final = 1 << 63


class DeletionBitmap:
    """An immutable set of row numbers, from 0 to 2^63-1.

    Cost: the set is compressed in memory; set operations and counts do not decompress it.
    """

    __slots__ = ("_rows",)

    _rows: BitMap64

    def __init__(self, rows: Iterable[int] | BitMap64 = ()) -> None:
        """Create a set from row numbers, or from a bitmap, which the caller must not change later.

        For many row numbers, `from_arrow` is faster.

        Raises:
            InvalidInputError: a row number is negative or beyond 2^63-1.
        """
        try:
            self._rows = rows if isinstance(rows, BitMap64) else BitMap64(rows)
        except (OverflowError, TypeError) as error:
            raise InvalidInputError(
                f"cannot make a deletion vector: expected row numbers >= 0, {error}"
            ) from error
        if self._rows and self._rows.max() >= _MAX_ROWS:
            raise InvalidInputError(
                "cannot make a deletion vector: a row number is negative or beyond 2^63-1"
            )

    @classmethod
    def from_arrow(cls, rows: pa.Array[Any] | pa.ChunkedArray[Any]) -> Self:
        """Return the set of the row numbers in an int64 or uint64 column, in any order.

        Raises:
            InvalidInputError: a row number is NULL or negative.
        """
        chunks = rows.chunks if isinstance(rows, pa.ChunkedArray) else [rows]
        numbers = array("Q")
        for chunk in chunks:
            if chunk.null_count or chunk.type not in (pa.int64(), pa.uint64()):
                raise InvalidInputError(
                    f"cannot make a deletion vector of {chunk.type} with {chunk.null_count} NULLs: "
                    "expected row numbers as int64 without NULL"
                )
            data = chunk.buffers()[1]
            if data is not None and len(chunk):
                numbers.frombytes(data.slice(chunk.offset * 8, len(chunk) * 8))
        return cls(BitMap64(numbers))

    @classmethod
    def from_range(cls, start_row: int, stop_row: int) -> Self:
        """Return the set of all rows from `start_row` up to, not including, `stop_row`."""
        rows = BitMap64()
        rows.add_range(start_row, max(start_row, stop_row))
        return cls(rows)

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Parse a bitmap in any of the three existing forms; trailing bytes are padding.

        The protocol specifies the little-endian portable form. Delta Spark also reads a
        little-endian native form, and the inline example in the protocol is native and big-endian
        (requirement D-01).

        Raises:
            DeletionVectorError: the magic number is unknown, the bitmap is truncated or corrupt, or
                a row number is beyond 2^63-1.
        """
        view = memoryview(data)
        if len(view) < _MAGIC_BYTES:
            raise DeletionVectorError(
                f"cannot read a deletion vector of {len(view)} bytes: its magic number is cut off"
            )
        little, big = (int.from_bytes(view[:_MAGIC_BYTES], order) for order in ("little", "big"))
        body = view[_MAGIC_BYTES:]
        if little == MAGIC_NATIVE:
            body = memoryview(_portable_of_native(body, "<"))
        elif big == MAGIC_NATIVE:
            body = memoryview(_portable_of_native(body, ">"))
        elif little != MAGIC_PORTABLE:
            raise DeletionVectorError(
                f"cannot read a deletion vector: expected magic number {MAGIC_PORTABLE} "
                f"or {MAGIC_NATIVE}, found {little}"
            )
        try:
            # pyroaring raises IndexError for an empty input.
            rows = BitMap64.deserialize(bytes(body))
        except (ValueError, IndexError) as error:
            raise DeletionVectorError(
                f"cannot read a deletion vector: its bitmap of {len(body)} bytes is torn or corrupt"
            ) from error
        if rows and rows.max() >= _MAX_ROWS:
            raise DeletionVectorError(
                "cannot read a deletion vector: the key of a bitmap is negative "
                "(row numbers end at 2^63-1)"
            )
        return cls(rows)

    def encode(self) -> bytes:
        """Return the little-endian portable form, run-length encoded where that is shorter."""
        rows = self._rows.copy()
        rows.run_optimize()
        return MAGIC_PORTABLE.to_bytes(_MAGIC_BYTES, "little") + bytes(rows.serialize())

    def to_arrow(self) -> pa.Int64Array:
        """Return the row numbers, ascending."""
        numbers = self._rows.to_array()
        # The constructor checks that row numbers are below 2^63, so they are valid as signed
        # integers.
        return pa.Array.from_buffers(  # type: ignore[return-value]  # int64 is requested
            pa.int64(), len(numbers), [None, pa.py_buffer(numbers)], null_count=0
        )

    @property
    def cardinality(self) -> int:
        """The number of deleted rows."""
        return len(self._rows)

    @property
    def max_row(self) -> int | None:
        """The highest deleted row; None if the set is empty."""
        return int(self._rows.max()) if self._rows else None

    def count_between(self, start_row: int, stop_row: int) -> int:
        """Return the number of deleted rows from `start_row` up to, not including, `stop_row`."""
        stop_row = self._end_before(stop_row)
        return int(self._rows.range_cardinality(start_row, stop_row)) if stop_row > start_row else 0

    def between(self, start_row: int, stop_row: int) -> DeletionBitmap:
        """Return the deleted rows from `start_row` up to, not including, `stop_row`."""
        return self & DeletionBitmap.from_range(start_row, self._end_before(stop_row))

    def _end_before(self, stop_row: int) -> int:
        """Limit the end of a range to the maximum of a bitmap; a damaged file may exceed it."""
        return min(stop_row, 1 + (-1 if self.max_row is None else self.max_row))

    def is_superset(self, other: DeletionBitmap) -> bool:
        """Return whether this set contains every row of `other`."""
        return bool(self._rows.issuperset(other._rows))

    def union(self, *others: DeletionBitmap) -> DeletionBitmap:
        """Return the rows that are in this set or in any of the others."""
        return DeletionBitmap(BitMap64.union(self._rows, *map(_rows_of, others)))

    def __or__(self, other: DeletionBitmap) -> DeletionBitmap:
        """Return the rows that are in either set."""
        return DeletionBitmap(self._rows | other._rows)

    def __and__(self, other: DeletionBitmap) -> DeletionBitmap:
        """Return the rows that are in both sets."""
        return DeletionBitmap(self._rows & other._rows)

    def __sub__(self, other: DeletionBitmap) -> DeletionBitmap:
        """Return the rows that are in this set and not in `other`."""
        return DeletionBitmap(self._rows - other._rows)

    def __contains__(self, row: int) -> bool:
        return row in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeletionBitmap):
            return NotImplemented
        return bool(self._rows == other._rows)

    def __hash__(self) -> int:
        # Do not hash the bytes, because equal sets may be encoded differently.
        return hash((len(self._rows), self.max_row))

    def __reduce__(self) -> tuple[Any, ...]:
        return DeletionBitmap.parse, (self.encode(),)

    def __repr__(self) -> str:
        return f"DeletionBitmap(cardinality={self.cardinality}, max_row={self.max_row})"


def keep_mask(bitmap: DeletionBitmap, start_row: int, num_rows: int) -> pa.BooleanArray | None:
    """Return a mask of the rows that are not deleted, for `num_rows` rows from `start_row` on.

    Returns:
        One boolean per row, never null; None if no row is deleted, so that filtering can be
        skipped.

    Cost: time and memory depend on the length of the range, not on the size of the vector.
    """
    deleted = bitmap.count_between(start_row, start_row + num_rows)
    if deleted == 0:
        return None
    marks: pa.BooleanArray = arrow.repeat(FALSE, deleted)
    if deleted == num_rows:
        return marks
    rows = compute.subtract(bitmap.between(start_row, start_row + num_rows).to_arrow(), start_row)
    options = compute.ScatterOptions(max_index=num_rows - 1)
    # `scatter` returns NULL at the positions of rows that are not deleted.
    return compute.call_function("scatter", [marks, rows], options).is_null()


def _rows_of(bitmap: DeletionBitmap) -> BitMap64:
    return bitmap._rows  # noqa: SLF001 -- of this file's own class


def _portable_of_native(body: memoryview, order: str) -> bytes:
    """Convert the native form to the portable form.

    The native form contains the number of bitmaps, then for each key the length and the bitmap.
    """
    integer = struct.Struct(order + "i")
    parts: list[bytes] = []
    position = integer.size
    try:
        (count,) = integer.unpack_from(body, 0)
        if count < 0:
            raise DeletionVectorError(f"cannot read a deletion vector of {count} bitmaps")
        # If `count` is too large, the loop raises an error at the end of the data.
        for key in range(count):
            (length,) = integer.unpack_from(body, position)
            bitmap = bytes(body[position + integer.size : position + integer.size + length])
            position += integer.size + max(length, 0)
            if length < 0 or len(bitmap) < length:
                raise DeletionVectorError(
                    f"cannot read a deletion vector: bitmap {key} of {count} is cut off"
                )
            parts.append(key.to_bytes(4, "little") + bitmap)
    except struct.error as error:
        raise DeletionVectorError(
            "cannot read a deletion vector: its list of bitmaps is cut off"
        ) from error
    return struct.pack("<q", len(parts)) + b"".join(parts)
