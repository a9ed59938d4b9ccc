"""The format `deltalog`, as PySpark's Python Data Source API knows formats.

Owns which reader or writer serves which request; they live in modules of their own.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from deltalog.spark.batch_source import BatchReader, rows_schema
from deltalog.spark.opening import open_table
from deltalog.spark.options import parse_read_options
from deltalog.spark.types import to_spark_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType


class DeltalogSource(DataSource):
    """Delta tables under the name `deltalog`, for reading and writing, batches and streams."""

    @classmethod
    def name(cls) -> str:
        """What `format(…)` and `USING` say."""
        return "deltalog"

    def schema(self) -> StructType:
        """The schema of the version that is asked for."""
        options = parse_read_options(self.options)
        snapshot = open_table(
            options.path,
            options.storage,
            version=options.version,
            timestamp=options.timestamp,
            time_zone=options.time_zone,
        )
        rows = rows_schema(snapshot.configuration.schema, options.metadata_columns)
        return to_spark_schema(rows)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of one version, or of a range of the change feed."""
        return BatchReader(parse_read_options(self.options), schema)


class DeltaSource(DeltalogSource):
    """The same under the name `delta`, for pipelines that say so."""

    @classmethod
    def name(cls) -> str:
        """What `format(…)` and `USING` say."""
        return "delta"
