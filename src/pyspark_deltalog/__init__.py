"""The format `deltalog` for PySpark, which looks for formats in packages called `pyspark_…`."""

from __future__ import annotations

from deltalog.spark.source import DeltalogSource as DefaultSource

__all__ = ["DefaultSource"]
