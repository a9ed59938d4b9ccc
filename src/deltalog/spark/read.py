"""Tables as DataFrames.

Owns the entry points; how a frame is made is `native`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.scan import plan_scan
from deltalog.spark.native import native_frame
from deltalog.spark.opening import open_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import PurePath

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.storage.store import Store


def read(
    spark: SparkSession,
    table: str | PurePath | Store,
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """A version of a table as a DataFrame.

    Args:
        spark: the session, classic or remote.
        table: its location, which may end in `@v3`.
        version: to read at; the latest if neither is given.
        timestamp: or a moment to read at.
        storage_options: credentials and settings for reading the log.
    """
    snapshot = open_table(table, storage_options, version=version, timestamp=timestamp)
    return native_frame(spark, plan_scan(snapshot))
