"""`spark.sql`, `spark.table` and `spark.catalog` of registered sessions.

Protocol: none
"""

from __future__ import annotations

import re
import string
import uuid
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.sql_formatter import SQLStringFormatter

from deltalog.errors import InvalidInputError
from deltalog.query.names import QualifiedName
from deltalog.spark.create import spark_schema
from deltalog.spark.results import forget_table
from deltalog.spark.session.failures import as_analysis_errors
from deltalog.spark.session.settings import (
    formats_of,
    is_left_to_spark,
    left_to_spark,
    session_defaults,
)
from deltalog.spark.spellings.frames import AskedRows, entry_of
from deltalog.spark.spellings.noting import DEFAULT_FORMAT, PATH, Noted, as_text
from deltalog.spark.statements import run_statement
from deltalog.spark.writing.frame import NO_PLACE, place_of_name
from deltalog.spark.writing.options import PROPERTY_PREFIX
from deltalog.table.creating import TableDefinition, create_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

# ruff: noqa: D102  # the docstrings are those of PySpark's own methods


# Statements that name no table of ours, or that Spark runs by itself.
_OF_SPARK: Final = frozenset(
    "set reset add list uncache load declare begin call clear refresh analyze msck "  # noqa: SIM905  # words
    "grant revoke".split()
)
# Those of them that Spark cannot run if they read a table of ours, and what stands before it then.
_READING: Final = frozenset({"analyze", "begin", "load", "msck", "set"})
_BEFORE_TABLE: Final = re.compile(r"\b(?:from|into|update|table)\b", re.IGNORECASE)
_CREATING: Final = frozenset({"create", "replace"})
_WORD: Final = re.compile(r"(?:\s|/\*.*?\*/|--[^\n]*\n|\()*([A-Za-z]+)", re.DOTALL)
_NAMES_DELTA: Final = re.compile(r"\bdelta\s*\.\s*`|\busing\s+`?delta`?(?!\w)", re.IGNORECASE)
_NAMES_OURS: Final = re.compile(r"delta|\bclone\b|\bview\b|\bselect\b|\bas\b", re.IGNORECASE)


def statement_rows(
    spark: SparkSession, text: object, given: Any, named: Mapping[str, Any]
) -> DataFrame | None:
    """Return the rows of a statement about tables of ours; None if PySpark must run it.

    Args:
        spark: the session.
        text: as `sql` got it.
        given: its `args`.
        named: what its text has in braces.

    Cost: of a statement that names tables, a call or two of Spark for each name.
    """
    if is_left_to_spark() or not isinstance(text, str):
        return None
    formats = formats_of(spark)
    if not formats or not _may_concern(spark, text, formats):
        return None
    frames: dict[str, DataFrame] = {}
    if named:
        found = formatted(spark, text, named)
        if found is None:
            return None
        text, frames = found
    with left_to_spark(), as_analysis_errors():
        return run_statement(spark, text, given, own=formats, frames=frames)


def _may_concern(spark: SparkSession, text: str, formats: frozenset[str]) -> bool:
    found = _WORD.match(text)
    word = found[1].lower() if found is not None else ""
    if not word:
        return False
    if word in _OF_SPARK and not (word in _READING and _BEFORE_TABLE.search(text)):
        return False
    if "delta" not in formats and _NAMES_DELTA.search(text):
        return False  # of another library, such as Delta's jar
    if word not in _CREATING or _NAMES_OURS.search(text):
        return True
    return str(spark.conf.get(DEFAULT_FORMAT, "")).lower() in formats


class NotingCatalog:
    """The part of a catalog that makes and drops tables of ours."""

    _asked: Noted

    def createTable(  # noqa: N802  # PySpark's
        self,
        tableName: str,  # noqa: N803  # PySpark's
        path: str | None = None,
        source: str | None = None,
        schema: StructType | None = None,
        description: str | None = None,
        **options: str,
    ) -> DataFrame:
        asked = self._asked
        asked.format = source
        provider = asked.meant(asked.own_formats())
        if provider is None:
            more = {} if description is None else {"description": description}
            return super().createTable(tableName, path, source, schema, **more, **options)  # type: ignore[misc,no-any-return]  # PySpark's class comes next
        spark = asked.spark
        with as_analysis_errors():
            asked.note({**options, **({} if path is None else {PATH: path})})
            _create(asked, tableName, provider, schema, description)
        return spark.table(tableName)

    def createExternalTable(  # noqa: N802  # PySpark's
        self,
        tableName: str,  # noqa: N803  # PySpark's
        path: str | None = None,
        source: str | None = None,
        schema: StructType | None = None,
        **options: str,
    ) -> DataFrame:
        return self.createTable(tableName, path, source, schema, **options)

    def dropTable(  # noqa: N802  # PySpark's
        self,
        tableName: str,  # noqa: N803  # PySpark's
        ifExists: bool = False,  # noqa: FBT001, FBT002, N803  # PySpark's
        purge: bool = False,  # noqa: FBT001, FBT002  # PySpark's
    ) -> None:
        formats = self._asked.own_formats()
        if not formats or entry_of(self._asked.spark, tableName, formats) is None:
            super().dropTable(tableName, ifExists, purge)  # type: ignore[misc]  # as above
            return
        forget_table(self._asked.spark, QualifiedName.parse(tableName))


def _create(
    asked: Noted, name: str, provider: str, schema: StructType | None, description: str | None
) -> None:
    spark = asked.spark
    options = {key: as_text(value) for key, value in asked.options.items()}
    where = options.pop(PATH, None)
    unknown = [key for key in options if not key.lower().startswith(PROPERTY_PREFIX)]
    if unknown:
        raise InvalidInputError(
            f"cannot create the table {name} with the option {unknown[0]!r}: expected properties "
            f"of a table, which begin with {PROPERTY_PREFIX!r}"
        )
    found = place_of_name(spark, QualifiedName.parse(name), where, provider=provider)
    if found is None:
        raise InvalidInputError(f"cannot create the table {name}: {NO_PLACE}")
    if found.is_known:
        raise InvalidInputError(f"cannot create the table {name}: it already exists")
    if not found.has_table:
        if schema is None:
            raise InvalidInputError(
                f"cannot create the table {name}: there is no Delta table at "
                f"{found.place.context.store.root}, and no schema of a new one; give schema="
            )
        definition = TableDefinition(
            schema=spark_schema(schema), description=description, configuration=options
        )
        with session_defaults(spark), left_to_spark():
            create_table(found.place, definition)
    found.note(spark)


def table_rows(spark: SparkSession, name: object) -> DataFrame | None:
    """Return the rows of a table of ours by its name; None if PySpark must find it.

    Args:
        spark: the session.
        name: as `table` got it.
    """
    return AskedRows(spark).table(name)


# `spark.sql(text, name=value)`: PySpark's own formatting, with frames that keep a name.


class _Formatter(string.Formatter):
    """Formats as another formatter does, but for frames.

    Args:
        other: PySpark's.
    """

    def __init__(self, other: string.Formatter) -> None:
        self._other = other
        self.frames: dict[str, DataFrame] = {}

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, int | str]:
        found, first = super().get_field(field_name, args, kwargs)
        if not isinstance(found, DataFrame):
            shown: tuple[Any, int | str] = self._other.get_field(field_name, args, kwargs)
            return shown
        for name, frame in self.frames.items():
            if frame is found:
                return name, first
        name = f"deltalog_frame_{uuid.uuid4().hex}"
        self.frames[name] = found
        return name, first


def formatted(
    spark: SparkSession, text: str, given: Mapping[str, Any]
) -> tuple[str, dict[str, DataFrame]] | None:
    """Return a statement with values in place of names in braces; None if PySpark must refuse it.

    Args:
        spark: the session, classic or remote.
        text: with names in braces.
        given: name → value, column or frame.

    Returns:
        The text, and the frames by their names in it.
    """
    other: string.Formatter = SQLStringFormatter(spark)
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect import sql_formatter  # noqa: PLC0415  # needs gRPC

        other = sql_formatter.SQLStringFormatter(spark)  # type: ignore[arg-type]  # it is one
    formatter = _Formatter(other)
    try:
        return formatter.format(text, **given), formatter.frames
    except Exception:  # noqa: BLE001  # whatever it is, PySpark says it
        return None
