# ruff: noqa: D102  # the docstrings are those of PySpark's own methods
"""`df.write` in registered sessions: what it saves in a format of ours is written on the driver.

Protocol: none
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.query.names import QualifiedName
from deltalog.spark.engine.engine import SparkEngine
from deltalog.spark.session.catalogs import catalogs_of
from deltalog.spark.session.failures import as_analysis_errors
from deltalog.spark.session.formats import left_to_spark
from deltalog.spark.session.names import location_of, view_location
from deltalog.spark.spellings.noting import PATH, NotedSink, NotingSink, as_text, flattened
from deltalog.spark.spellings.rows import entry_of
from deltalog.spark.writing.fitted import fitted
from deltalog.spark.writing.frame import write_frame
from deltalog.spark.writing.named import NO_PLACE, place_of_name
from deltalog.spark.writing.options import parse_write_options
from deltalog.spark.writing.plan import open_to_write
from deltalog.table import DeltaTable

if TYPE_CHECKING:
    from typing import Self

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.spark.writing.frame import Mode
    from deltalog.spark.writing.named import NamedPlace
    from deltalog.spark.writing.options import WriteOptions

_MODES: Final[dict[str, Mode]] = {
    "default": "error",
    "error": "error",
    "errorifexists": "errorifexists",
    "append": "append",
    "overwrite": "overwrite",
    "ignore": "ignore",
}


class AskedWrite(NotedSink):
    """What a writer was told.

    Args:
        frame: the rows.
    """

    def __init__(self, frame: DataFrame) -> None:
        super().__init__(frame)
        self.mode: str | None = None
        self.cluster_by: tuple[str, ...] | None = None
        self.buckets: str | None = None

    def save(self, path: object) -> bool:
        """Write to a location; False if PySpark must do it.

        Args:
            path: as `save` got it.
        """
        if self.meant(self.own_formats()) is None or not isinstance(path, str | None):
            return False
        with left_to_spark(), as_analysis_errors():
            given = self._given(path)
            location, storage, options = self._options(given)
            write_frame(self.frame, open_to_write(location, storage), options, mode=self._mode)
        return True

    def save_as_table(self, name: object) -> bool:
        """Write to the table of a name, which Spark's catalog then has; False as of `save`."""
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
        """Insert by the places of columns, as Spark does; False as of `save`."""
        formats = self.own_formats()
        if not formats or not isinstance(name, str) or self.partition_by is not None:
            return False  # PySpark has errors for these
        with left_to_spark():
            found = known_place(self.spark, name, formats)
            if found is None:
                return False
            with as_analysis_errors():
                self._insert(name, found, bool(overwrite) or self._replaces(overwrite))
        return True

    def _replaces(self, overwrite: object) -> bool:
        return overwrite is None and self._mode == "overwrite"

    def _insert(self, name: str, found: NamedPlace, overwrite: bool) -> None:  # noqa: FBT001  # ours
        if not found.has_table:
            raise TableNotFoundError(f"cannot insert into {name}: it has no Delta table")
        _, _, options = self._options({**self._given(None), PATH: name}, overwrite=overwrite)
        table = DeltaTable.from_context(found.place.context, SparkEngine(self.spark))
        rows = fitted(self.spark, self.frame, table, columns=table.schema().names)
        write_frame(rows, found.place, options, mode="overwrite" if overwrite else "append")
        found.note(self.spark)

    @property
    def _mode(self) -> Mode:
        return _MODES[(self.mode or "default").lower()]

    def _given(self, path: str | None) -> dict[str, str]:
        """Return the options as texts, the location among them as `path`."""
        given = {name: as_text(value) for name, value in self.options.items() if value is not None}
        named = [name for name in given if name.lower() == PATH]
        if path is not None and named:
            raise InvalidInputError(
                f"cannot write to both {path!r} and {given[named[0]]!r}: leave the option 'path' "
                "out, or the location"
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
                f"cannot take {self.buckets}: a Delta table has no buckets; partitionBy or "
                "clusterBy say how rows are arranged"
            )
        replaces = self._mode == "overwrite" if overwrite is None else overwrite
        location, storage, options = parse_write_options(given, overwrite=replaces)
        if self.partition_by is not None or options.overwrite_schema:
            # As in Delta, a table that gets another schema keeps no partitions that are not named.
            options = replace(options, partition_by=self.partition_by or options.partition_by or ())
        return location, storage, replace(options, cluster_by=self.cluster_by)


def known_place(spark: SparkSession, name: str, formats: frozenset[str]) -> NamedPlace | None:
    """Return the place of a table of ours that is there; None for those of others."""
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
    """The part of a writer that notes what it is told."""

    _asked: AskedWrite

    def mode(self, saveMode: str | None) -> Self:  # noqa: N803  # PySpark's
        super().mode(saveMode)  # type: ignore[misc]  # PySpark's class comes next; it refuses others
        if saveMode:
            self._asked.mode = saveMode
        return self

    def clusterBy(self, *cols: Any) -> Self:  # noqa: N802  # PySpark's
        super().clusterBy(*cols)  # type: ignore[misc]  # as above
        self._asked.cluster_by = flattened(cols)
        return self

    def bucketBy(self, numBuckets: int, col: Any, *cols: str) -> Self:  # noqa: N802, N803  # PySpark's
        super().bucketBy(numBuckets, col, *cols)  # type: ignore[misc]  # as above
        self._asked.buckets = "bucketBy"
        return self

    def sortBy(self, col: Any, *cols: str) -> Self:  # noqa: N802  # PySpark's
        super().sortBy(col, *cols)  # type: ignore[misc]  # as above
        self._asked.buckets = "sortBy"
        return self

    def save(
        self,
        path: str | None = None,
        format: str | None = None,  # noqa: A002  # PySpark's
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803  # PySpark's
        **options: Any,
    ) -> None:
        self._told(format, mode, partitionBy, options)
        if not self._asked.save(path):
            super().save(path)  # type: ignore[misc]  # as above

    def saveAsTable(  # noqa: N802  # PySpark's
        self,
        name: str,
        format: str | None = None,  # noqa: A002  # PySpark's
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803  # PySpark's
        **options: Any,
    ) -> None:
        self._told(format, mode, partitionBy, options)
        if not self._asked.save_as_table(name):
            super().saveAsTable(name)  # type: ignore[misc]  # as above

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:  # noqa: FBT001, N802, N803  # PySpark's
        if not self._asked.insert_into(tableName, overwrite):
            super().insertInto(tableName, overwrite)  # type: ignore[misc]  # as above

    def _told(
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
