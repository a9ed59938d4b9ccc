"""A DataFrame over Spark's own Parquet reader, where that reads exactly what the table holds.

Owns the translation of a scan into Spark's operators.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.paths import join, split_location
from deltalog.spark.types import to_spark_schema

if TYPE_CHECKING:

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.scan import Scan


def native_frame(spark: SparkSession, scan: Scan) -> DataFrame:
    """The rows of a plain scan."""
    files = [spark_path(join(task.store.root, task.path)) for task in scan.tasks()]
    schema = to_spark_schema(scan.spec.data_columns)
    if not files:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*files)


def spark_path(location: str) -> str:
    """A location as Hadoop's file systems are asked for it."""
    scheme, _, path = split_location(location)
    return f"file://{path}" if scheme == "file" else location
