"""Bytes: stores, HTTP, Parquet files.

- `store`: the interface of all stores; `fsspec_store`: its implementation over file systems.
- `stores`: the file operations of each kind of store. `http`: the HTTP client. `parquet`: Parquet
  files.
- `pool`: threads for reads. `atomic`, `staging`, `links`: local files. `faults`: errors.

Import `parquet` and `pool` directly, because importing `parquet` takes 0.1 s.
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
