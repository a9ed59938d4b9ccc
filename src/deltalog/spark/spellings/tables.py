# ruff: noqa: D102  # PySpark documents these methods
"""Replacements of PySpark's methods that find tables by name, in registered sessions.

The methods are `df.writeTo`, `df.mergeInto`, `spark.sql`, `spark.table`, and some of
`spark.catalog`.

Protocol: none
"""

from __future__ import annotations

import re
import string
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pyspark.sql import Column, DataFrame
from pyspark.sql.sql_formatter import SQLStringFormatter

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.query.names import QualifiedName
from deltalog.spark.create import spark_schema
from deltalog.spark.engine.engine import SparkEngine
from deltalog.spark.reading.scan import objection_to_native
from deltalog.spark.results import forget_table
from deltalog.spark.session.failures import (
    SparkTableExistsError,
    SparkTableNotFoundError,
    as_analysis_errors,
    check_condition,
)
from deltalog.spark.session.names import catalogs_of
from deltalog.spark.session.settings import (
    formats_of,
    is_left_to_spark,
    left_to_spark,
    session_defaults,
    session_settings,
)
from deltalog.spark.session.types import schema_of
from deltalog.spark.spellings.frames import AskedRows, AskedWrite, entry_of, known_place
from deltalog.spark.spellings.noting import (
    DEFAULT_FORMAT,
    PATH,
    Noted,
    NotingOptions,
    as_text,
    flattened,
)
from deltalog.spark.statements import run_statement
from deltalog.spark.table import DeltaTable as SparkTable
from deltalog.spark.writing.frame import NO_PLACE, place_of_name, write_frame, write_over_column
from deltalog.spark.writing.options import PROPERTY_PREFIX
from deltalog.table.creating import TableDefinition, create_table
from deltalog.transaction import CommitOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from deltalog.spark.merge import DeltaMergeBuilder
    from deltalog.spark.writing.frame import NamedPlace

    Way = Literal["create", "replace", "createOrReplace"]

_PLAIN: Final = re.compile(r"Column<'(.*)'>", re.DOTALL)
_COMMENT: Final = "comment"
_LOCATION: Final = "location"


class AskedTable(AskedWrite):
    """The recorded calls of the methods of `df.writeTo(…)`.

    Args:
        frame: the rows.
        name: the name of the table.
    """

    def __init__(self, frame: DataFrame, name: object) -> None:
        super().__init__(frame)
        self.name = name
        self.properties: dict[str, str] = {}

    def make(self, way: Way) -> bool:
        """Create or replace the table with the rows. Return False if PySpark must do it instead."""
        name = self._own_name()
        if name is None:
            return False
        properties = dict(self.properties)
        comment, location = (properties.pop(key, None) for key in (_COMMENT, _LOCATION))
        with as_analysis_errors():
            given = self._given(location)
            wanted = given.pop(PATH, None)
            _, storage, options = self._options({**given, PATH: wanted or str(name)})
            options = options.under(session_settings(self.spark))
            provider = self.meant(self.own_formats())
            found = place_of_name(self.spark, name, wanted, storage or None, provider=provider)
            if found is None:
                raise InvalidInputError(f"cannot {way} the table {name}: {NO_PLACE}")
            context = replace(found.place.context, time_zone=options.zone)
            self._check(way, name, found)
            definition = TableDefinition(
                schema=schema_of(self.frame.schema),
                partition_by=options.partition_by or (),
                cluster_by=options.cluster_by,
                configuration={**options.properties, **properties},
                description=comment,
            )
            objection = objection_to_native(context.store)
            with left_to_spark(), session_defaults(self.spark):
                create_table(
                    replace(found.place, context=context),
                    definition,
                    mode="error" if way == "create" else "overwrite",
                    options=CommitOptions(
                        properties=options.commit_properties, hooks=options.hooks
                    ),
                    rows=self.frame,
                    engine=SparkEngine(
                        self.spark, objection=objection, gathers=options.optimize_write
                    ),
                    file_options=options.files,
                )
                found.note(self.spark)
        return True

    def _own_name(self) -> QualifiedName | None:
        """Return the name of an existing or new deltalog table; None for other tables."""
        formats = self.own_formats()
        if not formats or not isinstance(self.name, str):
            return None
        try:
            name = QualifiedName.parse(self.name)
        except InvalidInputError:
            return None  # PySpark reports the error for an invalid name
        if self.format is not None and self.format.lower() not in formats:
            return None
        if name.location is not None:
            return name if name.format in formats else None
        is_ours = (
            self.meant(formats) is not None
            or catalogs_of(self.spark).names.keeps(name)
            or (self.format is None and entry_of(self.spark, self.name, formats) is not None)
        )
        return name if is_ours else None

    @staticmethod
    def _check(way: Way, name: QualifiedName, found: NamedPlace) -> None:
        root = found.place.context.store.root
        if way == "create" and (found.is_known or found.has_table):
            raise SparkTableExistsError(
                f"cannot create the table {name} at {root}: it already exists; use "
                "createOrReplace() to replace it, or append() to add the rows"
            )
        if way == "replace" and not found.has_table:
            raise SparkTableNotFoundError(
                f"cannot replace the table {name} at {root}: it cannot be found; use "
                "createOrReplace() to create the table"
            )

    def write(
        self, *, overwrites: bool = False, where: object = None, dynamic: bool | None = None
    ) -> bool:
        """Write the rows, and match columns by name. Return False if PySpark must write instead.

        Args:
            overwrites: whether rows are replaced.
            where: a Spark column or a SQL string that is true for the rows to replace.
            dynamic: whether only the partitions of the new rows are replaced.
        """
        formats = self.own_formats()
        if not formats or not isinstance(self.name, str):
            return False
        with left_to_spark():
            found = known_place(self.spark, self.name, formats)
            if found is None:
                return False
            with as_analysis_errors():
                if not found.has_table:
                    raise TableNotFoundError(
                        f"cannot write to {self.name}: there is no such table; use create()"
                    )
                given = {**self._given(None), PATH: self.name}
                _, _, options = self._options(given, overwrite=overwrites)
                if dynamic is not None:
                    options = replace(options, dynamic=dynamic)
                mode: Literal["overwrite", "append"] = "overwrite" if overwrites else "append"
                if isinstance(where, Column):
                    write_over_column(self.frame, found.place, options, where)
                else:
                    options = replace(options, replace_where=where or options.replace_where)
                    write_frame(self.frame, found.place, options, mode=mode)
                found.note(self.spark)
        return True


class NotingTableWriter(NotingOptions):
    """Replacements of the methods of `df.writeTo(…)`; each records its call or writes the table."""

    _asked: AskedTable

    def using(self, provider: str) -> Self:
        super().using(provider)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        self._asked.format = provider
        return self

    def tableProperty(self, property: str, value: str) -> Self:  # noqa: A002, N802  # PySpark's name
        super().tableProperty(property, value)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        self._asked.properties[property] = value
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> Self:  # noqa: N802  # PySpark's name
        super().partitionedBy(col, *cols)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        self._asked.partition_by = tuple(_column_name(one, self._asked) for one in (col, *cols))
        return self

    def clusterBy(self, col: str, *cols: str) -> Self:  # noqa: N802  # PySpark's name
        super().clusterBy(col, *cols)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
        self._asked.cluster_by = flattened((col, *cols))
        return self

    def create(self) -> None:
        if not self._asked.make("create"):
            super().create()  # type: ignore[misc]  # at run time, `super()` is PySpark's class

    def replace(self) -> None:
        if not self._asked.make("replace"):
            super().replace()  # type: ignore[misc]  # at run time, `super()` is PySpark's class

    def createOrReplace(self) -> None:  # noqa: N802  # PySpark's name
        if not self._asked.make("createOrReplace"):
            super().createOrReplace()  # type: ignore[misc]  # at run time, `super()` is PySpark's class

    def append(self) -> None:
        if not self._asked.write():
            super().append()  # type: ignore[misc]  # at run time, `super()` is PySpark's class

    def overwrite(self, condition: Any) -> None:
        if not self._asked.write(overwrites=True, where=condition, dynamic=False):
            super().overwrite(condition)  # type: ignore[misc]  # at run time, `super()` is PySpark's class

    def overwritePartitions(self) -> None:  # noqa: N802  # PySpark's name
        if not self._asked.write(overwrites=True, dynamic=True):
            super().overwritePartitions()  # type: ignore[misc]  # at run time, `super()` is PySpark's class


def _column_name(column: Any, asked: AskedTable) -> str:
    """Return the name of a partition column. Delta does not support partition expressions."""
    if isinstance(column, str):
        return column
    found = _PLAIN.fullmatch(str(column))
    name = "" if found is None else found[1].strip("`")
    known = {name_key(one): one for one in asked.frame.columns}
    if name_key(name) not in known:
        raise InvalidInputError(
            f"cannot partition by {column}: expected a column; add a generated column with this "
            "expression, and partition by it"
        )
    return known[name_key(name)]


class MergeIntoWriter:
    """A merge into a deltalog table, with the methods of PySpark's class `MergeIntoWriter`.

    Args:
        builder: the builder of the merge.
        place: the location of the table, and its entry in Spark's catalog.
    """

    def __init__(self, builder: DeltaMergeBuilder, place: NamedPlace, frame: DataFrame) -> None:
        self._builder = builder
        self._place = place
        self._frame = frame

    def whenMatched(self, condition: Column | None = None) -> WhenMatched:  # noqa: N802  # PySpark's name
        """Begin a clause for rows of the table that a row of the frame matches."""
        return WhenMatched(self, condition)

    def whenNotMatched(self, condition: Column | None = None) -> WhenNotMatched:  # noqa: N802  # PySpark's name
        """Begin a clause for rows of the frame that match no row of the table."""
        return WhenNotMatched(self, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> WhenNotMatchedBySource:  # noqa: N802  # PySpark's name
        """Begin a clause for rows of the table that no row of the frame matches."""
        return WhenNotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> Self:  # noqa: N802  # PySpark's name
        """Let the merge add columns of the frame that the table lacks."""
        self._builder = self._builder.withSchemaEvolution()
        return self

    def merge(self) -> None:
        """Run and commit the merge."""
        spark = self._frame.sparkSession
        with left_to_spark(), as_analysis_errors():
            self._builder.execute()
            self._place.note(spark)

    def take(self, clause: str, **said: Any) -> Self:
        """Add a clause to the builder, and return this writer.

        Args:
            clause: the name of a method of `DeltaMergeBuilder`.
            said: the keyword arguments of that method.
        """
        self._builder = getattr(self._builder, clause)(**said)
        return self


class _When:
    def __init__(self, writer: MergeIntoWriter, condition: Column | None) -> None:
        check_condition(condition)
        self._writer = writer
        self._condition = condition

    def _take(self, clause: str, **said: Any) -> MergeIntoWriter:
        return self._writer.take(clause, condition=self._condition, **said)


class WhenMatched(_When):
    """A clause for rows of the table that a row of the frame matches."""

    def updateAll(self) -> MergeIntoWriter:  # noqa: N802  # PySpark's name
        """Update all columns from the frame."""
        return self._take("whenMatchedUpdateAll")

    def update(self, assignments: Mapping[str, Column]) -> MergeIntoWriter:
        """Update the columns in `assignments`."""
        return self._take("whenMatchedUpdate", set=assignments)

    def delete(self) -> MergeIntoWriter:
        """Delete the row of the table."""
        return self._take("whenMatchedDelete")


class WhenNotMatched(_When):
    """A clause for rows of the frame that match no row of the table."""

    def insertAll(self) -> MergeIntoWriter:  # noqa: N802  # PySpark's name
        """Insert the row with all columns of the frame."""
        return self._take("whenNotMatchedInsertAll")

    def insert(self, assignments: Mapping[str, Column]) -> MergeIntoWriter:
        """Insert a row with the values in `assignments`."""
        return self._take("whenNotMatchedInsert", values=assignments)


class WhenNotMatchedBySource(_When):
    """A clause for rows of the table that no row of the frame matches."""

    def updateAll(self) -> MergeIntoWriter:  # noqa: N802  # PySpark's name
        """Raise an error, because no row of the frame has values for the update.

        Raises:
            InvalidInputError: always.
        """
        raise InvalidInputError(
            "cannot update all columns of rows that no source row matches: there are no source "
            "values; pass the values to update(…)"
        )

    def update(self, assignments: Mapping[str, Column]) -> MergeIntoWriter:
        """Update the columns in `assignments`."""
        return self._take("whenNotMatchedBySourceUpdate", set=assignments)

    def delete(self) -> MergeIntoWriter:
        """Delete the row of the table."""
        return self._take("whenNotMatchedBySourceDelete")


def merge_into(frame: DataFrame, name: object, condition: Any) -> MergeIntoWriter | None:
    """Begin a merge into a deltalog table; return None if PySpark must merge instead.

    Args:
        frame: the source.
        name: the name of the table. Its last part is the alias of the table in the condition.
        condition: a condition that is true for rows that match.

    Raises:
        TableNotFoundError: the name belongs to deltalog, but there is no table.
    """
    spark = frame.sparkSession
    formats = AskedWrite(frame).own_formats()
    if not formats or not isinstance(name, str):
        return None
    with left_to_spark():
        found = known_place(spark, name, formats)
        if found is None:
            return None
        with as_analysis_errors():
            check_condition(condition, is_required=True)
            if not found.has_table:
                raise TableNotFoundError(f"cannot merge into {name}: there is no such Delta table")
            table = SparkTable.from_context(spark, found.place.context)
            qualified = QualifiedName.parse(name)
            if qualified.location is None:
                table = table.alias(qualified.parts[-1])
            return MergeIntoWriter(table.merge(frame, condition), found, frame)


# --- replacements of `spark.sql`, `spark.table` and methods of `spark.catalog`

# The first words of statements that deltalog leaves to Spark, because they rarely use a table. The
# exceptions are in `_READING`.
_OF_SPARK: Final = frozenset(
    "set reset add list uncache load declare begin call clear refresh analyze msck "  # noqa: SIM905  # shorter than a list
    "grant revoke".split()
)
# The words in `_OF_SPARK` whose statements deltalog runs if they may use a table, because Spark
# cannot run them for a deltalog table.
_READING: Final = frozenset({"analyze", "begin", "load", "msck", "set"})
_BEFORE_TABLE: Final = re.compile(r"\b(?:from|into|update|table)\b", re.IGNORECASE)
_CREATING: Final = frozenset({"create", "replace"})
_WORD: Final = re.compile(r"(?:\s|/\*.*?\*/|--[^\n]*\n|\()*([A-Za-z]+)", re.DOTALL)
_NAMES_DELTA: Final = re.compile(r"\bdelta\s*\.\s*`|\busing\s+`?delta`?(?!\w)", re.IGNORECASE)
_NAMES_OURS: Final = re.compile(r"delta|\bclone\b|\bview\b|\bselect\b|\bas\b", re.IGNORECASE)


def statement_rows(
    spark: SparkSession, text: object, given: Any, named: Mapping[str, Any]
) -> DataFrame | None:
    """Return the rows of a statement about deltalog's tables; None if PySpark must run it.

    Args:
        spark: the session.
        text: the argument `sqlQuery` of `sql`.
        given: the argument `args` of `sql`.
        named: values for names in braces.

    Cost: one or two calls to Spark for each table in the statement.
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
        return False  # the table belongs to another library, such as Delta's jar
    if word not in _CREATING or _NAMES_OURS.search(text):
        return True
    return str(spark.conf.get(DEFAULT_FORMAT, "")).lower() in formats


class NotingCatalog:
    """Replacements of the methods of `spark.catalog` that create and drop deltalog's tables."""

    _asked: Noted

    def createTable(  # noqa: N802  # PySpark's name
        self,
        tableName: str,  # noqa: N803  # PySpark's name
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
            return super().createTable(tableName, path, source, schema, **more, **options)  # type: ignore[misc,no-any-return]  # at run time, `super()` is PySpark's class
        spark = asked.spark
        with as_analysis_errors():
            asked.note({**options, **({} if path is None else {PATH: path})})
            _create(asked, tableName, provider, schema, description)
        return spark.table(tableName)

    def createExternalTable(  # noqa: N802  # PySpark's name
        self,
        tableName: str,  # noqa: N803  # PySpark's name
        path: str | None = None,
        source: str | None = None,
        schema: StructType | None = None,
        **options: str,
    ) -> DataFrame:
        return self.createTable(tableName, path, source, schema, **options)

    def dropTable(  # noqa: N802  # PySpark's name
        self,
        tableName: str,  # noqa: N803  # PySpark's name
        ifExists: bool = False,  # noqa: FBT001, FBT002, N803  # PySpark's signature
        purge: bool = False,  # noqa: FBT001, FBT002  # PySpark's signature
    ) -> None:
        formats = self._asked.own_formats()
        if not formats or entry_of(self._asked.spark, tableName, formats) is None:
            super().dropTable(tableName, ifExists, purge)  # type: ignore[misc]  # at run time, `super()` is PySpark's class
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
            f"cannot create the table {name} with the option {unknown[0]!r}: expected table "
            f"properties, which begin with {PROPERTY_PREFIX!r}"
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
                f"{found.place.context.store.root}, and schema= is not set; set it to create a new "
                "table"
            )
        definition = TableDefinition(
            schema=spark_schema(schema), description=description, configuration=options
        )
        with session_defaults(spark), left_to_spark():
            create_table(found.place, definition)
    found.note(spark)


def table_rows(spark: SparkSession, name: object) -> DataFrame | None:
    """Return the rows of a deltalog table by its name; None if PySpark must read it instead.

    Args:
        spark: the session.
        name: the argument of `table`.
    """
    return AskedRows(spark).table(name)


# --- values in the text of `spark.sql(text, name=value)`, formatted as PySpark does


class _Formatter(string.Formatter):
    """Formatter that replaces dataframes by names, and lets `other` format all other values.

    Args:
        other: PySpark's formatter.
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
    """Return a statement in which values replace names in braces; None if PySpark must refuse it.

    Args:
        spark: the session, classic or remote.
        text: the statement, with names in braces.
        given: name → value, column or dataframe.

    Returns:
    The statement, and the dataframes that it names: name → dataframe.
    """
    other: string.Formatter = SQLStringFormatter(spark)
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect import sql_formatter  # noqa: PLC0415  # this import requires gRPC

        other = sql_formatter.SQLStringFormatter(spark)  # type: ignore[arg-type]  # `spark` is a session of Spark Connect
    formatter = _Formatter(other)
    try:
        return formatter.format(text, **given), formatter.frames
    except Exception:  # noqa: BLE001  # PySpark will raise the same error
        return None
