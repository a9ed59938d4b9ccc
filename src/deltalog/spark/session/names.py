"""Resolve table names: a quoted location, a view made by deltalog, or a table of the catalog.

Owns how the location is found for each. deltalog reads the catalog, but writes nothing to it.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.errors import TableNotFoundError
from deltalog.locations import BY_NAME
from deltalog.spark.session.catalogs import named_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltalog.catalogs.named import NamedTable

_VIEW: Final = "spark.deltalog.view."
"""Prefix of the session settings that record which table a view shows."""


def find_table(spark: SparkSession, name: str) -> str | NamedTable:
    """Return the location of a table by its name, or its name in a catalog of the session.

    Raises:
        TableNotFoundError: there is no such table, or Spark's catalog has no location for it.
    """
    if is_by_name(name):
        return name
    known = location_of(name) or _view_location(spark, name)
    return known or named_in(spark, name) or _catalog_location(spark, name)


def find_location(spark: SparkSession, name: str) -> str:
    """Return the location of a table by its name.

    Raises:
        TableNotFoundError: there is no such table, or the catalog has no location for it.
    """
    return location_of(name) or _view_location(spark, name) or _catalog_location(spark, name)


def note_view(spark: SparkSession, name: str, location: str) -> None:
    """Record in the session which table a view shows."""
    spark.conf.set(_VIEW + name.lower(), location)


def location_of(identifier: str) -> str | None:
    """Return the path in ``delta.`/path` ``; None for any other name."""
    kind, _, rest = identifier.strip().partition(".")
    known = kind.strip("`").lower() in {"delta", "deltalog", "parquet"}
    quoted = len(rest) > 1 and rest[0] == rest[-1] == "`"
    return rest[1:-1].replace("``", "`") if known and quoted else None


def is_by_name(text: str) -> bool:
    """Whether a text is the URI of a table's name, `uc://catalog.schema.table`."""
    return text.strip().lower().startswith(BY_NAME)


def _view_location(spark: SparkSession, name: str) -> str | None:
    """Return the location of the table that a view shows, if deltalog made the view."""
    known = spark.conf.get(_VIEW + name.lower(), None)
    return known if known and spark.catalog.tableExists(name) else None


def _catalog_location(spark: SparkSession, name: str) -> str:
    """Return the location of a table of the catalog.

    Raises:
        TableNotFoundError: there is no such table, or it has no location.
    """
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    except Exception as error:
        raise TableNotFoundError(
            f"cannot find the table {name!r}: the catalog does not know it ({error}); open it by "
            "its location with forPath"
        ) from error
    found = [row["data_type"] for row in rows if row["col_name"] == "Location"]
    if not found:
        raise TableNotFoundError(
            f"cannot find the table {name!r}: the catalog does not say where it is; open it by "
            "its location with forPath"
        )
    return str(found[-1])
