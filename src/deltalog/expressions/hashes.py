"""Digests of texts and binaries, as generated columns use them to spread rows.

Cost: by row, all of them.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog.expressions.rows import by_row
from deltalog.kernels import Datum

if TYPE_CHECKING:
    from collections.abc import Callable

_SHA2: Final[dict[int, Callable[[bytes], Any]]] = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


def crc32(value: Datum) -> Datum:
    """The CRC-32 as a long."""
    return by_row(zlib.crc32, pa.int64(), value)


def md5(value: Datum) -> Datum:
    """The MD5 digest in hexadecimal digits."""
    return by_row(lambda data: hashlib.md5(data).hexdigest(), pa.string(), value)  # noqa: S324  # no secret is kept by it


def sha1(value: Datum) -> Datum:
    """The SHA-1 digest in hexadecimal digits."""
    return by_row(lambda data: hashlib.sha1(data).hexdigest(), pa.string(), value)  # noqa: S324  # no secret is kept by it


def sha2(value: Datum, bits: Datum) -> Datum:
    """The SHA-2 digest of so many bits in hexadecimal digits; NULL for another width."""

    def row(data: bytes, width: int) -> str | None:
        digest = _SHA2.get(width)
        return None if digest is None else digest(data).hexdigest()

    return by_row(row, pa.string(), value, bits)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "crc32": crc32,
    "md5": md5,
    "sha1": sha1,
    "sha2": sha2,
}
