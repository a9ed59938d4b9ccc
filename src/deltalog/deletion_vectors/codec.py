"""The stored form of deletion vectors: descriptors in the log, and files.

Owns Z85, the meaning of a descriptor (inline bytes, file name, absolute path), and the framing of
deletion vector files. Does no I/O.

Integers of a file are big-endian (size, checksum), those of a bitmap little-endian: the reference
writes the former with Java's `DataOutputStream` (ledger B-28).

Protocol: Deletion Vectors (Deletion Vector Descriptor Schema, Deletion Vector File Storage Format)
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final
from uuid import UUID

from deltalog.actions.descriptors import check_storage_type
from deltalog.actions.model import DeletionVectorDescriptor
from deltalog.deletion_vectors.bitmap import DeletionBitmap
from deltalog.errors import DeletionVectorError
from deltalog.paths import check_confined, decode_path, encode_path

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT_VERSION: Final = 1
INLINE: Final = "i"
UUID_FILE: Final = "u"
ABSOLUTE_PATH: Final = "p"

_UUID_CHARS: Final = 20
_MOST_SHOWN: Final = 200
"""Characters of a vector that messages show: one that is inline may have millions."""
_INT_BYTES: Final = 4
# ZeroMQ RFC 32. Python's base85 packs bits in the same way, but with another alphabet.
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
    """Five printable characters for every four bytes.

    Raises:
        DeletionVectorError: the length is not a multiple of four.
    """
    if len(data) % 4:
        raise DeletionVectorError(
            f"cannot encode {len(data)} bytes as Z85: expected a multiple of 4"
        )
    return base64.b85encode(data).decode("ascii").translate(_TO_Z85)


def decode_z85(text: str) -> bytes:
    """The bytes of a Z85 text without padding.

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
            f"cannot decode {text!r} as Z85: a character is not of its alphabet, or a group of "
            "five exceeds 32 bits"
        ) from error


def decode_padded_z85(text: str, size_bytes: int) -> bytes:
    """The bytes of a Z85 text that may be padded.

    RFC 32 leaves it to the application how to encode bytes that do not fill a group of four. The
    reference and this library add zeros. Writers that use Rust's `z85` instead replace each missing
    byte by a `#` at the start of the last group, and the other characters are the number that the
    remaining bytes form. A group of plain Z85 never starts with `#`: it would exceed 32 bits.

    Args:
        text: groups of five characters.
        size_bytes: how many bytes are meant.

    Raises:
        DeletionVectorError: `decode_z85` raises, the padding is none of the two, or the bytes are
            too few, or with `#` too many.
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
    """The bytes of the last group of a text, which starts with a `#` for each missing byte."""
    digits = [_Z85.find(char) for char in text[-5:][missing:]]
    number = reduce(lambda found, digit: found * 85 + digit, digits, 0)
    num_bytes = 4 - missing
    if num_bytes < 1 or min(digits) < 0 or number >= 256**num_bytes:
        raise DeletionVectorError(
            f"cannot decode {text!r} as Z85: expected 1 to 3 {_MISSING!r} in its last group, one "
            f"for each missing byte, and the number of the others, found {text[-5:]!r}"
        )
    return number.to_bytes(num_bytes, "big")


def file_name(uuid: UUID, prefix: str = "") -> str:
    """Path of a deletion vector file, relative to the table's root."""
    name = f"deletion_vector_{uuid}.bin"
    return f"{prefix}/{name}" if prefix else name


def location(descriptor: DeletionVectorDescriptor) -> str | None:
    """Decoded path of the file that holds the vector; None if the vector is inline.

    Raises:
        DeletionVectorError: the descriptor does not name a valid file.
        UnsafePathError: the path leads out of the directory that it names.
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
    """Position and length in bytes of the vector's frame: size field, bitmap, checksum."""
    if descriptor.size_bytes < 0 or (descriptor.offset or 0) < 0:
        raise DeletionVectorError(
            f"cannot find the deletion vector {descriptor.unique_id!r}: "
            f"its offset or its size ({descriptor.size_bytes}) is negative"
        )
    return descriptor.offset or 0, descriptor.size_bytes + 2 * _INT_BYTES


def parse_inline(descriptor: DeletionVectorDescriptor) -> DeletionBitmap:
    """The vector that an inline descriptor holds.

    Raises:
        DeletionVectorError: it is not Z85, is shorter than its size, or is not a bitmap.
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
    """The vector in a range of its file, checked against its descriptor.

    Args:
        data: the file, or the range that `byte_range` gives.
        descriptor: of the vector.
        data_offset: position of `data` in the file.

    Raises:
        DeletionVectorError: the file is too short, or size, checksum, magic number, bitmap or
            cardinality is wrong; the message says which.

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
        raise error.with_note(f"in deletion vector {descriptor.unique_id!r}")  # noqa: B904 -- itself
    return _check_cardinality(bitmap, descriptor)


def parse_file(data: bytes, descriptor: DeletionVectorDescriptor) -> DeletionBitmap:
    """The vector in a whole file.

    Raises:
        DeletionVectorError: the file's version is unknown, or `parse_framed` raises.
    """
    check_file_version(data)
    return parse_framed(data, descriptor)


def check_rows(
    bitmap: DeletionBitmap, descriptor: DeletionVectorDescriptor, num_rows: int | None
) -> None:
    """Refuse a vector that marks a row beyond the end of its data file.

    Args:
        bitmap: the rows.
        descriptor: where they come from, for the message.
        num_rows: the file's physical rows; None if they are not known.

    Raises:
        DeletionVectorError: there is such a row; the message says which.
    """
    last = bitmap.max_row
    if last is not None and num_rows is not None and last >= num_rows:
        raise _unreadable(
            descriptor,
            f"expected rows below {num_rows}, which its data file has, found row {last}; another "
            "row is meant, or the vector belongs to another file: restore the table to an earlier "
            "version, or write it anew from its source",
        )


def inline_descriptor(bitmap: DeletionBitmap) -> DeletionVectorDescriptor:
    """A descriptor that holds the vector itself."""
    data = bitmap.encode()
    return DeletionVectorDescriptor(
        storage_type=INLINE,
        path_or_inline_dv=encode_z85(data + bytes(-len(data) % 4)),
        size_bytes=len(data),
        cardinality=bitmap.cardinality,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorFile:
    """A new file that holds the vectors of several data files.

    Args:
        path: relative to the table's root.
        data: the whole content.
        descriptors: one for each vector, in the order of the vectors.
    """

    path: str
    data: bytes
    descriptors: tuple[DeletionVectorDescriptor, ...]


def encode_file(
    bitmaps: Sequence[DeletionBitmap], uuid: UUID, *, prefix: str = ""
) -> DeletionVectorFile:
    """Encode several vectors as one file, with a descriptor for each.

    Args:
        bitmaps: one for each data file.
        uuid: a new one, from which the file gets its name.
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
    """The descriptor of the same vector for another table: a shallow clone needs it.

    Args:
        descriptor: of a table at `root`; inline and absolute ones are returned as they are.
        root: absolute, decoded location of that table.
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
            f"expected a cardinality of {descriptor.cardinality}, found {bitmap.cardinality} rows",
        )
    return bitmap


def _unreadable(descriptor: DeletionVectorDescriptor, reason: str) -> DeletionVectorError:
    name = descriptor.unique_id
    shown = name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}…"
    return DeletionVectorError(f"cannot read deletion vector {shown!r}: {reason}")
