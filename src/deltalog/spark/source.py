"""The formats `deltalog` and `deltalog_sharing`, for PySpark's Python Data Source API.

This module chooses the reader or writer for a request. Spark starts several processes for each
stream, and each process imports this module, so the import must be fast. All modules for reads and
writes are imported on first use. One of the processes only pickles the stream's reader for tasks;
it uses the pickle that the first process made, and opens and imports nothing. The sharing client
needs an HTTP library, so it is imported only when a shared table is read.

Protocol: none
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSource, DataSourceStreamReader

from deltalog._util.cached import cached_property
from deltalog.errors import InvalidInputError
from deltalog.spark.session.environment import AvailableNow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamWriter,
        DataSourceWriter,
        InputPartition,
    )
    from pyspark.sql.types import StructType

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.sharing.client import SharedTable
    from deltalog.spark.streaming.source import StreamReader


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The version whose schema `schema` has returned.

    Args:
        path: the location of the table.
        version: the version.
        names: the names of the returned columns.
        snapshot: the pickled result of `Snapshot.stored`.
        tasks: the pickled part of a stream's reader that tasks need.
    """

    path: str | NamedTable
    version: int | None
    names: Sequence[str]
    snapshot: bytes
    tasks: bytes


class DeltalogSource(DataSource):
    """The format `deltalog`, which reads and writes Delta tables in batches and in streams."""

    _shown: _Shown | None = None
    """The version whose schema `schema` has returned. PySpark then calls `reader` or `streamReader`
    of the same object, in other processes."""
    _has_reader: bool = False
    """Whether a reader was returned. PySpark then sends the object to each task with the reader."""

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what readers need; for tasks, only the options."""
        omitted = {"_shown", "_has_reader"} if self._has_reader else set()
        return {name: value for name, value in vars(self).items() if name not in omitted}

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)` and `USING`."""
        return "deltalog"

    def schema(self) -> StructType:
        """Return the schema of the requested version."""
        from deltalog.spark.reading import batch_source
        from deltalog.spark.reading.options import parse_any_read_options
        from deltalog.spark.session.types import to_spark_schema

        options = parse_any_read_options(self.options)
        snapshot = batch_source.open_shown(options)
        pinned, rows = batch_source.pinned_to(options, snapshot)
        tasks = batch_source.CredentialedTaskReader(rows, options.unzoned)
        self._shown = _Shown(
            path=pinned.path,
            version=pinned.version,
            names=rows.names,
            snapshot=pickle.dumps(snapshot.stored()),
            tasks=tasks.pickled(),
        )
        return to_spark_schema(rows)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of one version of the table, or of a range of its change feed."""
        from deltalog.spark.reading.batch_source import BatchReader
        from deltalog.spark.reading.options import parse_read_options
        from deltalog.spark.session.workers import check_planned_here

        check_planned_here()
        self._has_reader = True
        options, shown = parse_read_options(self.options), self._shown
        if shown is not None:
            options = replace(options, path=shown.path, version=shown.version, timestamp=None)
        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # PySpark's name
        """Return a reader of a stream that follows the table, which it opens when it is used."""
        shown, self._has_reader = self._shown, True
        tasks = None if shown is None or list(shown.names) != schema.names else shown.tasks
        return DeferredStreamReader(partial(self._open_stream, schema), tasks)

    def _open_stream(self, schema: StructType) -> StreamReader:
        from deltalog.spark.reading.options import parse_stream_options
        from deltalog.spark.session.workers import check_planned_here
        from deltalog.spark.streaming.source import StreamReader

        check_planned_here()
        stored = None if self._shown is None else pickle.loads(self._shown.snapshot)  # noqa: S301  # `schema` has pickled it
        return StreamReader(parse_stream_options(self.options), schema, stored)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  # PySpark's signature
        """Return a writer of one dataframe."""
        from deltalog.spark.session.workers import check_planned_here
        from deltalog.spark.writing.options import parse_write_options
        from deltalog.spark.writing.plan import open_to_write
        from deltalog.spark.writing.writer import BatchWriter

        check_planned_here()
        path, storage, options = parse_write_options(self.options, overwrite=overwrite)
        return BatchWriter(open_to_write(path, storage), schema, options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802  # PySpark's signature
        """Return a writer of a stream. In complete mode, each batch overwrites the table."""
        from deltalog.spark.session.workers import check_planned_here
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


class DeferredStreamReader(DataSourceStreamReader, AvailableNow):
    """A stream reader that opens its table when Spark calls a method of it.

    Spark also creates the reader in a process that only pickles it for tasks.

    Args:
        open_reader: a function that opens the reader.
        tasks: the pickled part of the reader that tasks need; None if the reader must be opened to
            pickle it.
    """

    def __init__(self, open_reader: Callable[[], StreamReader], tasks: bytes | None) -> None:
        self._open_reader = open_reader
        self._tasks = tasks

    @cached_property
    def opened(self) -> StreamReader:
        """The reader of the table."""
        return self._open_reader()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  # PySpark's name
        """Return the limit of a batch from the options."""
        return self.opened.getDefaultReadLimit()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # PySpark's name
        """Return the offset at which a new query starts."""
        return self.opened.initialOffset()

    def latestOffset(  # noqa: N802  # PySpark's name
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Return the end offset of the next batch."""
        return self.opened.latestOffset(start, limit)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  # PySpark's name
        """Return the offset after the latest version."""
        return self.opened.reportLatestOffset()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # PySpark's name
        """Make the stream end after the rows that are available now."""
        self.opened.prepareForTriggerAvailableNow()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the partitions of a batch."""
        return self.opened.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one partition."""
        return self.opened.read(partition)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the part that tasks need."""
        if self._tasks is None:
            return self.opened.__reduce__()
        return pickle.loads, (self._tasks,)


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
        from deltalog.spark.session.types import to_spark_schema
        from deltalog.spark.sharing import batch
        from deltalog.spark.sharing.options import parse_any_shared_options

        options = parse_any_shared_options(self.options)
        self._shown = batch.open_shared(options)
        return to_spark_schema(batch.shown_rows(options, self._shown))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of one version of the table, or of a range of its change feed."""
        from deltalog.spark.sharing import batch
        from deltalog.spark.sharing.options import parse_shared_read_options

        options = parse_shared_read_options(self.options)
        table = self._shown or batch.open_shared(options)
        return batch.SharedBatchReader(options, table, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # PySpark's name
        """Return a reader of a stream that follows the table."""
        from deltalog.spark.sharing import batch, stream
        from deltalog.spark.sharing.options import (
            parse_any_shared_options,
            parse_shared_stream_options,
        )

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


class DeltaSharingSource(SharingSource):
    """The same format under the name `deltaSharing`, for code for the official connector."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)` and `USING`."""
        return "deltaSharing"


def _refuse_to_write() -> NoReturn:
    raise InvalidInputError("cannot write a shared table: it is read-only")
