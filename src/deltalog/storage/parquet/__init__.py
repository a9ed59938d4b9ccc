"""Parquet files: their bytes, footers, pages and row groups, read and written.

- `reader` reads files and their footers through a store; `paged` reads single pages, `parts` and
  `excerpt` decode some columns and row groups.
- `footer`, `groups`, `pages` and `facts`: what footers and page headers state; `thrift` encodes it.
- `sink` writes a file; `splice` and `patch` make one of row groups and pages of other files.

Protocol: Data Files
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import names_on_demand

if TYPE_CHECKING:
    from deltalog.storage.parquet.reader import ParquetReader, open_parquet, read_footer

__all__ = ["ParquetReader", "open_parquet", "read_footer"]

_ORIGINS = {"deltalog.storage.parquet.reader": __all__}

if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
