"""The format `deltalog_sharing` for PySpark, which looks for formats in packages `pyspark_…`."""

from __future__ import annotations

from deltalog.spark.source import SharingSource as DefaultSource

__all__ = ["DefaultSource"]
