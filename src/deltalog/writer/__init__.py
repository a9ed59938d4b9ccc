"""What writes tables, by the names that deltalake's users import."""

from __future__ import annotations

from deltalog.data.write.options import BloomFilterProperties, ColumnProperties, WriterProperties
from deltalog.table import convert_to_deltalake, write_deltalake

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]
