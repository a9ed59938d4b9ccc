# ruff: noqa: D102  # the docstrings are those of PySpark's own methods
"""Readers of registered sessions: what they load is planned as by `deltalog.spark.read`.

Protocol: none
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.query.names import QualifiedName
from deltalog.spark.reading.by_options import frame_by_options
from deltalog.spark.session.catalogs import named_in
from deltalog.spark.session.spark_tables import find_entry
from deltalog.spark.spellings.noting import PATH, Noted, NotingOptions, as_text

if TYPE_CHECKING:
    from typing import Self

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from deltalog.spark.session.spark_tables import SparkEntry

_BY_LOCATION: Final = re.compile(r"\s*`?(\w+)`?\s*\.\s*`((?:[^`]|``)+)`\s*")


class AskedRows(Noted):
    """What a reader was told."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self.schema: StructType | str | None = None

    def frame(self, path: object) -> DataFrame | None:
        """Return the planned rows of a location; None if PySpark must answer.

        Args:
            path: as `load` got it.
        """
        if self.meant(self.own_formats()) is None:
            return None
        given = self._given()
        if isinstance(path, list | tuple) and len(path) == 1:
            path = path[0]
        if given is None or not isinstance(path, str | None):
            return None  # PySpark has errors for these
        if path is not None:
            if PATH in (option.lower() for option in given):
                return None  # as above
            given[PATH] = path
        return frame_by_options(self.spark, given, self.schema)

    def table(self, name: object) -> DataFrame | None:
        """Return the planned rows of a table of ours by its name; None for other tables."""
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
        """Return the options as texts; None if PySpark takes one of them for none."""
        if any(value is None for value in self.options.values()):
            return None
        return {name: as_text(value) for name, value in self.options.items()}


def entry_of(spark: SparkSession, name: str, formats: frozenset[str]) -> SparkEntry | None:
    """Return the table of ours that Spark's catalog has under a name."""
    try:
        entry = find_entry(spark, QualifiedName.parse(name))
    except InvalidInputError:
        return None  # Spark says what is wrong with it
    if entry is None or entry.provider not in formats or entry.location is None:
        return None
    return entry


class NotingReader(NotingOptions):
    """The part of a reader that notes what it is told."""

    _asked: AskedRows

    def schema(self, schema: StructType | str) -> Self:
        super().schema(schema)  # type: ignore[misc]  # PySpark's class comes next; it refuses others
        self._asked.schema = schema
        return self

    def load(
        self,
        path: Any = None,
        format: str | None = None,  # noqa: A002  # PySpark's
        schema: StructType | str | None = None,
        **options: Any,
    ) -> DataFrame:
        if format is not None:
            self.format(format)
        if schema is not None:
            self.schema(schema)
        self.options(**options)
        found = self._asked.frame(path)
        return super().load(path) if found is None else found  # type: ignore[misc]  # as above

    def table(self, tableName: str) -> DataFrame:  # noqa: N803  # PySpark's
        found = self._asked.table(tableName)
        return super().table(tableName) if found is None else found  # type: ignore[misc]  # as above


class NotingStreamReader:
    """The part of a stream's reader that knows names of tables."""

    _asked: Noted

    def table(self, tableName: str) -> DataFrame:  # noqa: N803  # PySpark's
        asked = self._asked
        formats = asked.own_formats()
        entry = entry_of(asked.spark, tableName, formats) if formats else None
        if entry is None:
            return super().table(tableName)  # type: ignore[misc,no-any-return]  # PySpark's class comes next
        return super().format(entry.provider).load(entry.location)  # type: ignore[misc,no-any-return]  # as above
