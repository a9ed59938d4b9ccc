"""Options of Parquet files, under the module's name that deltalake's users import."""

from __future__ import annotations

from deltalog.data.write.options import BloomFilterProperties, ColumnProperties, WriterProperties

__all__ = ["BloomFilterProperties", "ColumnProperties", "WriterProperties"]
