"""Replacements of `spark.read`, `df.write` and their streaming variants, in registered sessions.

deltalog plans the reads and writes in the driver, instead of in the process of a Python source.

Protocol: none
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self

from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.log.branches import named_root
from deltalog.query.names import QualifiedName
from deltalog.spark.engine.engine import SparkEngine
from deltalog.spark.reading.by_options import frame_by_options
from deltalog.spark.reading.options import parse_stream_options
from deltalog.spark.session.failures import as_analysis_errors, without_planner
from deltalog.spark.session.names import catalogs_of, location_of, named_in, view_location
from deltalog.spark.session.settings import left_to_spark, session_defaults
from deltalog.spark.session.spark_tables import SparkEntry, find_entry
from deltalog.spark.session.types import schema_of
from deltalog.spark.session.workers import check_source, loaded, naming_planner
from deltalog.spark.spellings.noting import (
    PATH,
    Noted,
    NotedSink,
    NotingOptions,
    NotingSink,
    as_text,
    flattened,
)
from deltalog.spark.writing.frame import NO_PLACE, place_of_name, write_frame
from deltalog.spark.writing.options import WriteOptions, encode_names, parse_write_options
from deltalog.spark.writing.plan import open_to_write
from deltalog.spark.writing.writer import fitted
from deltalog.table import DeltaTable
from deltalog.table.creating import TableDefinition, create_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from deltalog.spark.writing.frame import Mode, NamedPlace

# ruff: noqa: D102  # PySpark documents these methods


_MODES: Final[dict[str, Mode]] = {
    "default": "error",
    "error": "error",
    "errorifexists": "errorifexists",
    "append": "append",
    "overwrite": "overwrite",
    "ignore": "ignore",
}


class AskedWrite(NotedSink):
    """The recorded calls of the methods of `df.write`.

    Args:
        frame: the rows.
    """

    def __init__(self, frame: DataFrame) -> None:
        super().__init__(frame)
        self.mode: str | None = None
        self.cluster_by: tuple[str, ...] | None = None
        self.buckets: str | None = None

    def save(self, path: object) -> bool:
        """Write to a location. Return False if PySpark must write instead.

        Args:
            path: the argument of `save`.
        """
        if self.meant(self.own_formats()) is None or not isinstance(path, str | None):
            return False
        with left_to_spark(), as_analysis_errors():
            given = self._given(path)
            location, storage, options = self._options(given)
            write_frame(self.frame, open_to_write(location, storage), options, mode=self._mode)
        return True

    def save_as_table(self, name: object) -> bool:
        """Write to a table by name, and update Spark's catalog. False if PySpark must write."""
        provider = self.meant(self.own_formats())
        if provider is None or not isinstance(name, str):
            return False
        qualified = QualifiedName.parse(name)
        with as_analysis_errors():
            given = self._given(qualified.location)
            wanted = given.pop(PATH, None)
            _, storage, options = self._options({**given, PATH: wanted or name})
            found = place_of_name(self.spark, qualified, wanted, storage or None, provider=provider)
            if found is None:
                raise InvalidInputError(f"cannot save as the table {name}: {NO_PLACE}")
            with left_to_spark():
                if self._mode == "ignore" and found.is_known:
                    return True
                write_frame(self.frame, found.place, options, mode=self._mode, name=name)
                found.note(self.spark)
        return True

    def insert_into(self, name: object, overwrite: object) -> bool:
        """Insert with columns matched by position, as Spark does. False if PySpark must insert."""
        formats = self.own_formats()
        if not formats or not isinstance(name, str) or self.partition_by is not None:
            return False  # PySpark raises the error for these arguments
        with left_to_spark():
            found = known_place(self.spark, name, formats)
            if found is None:
                return False
            with as_analysis_errors():
                self._insert(name, found, bool(overwrite) or self._replaces(overwrite))
        return True

    def _replaces(self, overwrite: object) -> bool:
        return overwrite is None and self._mode == "overwrite"

    def _insert(self, name: str, found: NamedPlace, overwrite: bool) -> None:  # noqa: FBT001  # a private method
        if not found.has_table:
            raise TableNotFoundError(f"cannot insert into {name}: there is no such Delta table")
        _, _, options = self._options({**self._given(None), PATH: name}, overwrite=overwrite)
        table = DeltaTable.from_context(found.place.context, SparkEngine(self.spark))
        rows = fitted(self.spark, self.frame, table, columns=table.schema().names)
        write_frame(rows, found.place, options, mode="overwrite" if overwrite else "append")
        found.note(self.spark)

    @property
    def _mode(self) -> Mode:
        return _MODES[(self.mode or "default").lower()]

    def _given(self, path: str | None) -> dict[str, str]:
        """Return the options as strings, including the location as the option `path`."""
        given = {name: as_text(value) for name, value in self.options.items() if value is not None}
        named = [name for name in given if name.lower() == PATH]
        if path is not None and named:
            raise InvalidInputError(
                f"cannot write to both {path!r} and {given[named[0]]!r}: omit the option 'path' or "
                "the argument of save()"
            )
        if named:
            given[PATH] = given.pop(named[0])
        elif path is not None:
            given[PATH] = path
        return given

    def _options(
        self, given: dict[str, str], *, overwrite: bool | None = None
    ) -> tuple[str, dict[str, str], WriteOptions]:
        if self.buckets is not None:
            raise InvalidInputError(
                f"cannot use {self.buckets}: a Delta table has no buckets; use partitionBy or "
                "clusterBy"
            )
        replaces = self._mode == "overwrite" if overwrite is None else overwrite
        location, storage, options = parse_write_options(given, overwrite=replaces)
        if self.partition_by is not None or options.overwrite_schema:
            # As in Delta, an overwrite with overwriteSchema but without partitionBy removes the
            # partitioning.
            options = replace(options, partition_by=self.partition_by or options.partition_by or ())
        return location, storage, replace(options, cluster_by=self.cluster_by)


def known_place(spark: SparkSession, name: str, formats: frozenset[str]) -> NamedPlace | None:
    """Return the place of an existing deltalog table by its name; None for any other name."""
    try:
        qualified = QualifiedName.parse(name)
    except InvalidInputError:
        return None
    location = location_of(name) if qualified.format in formats else None
    location = location or view_location(spark, name)
    if location is not None:
        by_location = QualifiedName(("delta", location))
        return place_of_name(spark, by_location)
    if qualified.location is not None:
        return None
    is_known = entry_of(spark, name, formats) or catalogs_of(spark).names.keeps(qualified)
    return place_of_name(spark, qualified) if is_known else None


class NotingWriter(NotingSink):
    """Replacements of the methods of `df.write`; each records its call or writes the table."""

    _asked: AskedWrite

    def mode(self, saveMode: str | None) -> Self:  # noqa: N803  # PySpark's name
        super().mode(saveMode)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        if saveMode:
            self._asked.mode = saveMode
        return self

    def clusterBy(self, *cols: Any) -> Self:  # noqa: N802  # PySpark's name
        super().clusterBy(*cols)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        self._asked.cluster_by = flattened(cols)
        return self

    def bucketBy(self, numBuckets: int, col: Any, *cols: str) -> Self:  # noqa: N802, N803  # PySpark's name
        super().bucketBy(numBuckets, col, *cols)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        self._asked.buckets = "bucketBy"
        return self

    def sortBy(self, col: Any, *cols: str) -> Self:  # noqa: N802  # PySpark's name
        super().sortBy(col, *cols)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        self._asked.buckets = "sortBy"
        return self

    def save(
        self,
        path: str | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803  # PySpark's name
        **options: Any,
    ) -> None:
        self._record(format, mode, partitionBy, options)
        if not self._asked.save(path):
            super().save(path)  # type: ignore[misc]  # at run time, `super()` is PySpark's class

    def saveAsTable(  # noqa: N802  # PySpark's name
        self,
        name: str,
        format: str | None = None,  # noqa: A002  # PySpark's name
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803  # PySpark's name
        **options: Any,
    ) -> None:
        self._record(format, mode, partitionBy, options)
        if not self._asked.save_as_table(name):
            super().saveAsTable(name)  # type: ignore[misc]  # at run time, `super()` is PySpark's class

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:  # noqa: FBT001, N802, N803  # PySpark's signature
        if not self._asked.insert_into(tableName, overwrite):
            super().insertInto(tableName, overwrite)  # type: ignore[misc]  # at run time, `super()` is PySpark's class

    def _record(
        self,
        source: str | None,
        mode: str | None,
        partitions: Any,
        options: dict[str, Any],
    ) -> None:
        self.mode(mode)
        self.options(**options)
        if partitions is not None:
            self.partitionBy(partitions)
        if source is not None:
            self.format(source)


_BY_LOCATION: Final = re.compile(r"\s*`?(\w+)`?\s*\.\s*`((?:[^`]|``)+)`\s*")


class AskedRows(Noted):
    """The recorded calls of the methods of `spark.read`."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self.schema: StructType | str | None = None

    def frame(self, path: object) -> DataFrame | None:
        """Return the rows of a location as a dataframe; None if PySpark must read them instead.

        Args:
            path: the argument of `load`.
        """
        if self.meant(self.own_formats()) is None:
            return None
        given = self._given()
        if isinstance(path, list | tuple) and len(path) == 1:
            path = path[0]
        if given is None or not isinstance(path, str | None):
            return None  # PySpark raises the error for these arguments
        if path is not None:
            if PATH in (option.lower() for option in given):
                return None  # PySpark raises the error for these arguments
            given[PATH] = path
        return frame_by_options(self.spark, given, self.schema)

    def table(self, name: object) -> DataFrame | None:
        """Return the rows of a deltalog table by its name; None if PySpark must read the table."""
        formats = self.own_formats()
        given = self._given()
        if not formats or given is None or not isinstance(name, str) or self.schema is not None:
            return None
        found = _BY_LOCATION.fullmatch(name)
        if found is not None:
            if found[1].lower() not in formats:
                return None
            return frame_by_options(self.spark, {**given, PATH: found[2].replace("``", "`")})
        entry = entry_of(self.spark, name, formats)
        if entry is not None:
            return frame_by_options(self.spark, {**given, PATH: str(entry.location)})
        named = named_in(self.spark, name)
        if named is None or self.spark.catalog.tableExists(name):
            return None
        return frame_by_options(self.spark, {**given, PATH: name}, table=named)

    def _given(self) -> dict[str, str] | None:
        """Return the options as strings; None if an option is None, which PySpark refuses."""
        if any(value is None for value in self.options.values()):
            return None
        return {name: as_text(value) for name, value in self.options.items()}


def entry_of(spark: SparkSession, name: str, formats: frozenset[str]) -> SparkEntry | None:
    """Return the entry of a deltalog table in Spark's catalog; None for any other name."""
    try:
        entry = find_entry(spark, QualifiedName.parse(name))
    except InvalidInputError:
        return None  # Spark reports the error for an invalid name
    if entry is None or entry.provider not in formats or entry.location is None:
        return None
    return entry


class NotingReader(NotingOptions):
    """Replacements of the methods of `spark.read`; each records its call or reads the table."""

    _asked: AskedRows

    def schema(self, schema: StructType | str) -> Self:
        super().schema(schema)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        self._asked.schema = schema
        return self

    def load(
        self,
        path: Any = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        schema: StructType | str | None = None,
        **options: Any,
    ) -> DataFrame:
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        found = self._asked.frame(path)
        if found is None:
            load = super().load  # type: ignore[misc]  # at run time, `super()` is PySpark's class
            with without_planner():
                return loaded(lambda: load(path)) if self._asked.is_own else load(path)
        return found

    def table(self, tableName: str) -> DataFrame:  # noqa: N803  # PySpark's name
        found = self._asked.table(tableName)
        return super().table(tableName) if found is None else found  # type: ignore[misc]  # at run time, `super()` is PySpark's class


class NotingStreamReader(NotingOptions):
    """Replacements of the methods of `spark.readStream`; each records its call or reads a table."""

    _asked: Noted

    def load(
        self,
        path: str | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        schema: StructType | str | None = None,
        **options: Any,
    ) -> DataFrame:
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)  # type: ignore[attr-defined]  # PySpark's method
        self.options(**options)
        load = super().load  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        if not self._asked.is_own:
            with without_planner():
                return load(path)  # type: ignore[no-any-return]
        check_source(self._asked.spark)
        given = {one: as_text(text) for one, text in self._asked.options.items()}
        parse_stream_options(given if path is None else {**given, PATH: path})
        with without_planner():
            return loaded(lambda: load(path))

    def table(self, tableName: str) -> DataFrame:  # noqa: N803  # PySpark's name
        asked = self._asked
        formats = asked.own_formats()
        entry = entry_of(asked.spark, tableName, formats) if formats else None
        if entry is None:
            return super().table(tableName)  # type: ignore[misc,no-any-return]  # at run time, `super()` is PySpark's class
        self.format(entry.provider)
        return self.load(entry.location)


class AskedStream(NotedSink):
    """The recorded calls of the methods of `df.writeStream`.

    Args:
        frame: the stream.
    """

    @property
    def partitions(self) -> str | None:
        """Return the option `partitionBy` for deltalog's sink; None if it is not needed."""
        if self.partition_by is None or self.meant(self.own_formats()) is None:
            return None
        return encode_names(self.partition_by)

    def table(self, name: str) -> tuple[str, str] | None:
        """Return the format and location of a deltalog table, which is created if missing.

        Args:
            name: the argument of `toTable`.

        Raises:
            InvalidInputError: only a catalog of this process can open the table. The stream writer
                runs in other processes, which cannot.
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
                f"cannot stream to {name}: only this process has the catalog; use start(…) with "
                "uc://catalog.schema.table, or write in foreachBatch"
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
        return provider, named_root(context.store)


class NotingStreamWriter(NotingSink):
    """Replacements of the methods of `df.writeStream`, which record calls or start the stream."""

    _asked: AskedStream

    def start(
        self,
        path: str | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's name
        outputMode: str | None = None,  # noqa: N803  # PySpark's name
        partitionBy: Any = None,  # noqa: N803  # PySpark's name
        queryName: str | None = None,  # noqa: N803  # PySpark's name
        **options: Any,
    ) -> StreamingQuery:
        self._record(format, partitionBy, options)
        if self._asked.is_own and self._asked.format is not None:  # not `foreachBatch`
            check_source(self._asked.spark)
        partitions = self._asked.partitions
        if partitions is not None:
            super().option("partitionBy", partitions)
        with naming_planner():
            return super().start(path, None, outputMode, None, queryName)  # type: ignore[misc,no-any-return]  # at run time, `super()` is PySpark's class

    def toTable(  # noqa: N802  # PySpark's name
        self,
        tableName: str,  # noqa: N803  # PySpark's name
        format: str | None = None,  # noqa: A002  # PySpark's name
        outputMode: str | None = None,  # noqa: N803  # PySpark's name
        partitionBy: Any = None,  # noqa: N803  # PySpark's name
        queryName: str | None = None,  # noqa: N803  # PySpark's name
        **options: Any,
    ) -> StreamingQuery:
        self._record(format, partitionBy, options)
        found = None
        if isinstance(tableName, str):
            with as_analysis_errors():
                found = self._asked.table(tableName)
        if found is None:
            return super().toTable(tableName, None, outputMode, None, queryName)  # type: ignore[misc,no-any-return]  # at run time, `super()` is PySpark's class
        check_source(self._asked.spark)
        provider, location = found
        super().format(provider)
        with naming_planner():
            return super().start(location, None, outputMode, None, queryName)  # type: ignore[misc,no-any-return]  # at run time, `super()` is PySpark's class

    def _record(self, source: str | None, partitions: Any, options: dict[str, Any]) -> None:
        if source is not None:
            self.format(source)
        if partitions is not None:
            self.partitionBy(partitions)
        self.options(**options)
