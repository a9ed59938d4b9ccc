"""Delta tables as data frames of Dask, and data frames of Dask as versions of Delta tables.

The code is in `deltalog.integrations.dask`.
"""

from __future__ import annotations

from deltalog.integrations.dask import DaskEngine, read, read_deltalake, to_deltalake, write

__all__ = ["DaskEngine", "read", "read_deltalake", "to_deltalake", "write"]
