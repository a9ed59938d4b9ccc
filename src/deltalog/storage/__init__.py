"""Bytes: stores, HTTP, Parquet files.

`parquet` and `pool` are imported by their own names: the first takes a tenth of a second.
"""

from __future__ import annotations

from deltalog.storage.fsspec_store import FsspecStore, StorageOptions, open_store
from deltalog.storage.store import (
    ByteRange,
    LevelStore,
    NativeStore,
    PeekingStore,
    SigningStore,
    Store,
)

__all__ = [
    "ByteRange",
    "FsspecStore",
    "LevelStore",
    "NativeStore",
    "PeekingStore",
    "SigningStore",
    "StorageOptions",
    "Store",
    "open_store",
]
