"""Bytes: stores, HTTP, Parquet files.

- `store`: the protocol that all stores have; `fsspec_store` is the implementation over file
  systems.
- `stores`: what differs from kind to kind. `http`: the HTTP client. `parquet`: Parquet files.
- `pool`: threads for reads. `atomic`, `staging`, `links`: files of local disks. `faults`: errors.

Import `parquet` and `pool` by their own names: importing `parquet` takes a tenth of a second.
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
