"""What writes tables, under the module's name that deltalake's users import."""

from __future__ import annotations

from deltalog.table import convert_to_deltalake, write_deltalake
from deltalog.write.options import BloomFilterProperties, ColumnProperties, WriterProperties

__all__ = [
    "BloomFilterProperties",
    "ColumnProperties",
    "WriterProperties",
    "convert_to_deltalake",
    "write_deltalake",
]
