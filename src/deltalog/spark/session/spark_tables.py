"""Read, create, rename and drop the entries of tables in Spark's own catalog.

For a format that is written in Python, Spark's catalog stores the name, columns and properties of a
table, but does not pass the location to the format. So this module resolves names to locations. If
an entry differs from the table at its location, the table takes precedence.

Protocol: none
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException, PySparkException

from deltalog._util.escaping import name_key
from deltalog._util.paths import split_location, store_kind
from deltalog.expressions.render import quote_name, quote_text
from deltalog.schema import ArrayType, DataType, MapType, StructType
from deltalog.spark.session.settings import left_to_spark
from deltalog.spark.session.types import as_nullable, to_spark_schema, to_spark_type
from deltalog.spark.session.workers import application_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql import types as spark_types

    from deltalog.query.names import QualifiedName

_SPARKS: Final = "spark_catalog"
_MANAGED: Final = "deltalog.managed"
"""A table property in Spark's catalog. It is `true` if deltalog chose the location of the table.
DROP TABLE then deletes the files of the table."""
_FACT: Final = re.compile(r"^(Provider|Location|Type|Table Properties): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkEntry:
    """A table's entry in Spark's catalog.

    Args:
        name: the name that the caller requested.
        provider: the table's format, in lower case.
        location: the location of the files; None if the entry has no location.
        is_managed: whether deltalog chose the location.
    """

    name: QualifiedName
    provider: str
    location: str | None
    is_managed: bool = False


def find_entry(spark: SparkSession, name: QualifiedName) -> SparkEntry | None:
    """Return a table's entry in Spark's catalog; None for views and unknown names.

    Args:
        spark: the session.
        name: a name of up to three parts, without a version.

    Cost: one call to Spark for an unknown name, two for a table.
    """
    return look_up(spark, name)[0]


def look_up(spark: SparkSession, name: QualifiedName) -> tuple[SparkEntry | None, bool]:
    """Return the result of `find_entry`, and whether another Spark catalog may have the name."""
    parts = _in_spark(name)
    if parts is None:
        return None, name.location is None
    with left_to_spark():
        try:
            known = spark.catalog.getTable(".".join(map(quote_name, parts)))
        except (AnalysisException, PySparkException):
            return None, False
        if known.isTemporary or known.tableType == "VIEW":
            return None, False
        if known.catalog != _SPARKS:
            return None, True
        within = ".".join(map(quote_name, known.namespace or ()))
        pattern = quote_text(known.name)
        rows = spark.sql(f"SHOW TABLE EXTENDED IN {within} LIKE {pattern}").collect()
    for row in rows:
        if not row["isTemporary"] and name_key(row["tableName"]) == name_key(known.name):
            return _entry(name, row["information"]), False
    return None, False


def full_name(spark: SparkSession, name: QualifiedName) -> tuple[str, ...]:
    """Return the full name of a table in Spark's catalog, in lower case."""
    parts = name.key
    if len(parts) == 1:
        with left_to_spark():
            parts = (spark.catalog.currentDatabase().lower(), *parts)
    return parts if len(parts) > 2 else (_SPARKS, *parts)


def _in_spark(name: QualifiedName) -> tuple[str, ...] | None:
    parts = name.parts
    # In Spark's catalog, a name consists of at most a catalog, a schema and a table.
    if name.location is not None or len(parts) > 3:
        return None
    return None if len(parts) == 3 and name_key(parts[0]) != _SPARKS else parts


def _entry(name: QualifiedName, information: str) -> SparkEntry:
    facts = dict(_FACT.findall(information))
    location = facts.get("Location")
    return SparkEntry(
        name=name,
        provider=facts.get("Provider", "").lower(),
        location=None if location is None else _plain(location),
        is_managed=f"{_MANAGED}=true" in facts.get("Table Properties", ""),
    )


def _plain(location: str) -> str:
    """Return a location without the scheme `file:`; Spark does not percent-encode such paths."""
    found = re.fullmatch(r"file:(?://)?(/.*)", location, re.DOTALL)
    return location if found is None else found[1]


def default_location(spark: SparkSession, name: QualifiedName) -> str | None:
    """Return the default location of a new table; None if another catalog resolves the name."""
    parts = _in_spark(name)
    with left_to_spark():
        if parts is None or (len(parts) < 3 and spark.catalog.currentCatalog() != _SPARKS):
            return None
        schema = parts[-2] if len(parts) > 1 else spark.catalog.currentDatabase()
        rows = spark.sql(f"DESCRIBE DATABASE EXTENDED {quote_name(schema)}").collect()
    found = {row[0]: row[1] for row in rows}
    return f"{_plain(found['Location']).rstrip('/')}/{name_key(parts[-1])}"


def make_entry(spark: SparkSession, entry: SparkEntry, schema: StructType) -> None:
    """Create or replace a table's entry in Spark's catalog.

    Spark regards the table as external, so dropping the entry deletes no files.

    Args:
        spark: the session.
        entry: the new entry.
        schema: the schema of the table.
    """
    with left_to_spark():
        if spark.catalog.tableExists(str(entry.name)):
            if _has_columns(spark, entry.name, schema):
                return
            spark.sql(f"DROP TABLE {entry.name}")
        columns = ", ".join(
            f"{quote_name(field.name)} {_type_text(field.type)}" for field in as_nullable(schema)
        )
        where = quote_text(spark_path(entry.location or ""))
        managed = f" TBLPROPERTIES ({quote_text(_MANAGED)} = 'true')" if entry.is_managed else ""
        what = f"{entry.name} ({columns}) USING {entry.provider}"
        spark.sql(f"CREATE TABLE {what} LOCATION {where}{managed}")


def drop_entry(spark: SparkSession, name: QualifiedName) -> None:
    """Drop a table's entry from Spark's catalog, but do not delete the files."""
    with left_to_spark():
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def rename_entry(spark: SparkSession, name: QualifiedName, to: QualifiedName) -> None:
    """Rename a table in Spark's catalog."""
    with left_to_spark():
        spark.sql(f"ALTER TABLE {name} RENAME TO {to}")


def _has_columns(spark: SparkSession, name: QualifiedName, schema: StructType) -> bool:
    def shown(columns: spark_types.StructType) -> list[tuple[str, spark_types.DataType]]:
        return [(field.name, field.dataType) for field in columns.fields]

    return shown(spark.table(str(name)).schema) == shown(to_spark_schema(schema))


def _type_text(kind: DataType) -> str:
    """Return a type as a string of Spark's DDL, with quoted field names."""
    match kind:
        case ArrayType():
            return f"ARRAY<{_type_text(kind.element_type)}>"
        case MapType():
            return f"MAP<{_type_text(kind.key_type)}, {_type_text(kind.value_type)}>"
        case StructType():
            inner = (f"{quote_name(field.name)}: {_type_text(field.type)}" for field in kind)
            return f"STRUCT<{', '.join(inner)}>"
        case _:
            return to_spark_type(kind).simpleString()


# --- locations in the form that Spark expects


# Hadoop's errors for a scheme for which it has no class, or has a class that it cannot load, as
# without the libraries of hadoop-aws.
_NO_FILE_SYSTEM: Final = re.compile(
    r"No FileSystem for scheme|ClassNotFoundException|NoClassDefFoundError"
)
_NOT_A_FILE: Final = "_deltalog_has_file_system"
_have_file_system: Final[dict[tuple[str, str], bool]] = {}


def has_file_system(spark: SparkSession, location: str) -> bool:
    """Return whether Hadoop has a file system for the scheme of a location.

    Only a read shows this, because public PySpark has no method for it. An error other than that
    Hadoop lacks the file system is not the answer, and would occur again when Spark reads files.

    Args:
        spark: the session, classic or remote.
        location: the location of a table.

    Cost: Spark looks for one file, at most once per application and scheme. No request for local
        tables.
    """
    if store_kind(location).is_native:
        return True
    path = spark_path(location)
    key = (application_of(spark), path.partition("://")[0].lower())
    if key not in _have_file_system:
        found = True
        try:
            frame = spark.read.schema("none INT").parquet(f"{path.rstrip('/')}/{_NOT_A_FILE}")
            frame.schema  # noqa: B018  # makes Spark Connect search for the file now
        except Exception as error:  # noqa: BLE001  # Py4J's errors have no public class
            found = _NO_FILE_SYSTEM.search(str(error)) is None
        _have_file_system[key] = found
    return _have_file_system[key]


def spark_path(location: str) -> str:
    """Return a location in the form that Hadoop's file systems expect."""
    kind = store_kind(location)
    return f"{kind.name}://{split_location(location)[2]}" if kind.is_native else location
