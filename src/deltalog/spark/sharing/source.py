"""The format `deltalog_sharing`: tables that are read through a sharing server.

This module chooses the reader for a request. PySpark imports this module whenever it searches for
formats. So the sharing client, which needs an HTTP library, is imported only when a table is read.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.datasource import DataSource

from deltalog.errors import InvalidInputError
from deltalog.spark.session.types import to_spark_schema
from deltalog.spark.sharing.options import (
    parse_any_shared_options,
    parse_shared_read_options,
    parse_shared_stream_options,
)

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from deltalog.sharing.client import SharedTable


class SharingSource(DataSource):
    """The format `deltalog_sharing`, which reads shared tables in batches and in streams."""

    _shown: SharedTable | None = None
    """The table at the version whose schema `schema` has returned. PySpark later calls `reader` of
    the same object, which then reads the same version."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)` and `USING`."""
        return "deltalog_sharing"

    def schema(self) -> StructType:
        """Return the schema of the requested version."""
        from deltalog.spark.sharing import batch  # noqa: PLC0415  # needs an HTTP library

        options = parse_any_shared_options(self.options)
        self._shown = batch.open_shared(options)
        return to_spark_schema(batch.shown_rows(options, self._shown))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of one version of the table, or of a range of its change feed."""
        from deltalog.spark.sharing import batch  # noqa: PLC0415  # needs an HTTP library

        options = parse_shared_read_options(self.options)
        table = self._shown or batch.open_shared(options)
        return batch.SharedBatchReader(options, table, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # PySpark's name
        """Return a reader of a stream that follows the table."""
        from deltalog.spark.sharing import batch, stream  # noqa: PLC0415  # needs an HTTP library

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
