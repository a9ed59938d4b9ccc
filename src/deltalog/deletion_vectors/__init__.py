"""Deletion vectors: which rows of a data file are deleted.

Core: no I/O. `bitmap` is the set of rows, its bytes and its use as a mask; `codec` stores it in the
log or in a file.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from deltalog.deletion_vectors.bitmap import DeletionBitmap, keep_mask
from deltalog.deletion_vectors.codec import (
    INLINE,
    absolute_descriptor,
    byte_range,
    check_file_version,
    check_rows,
    encode_file,
    encode_z85,
    inline_descriptor,
    location,
    parse_framed,
    parse_inline,
)

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
