"""Resolve the names of tables: a quoted location, a view of deltalog, or a table of a catalog.

Protocol: none
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.escaping import name_key
from deltalog.catalogs.table_uri import BY_NAME
from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.log.branches import named_root
from deltalog.query.names import PATH_KINDS, QualifiedName
from deltalog.spark.session.opening import open_latest, session_time_zone
from deltalog.spark.session.settings import left_to_spark
from deltalog.spark.session.spark_tables import SparkEntry, find_entry
from deltalog.statements.catalog_names import CatalogNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from deltalog.catalogs.protocol import NamedTable, TableCatalog
    from deltalog.log.context import TableContext
    from deltalog.spark.session.opening import Location

_VIEW: Final = "spark.deltalog.view."
"""The prefix of session settings. For each view that deltalog creates, one setting contains the
location of the view's table."""


def open_by_name(spark: SparkSession, name: str) -> TableContext:
    """Return the context of a table by its name.

    Raises:
        TableNotFoundError: there is no such table, or Spark's catalog has no location for the name.
    """
    shown = shown_by(spark, name)
    if shown is not None:
        return shown
    where: str | NamedTable | None = name if is_by_name(name) else location_of(name)
    where = where or view_location(spark, name) or named_in(spark, name)
    where = where or _catalog_location(spark, name)
    return open_table(spark, where)


def open_table(
    spark: SparkSession, table: Location, storage: Mapping[str, Any] | None = None
) -> TableContext:
    """Return the context of the latest version of a table, in the session's time zone.

    Raises:
        InvalidInputError: the location contains a version.
    """
    zone = session_time_zone(spark)
    return open_latest(table, storage, doing="open as a DeltaTable", time_zone=zone)


def named_or_location(spark: SparkSession, text: str) -> str | NamedTable:
    """Convert a string to a location, or to a table of a catalog of the session.

    Args:
        spark: the session.
        text: ``delta.`/path` ``, or a table name that begins with the name of a catalog. Any other
            string is returned unchanged.
    """
    return location_of(text) or named_in(spark, text, by_alias=True) or text


def find_location(spark: SparkSession, name: str, entry: SparkEntry | None = None) -> str:
    """Return the location of a table by its name.

    Args:
        spark: the session.
        name: the name of the table.
        entry: the table's entry in Spark's catalog, if known.

    Raises:
        TableNotFoundError: there is no such table, or Spark's catalog has no location for the name.
    """
    found = location_of(name) or view_location(spark, name)
    if found is None and entry is not None:
        found = entry.location
    return found or _catalog_location(spark, name)


def note_view(spark: SparkSession, name: str, context: TableContext) -> None:
    """Record the table that a view reads.

    The location is recorded in the session. A table that only a catalog can open is recorded in
    this process.
    """
    if context.committer is None:
        note_location(spark, name, named_root(context.store))
    else:
        note_table(spark, name, context)


def note_location(spark: SparkSession, name: str, location: str) -> None:
    """Record in the session the location of the table that a view reads."""
    spark.conf.set(_VIEW + name_key(name), location)


def location_of(identifier: str) -> str | None:
    """Return the path in ``delta.`/path` ``; None for any other name."""
    kind, _, rest = identifier.strip().partition(".")
    known = kind.strip("`").lower() in PATH_KINDS
    quoted = len(rest) > 1 and rest[0] == rest[-1] == "`"
    return rest[1:-1].replace("``", "`") if known and quoted else None


def is_by_name(text: str) -> bool:
    """Return whether a string is a table name as a URI, such as `uc://catalog.schema.table`."""
    return text.strip().lower().startswith(BY_NAME)


def view_location(spark: SparkSession, name: str) -> str | None:
    """Return the location of the table that a view reads; None unless the session recorded it."""
    known = spark.conf.get(_VIEW + name_key(name), None)
    return known if known and spark.catalog.tableExists(name) else None


def _catalog_location(spark: SparkSession, name: str) -> str:
    """Return the location of a table in Spark's catalog.

    Raises:
        TableNotFoundError: there is no such table, or its entry has no location.
    """
    entry = _entry(spark, name)
    if entry is not None and entry.location is not None:
        return entry.location
    try:
        with left_to_spark():
            rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except Exception as error:
        raise TableNotFoundError(
            f"cannot find the table {name!r}: Spark's catalog does not contain it ({error}); open "
            "the table by its location with forPath"
        ) from error
    found = [row["data_type"] for row in rows if row["col_name"] == "Location"]
    if not found:
        raise TableNotFoundError(
            f"cannot find the table {name!r}: Spark's catalog has no location for it; open the "
            "table by its location with forPath"
        )
    return str(found[-1])


def _entry(spark: SparkSession, name: str) -> SparkEntry | None:
    try:
        return find_entry(spark, QualifiedName.parse(name))
    except InvalidInputError:
        return None  # Spark reports the error for an invalid name


# --- catalogs that a session refers to by name, such as `uc` in `uc.main.sales.orders`


CATALOGS: Final = "spark.deltalog.catalogs"
"""Session setting: the key of the session's entry in `_sessions`. A setting can only contain a
string, so this process stores the catalogs of the session in `_sessions`."""


@dataclass(slots=True)
class SessionCatalogs:
    """The catalogs of a session.

    Args:
        names: resolves the names of tables in the catalogs.
        views: the views whose tables only a catalog can open: name of the view → table.
    """

    names: CatalogNames = field(default_factory=lambda: CatalogNames(None, None))
    views: dict[str, TableContext] = field(default_factory=dict)


_NONE: Final = SessionCatalogs()
_sessions: Final[dict[str, SessionCatalogs]] = {}


def set_catalogs(spark: SparkSession, catalogs: Mapping[str, TableCatalog | str]) -> None:
    """Replace the catalogs of a session.

    Args:
        spark: the session, classic or remote.
        catalogs: name → catalog, or a string that `open_catalog` accepts.

    Raises:
        InvalidInputError: a value is not a catalog.
    """
    names = CatalogNames(catalogs, None) if catalogs else CatalogNames(None, None)
    _entry_of(spark).names = names


def catalogs_of(spark: SparkSession) -> SessionCatalogs:
    """Return the catalogs of a session.

    Raises:
        InvalidInputError: another process has registered the session's catalogs.
    """
    key = spark.conf.get(CATALOGS, None)
    if key is None:
        return _NONE
    found = _sessions.get(key)
    if found is None:
        raise InvalidInputError(
            "cannot find the catalogs of this session: another process registered them; call "
            "deltalog.spark.register(spark, catalogs=…) in this process"
        )
    return found


def note_table(spark: SparkSession, name: str, context: TableContext) -> None:
    """Record the table of a catalog that a view reads, in this process."""
    _entry_of(spark).views[name_key(name)] = context


def shown_by(spark: SparkSession, name: str) -> TableContext | None:
    """Return the table of a catalog that a view reads; None if the name is not such a view."""
    found = catalogs_of(spark).views.get(name_key(name.strip().strip("`")))
    return found if found is not None and spark.catalog.tableExists(name) else None


def named_in(spark: SparkSession, name: str, *, by_alias: bool = False) -> NamedTable | None:
    """Return a table by its name in a catalog of the session; None if no catalog of it matches.

    Args:
        spark: the session.
        name: the name of the table.
        by_alias: whether the name must begin with the name of a catalog. Set this if the string
            could also be a path.
    """
    names = catalogs_of(spark).names
    if names.is_empty:
        return None
    try:
        parsed = QualifiedName.parse(name)
    except InvalidInputError:
        return None  # Spark reports the error for an invalid name
    if by_alias and not names.begins(parsed):
        return None
    return names.named(parsed)


def _entry_of(spark: SparkSession) -> SessionCatalogs:
    key = spark.conf.get(CATALOGS, None)
    if key is None or key not in _sessions:
        key = uuid.uuid4().hex
        _sessions[key] = SessionCatalogs()
        spark.conf.set(CATALOGS, key)
    return _sessions[key]
