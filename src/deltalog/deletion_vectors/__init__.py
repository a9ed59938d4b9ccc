"""Deletion vectors: which rows of a data file are gone.

Core: no I/O. `bitmap` is the set and its bytes, `codec` how it is stored, `mask` how it applies.

Protocol: Deletion Vectors
"""

from __future__ import annotations

from deltalog.deletion_vectors.bitmap import DeletionBitmap
from deltalog.deletion_vectors.codec import (
    DeletionVectorFile,
    absolute_descriptor,
    byte_range,
    check_file_version,
    decode_z85,
    encode_file,
    encode_z85,
    file_name,
    inline_descriptor,
    location,
    parse_file,
    parse_framed,
    parse_inline,
)
from deltalog.deletion_vectors.mask import keep_mask, rows_where

__all__ = [
    "DeletionBitmap",
    "DeletionVectorFile",
    "absolute_descriptor",
    "byte_range",
    "check_file_version",
    "decode_z85",
    "encode_file",
    "encode_z85",
    "file_name",
    "inline_descriptor",
    "keep_mask",
    "location",
    "parse_file",
    "parse_framed",
    "parse_inline",
    "rows_where",
]
