# ruff: noqa: D102  # the docstrings are those of PySpark's own methods
"""`df.writeStream` in registered sessions: names of tables, and partitions of new ones.

Spark hands a format's sink neither; the batches are the sink's.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError
from deltalog.query.names import QualifiedName
from deltalog.spark.session.failures import as_analysis_errors
from deltalog.spark.session.settings import session_defaults
from deltalog.spark.session.types import schema_of
from deltalog.spark.spellings.noting import PATH, NotedSink, NotingSink, as_text
from deltalog.spark.spellings.rows import entry_of
from deltalog.spark.writing.named import NO_PLACE, place_of_name
from deltalog.spark.writing.options import encode_names, parse_write_options
from deltalog.table.creating import TableDefinition, create_table

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


class AskedStream(NotedSink):
    """What a stream's writer was told.

    Args:
        frame: the stream.
    """

    @property
    def partitions(self) -> str | None:
        """The partition columns for the sink, if the format is ours."""
        if self.partition_by is None or self.meant(self.own_formats()) is None:
            return None
        return encode_names(self.partition_by)

    def table(self, name: str) -> tuple[str, str] | None:
        """Return format and location of a table of ours, which is made if there is none.

        Args:
            name: as `toTable` got it.

        Raises:
            InvalidInputError: a catalog of this process has the name, which the sink cannot open.
        """
        formats = self.own_formats()
        entry = entry_of(self.spark, name, formats) if formats else None
        provider = self.meant(formats) if entry is None else entry.provider
        if provider is None:
            return None
        given = {one: as_text(text) for one, text in self.options.items() if text is not None}
        wanted = next((text for one, text in given.items() if one.lower() == PATH), None)
        _, storage, options = parse_write_options(
            {**given, PATH: wanted or name}, overwrite=False, streams=True
        )
        found = place_of_name(
            self.spark, QualifiedName.parse(name), wanted, storage or None, provider=provider
        )
        if found is None:
            raise InvalidInputError(f"cannot stream to the table {name}: {NO_PLACE}")
        context = found.place.context
        if context.committer is not None or found.place.new is not None:
            raise InvalidInputError(
                f"cannot stream to {name}: the catalog is known to this process alone; name the "
                "table uc://catalog.schema.table in start(…), or write in foreachBatch"
            )
        if not found.has_table:
            definition = TableDefinition(
                schema=schema_of(self.frame.schema),
                partition_by=self.partition_by or options.partition_by or (),
                configuration=dict(options.properties),
            )
            with session_defaults(self.spark):
                create_table(found.place, definition, mode="ignore")
        found.note(self.spark)
        return provider, context.store.root


class NotingStreamWriter(NotingSink):
    """The part of a stream's writer that notes what it is told."""

    _asked: AskedStream

    def start(
        self,
        path: str | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's
        outputMode: str | None = None,  # noqa: N803  # PySpark's
        partitionBy: Any = None,  # noqa: N803  # PySpark's
        queryName: str | None = None,  # noqa: N803  # PySpark's
        **options: Any,
    ) -> StreamingQuery:
        self._told(format, partitionBy, options)
        partitions = self._asked.partitions
        if partitions is not None:
            super().option("partitionBy", partitions)
        return super().start(path, None, outputMode, None, queryName)  # type: ignore[misc,no-any-return]  # PySpark's class comes next

    def toTable(  # noqa: N802  # PySpark's
        self,
        tableName: str,  # noqa: N803  # PySpark's
        format: str | None = None,  # noqa: A002  # PySpark's
        outputMode: str | None = None,  # noqa: N803  # PySpark's
        partitionBy: Any = None,  # noqa: N803  # PySpark's
        queryName: str | None = None,  # noqa: N803  # PySpark's
        **options: Any,
    ) -> StreamingQuery:
        self._told(format, partitionBy, options)
        found = None
        if isinstance(tableName, str):
            with as_analysis_errors():
                found = self._asked.table(tableName)
        if found is None:
            return super().toTable(tableName, None, outputMode, None, queryName)  # type: ignore[misc,no-any-return]  # as above
        provider, location = found
        super().format(provider)
        return super().start(location, None, outputMode, None, queryName)  # type: ignore[misc,no-any-return]  # as above

    def _told(self, source: str | None, partitions: Any, options: dict[str, Any]) -> None:
        if source is not None:
            self.format(source)
        if partitions is not None:
            self.partitionBy(partitions)
        self.options(**options)
