"""The formats `deltalog` and `deltalog_sharing`, for PySpark's Python Data Source API.

This module chooses the reader or writer for a request. The modules for streams and writes are
imported on first use. Spark starts several processes for each stream, and each process imports this
module, so the import must be fast. The sharing client needs an HTTP library, so it is imported only
when a shared table is read.

Protocol: none
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.datasource import DataSource

from deltalog.errors import InvalidInputError
from deltalog.spark.reading.batch_source import BatchReader, resolve
from deltalog.spark.reading.options import (
    parse_any_read_options,
    parse_read_options,
    parse_stream_options,
)
from deltalog.spark.session.types import to_spark_schema
from deltalog.spark.session.workers import check_planned_here
from deltalog.spark.sharing.options import (
    parse_any_shared_options,
    parse_shared_read_options,
    parse_shared_stream_options,
)

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.sharing.client import SharedTable


class DeltalogSource(DataSource):
    """The format `deltalog`, which reads and writes Delta tables in batches and in streams."""

    _shown: tuple[str | NamedTable, int | None] | None = None
    """The table, and the version whose schema `schema` has returned. PySpark then calls `reader` or
    `streamReader` of the same object."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)` and `USING`."""
        return "deltalog"

    def schema(self) -> StructType:
        """Return the schema of the requested version."""
        pinned, rows = resolve(parse_any_read_options(self.options))
        self._shown = (pinned.path, pinned.version)
        return to_spark_schema(rows)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of one version of the table, or of a range of its change feed."""
        check_planned_here()
        options = parse_read_options(self.options)
        if self._shown is not None:
            options = replace(options, path=self._shown[0], version=self._shown[1], timestamp=None)
        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # PySpark's name
        """Return a reader of a stream that follows the table."""
        from deltalog.spark.streaming.source import StreamReader

        check_planned_here()
        version = None if self._shown is None else self._shown[1]
        return StreamReader(parse_stream_options(self.options), schema, version)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  # PySpark's signature
        """Return a writer of one data frame."""
        from deltalog.spark.writing.options import parse_write_options
        from deltalog.spark.writing.plan import open_to_write
        from deltalog.spark.writing.writer import BatchWriter

        check_planned_here()
        path, storage, options = parse_write_options(self.options, overwrite=overwrite)
        return BatchWriter(open_to_write(path, storage), schema, options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802  # PySpark's signature
        """Return a writer of a stream. In complete mode, each batch overwrites the table."""
        from deltalog.spark.streaming.sink import StreamWriter
        from deltalog.spark.writing.options import parse_write_options
        from deltalog.spark.writing.plan import open_to_write

        check_planned_here()
        given = parse_write_options(self.options, overwrite=overwrite, streams=True)
        path, storage, options = given
        return StreamWriter(open_to_write(path, storage), schema, options)


class DeltaSource(DeltalogSource):
    """The same format under the name `delta`, for existing code."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)` and `USING`."""
        return "delta"


# --- Tables that are read through a sharing server


class SharingSource(DataSource):
    """The format `deltalog_sharing`, which reads shared tables in batches and in streams."""

    _shown: SharedTable | None = None
    """The table at the version whose schema `schema` has returned. PySpark then calls `reader` or
    `streamReader` of the same object."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)` and `USING`."""
        return "deltalog_sharing"

    def schema(self) -> StructType:
        """Return the schema of the requested version."""
        from deltalog.spark.sharing import batch

        options = parse_any_shared_options(self.options)
        self._shown = batch.open_shared(options)
        return to_spark_schema(batch.shown_rows(options, self._shown))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of one version of the table, or of a range of its change feed."""
        from deltalog.spark.sharing import batch

        options = parse_shared_read_options(self.options)
        table = self._shown or batch.open_shared(options)
        return batch.SharedBatchReader(options, table, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # PySpark's name
        """Return a reader of a stream that follows the table."""
        from deltalog.spark.sharing import batch, stream

        options = parse_shared_stream_options(self.options)
        shown = self._shown or batch.open_shared(parse_any_shared_options(self.options))
        return stream.SharedStreamReader(options, shown, schema)

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: FBT001  # PySpark's signature
        """Refuse to write."""
        del schema, overwrite
        _refuse_to_write()

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: FBT001, N802  # PySpark's signature
        """Refuse to write."""
        del schema, overwrite
        _refuse_to_write()


def _refuse_to_write() -> NoReturn:
    raise InvalidInputError("cannot write a shared table: it is read-only")
