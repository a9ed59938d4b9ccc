"""Where the table of a name is or goes: a location, a catalog of the session, or Spark's catalog.

Owns the order in which they are asked, and that Spark's catalog holds what was made under a name.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError
from deltalog.log.listing import has_table
from deltalog.snapshot import load_snapshot
from deltalog.spark.session.catalogs import catalogs_of
from deltalog.spark.session.failures import SparkTableExistsError
from deltalog.spark.session.formats import format_of_new, formats_of
from deltalog.spark.session.spark_tables import (
    SparkEntry,
    default_location,
    find_entry,
    make_entry,
)
from deltalog.spark.writing.plan import open_to_write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from deltalog.query.names import QualifiedName
    from deltalog.table.creating import TablePlace

NO_PLACE = (
    "give its location, name it delta.`/path`, or prepare the session with "
    "deltalog.spark.register(spark), after which Spark's catalog holds the names of tables, or "
    "deltalog.spark.register(spark, catalogs=…) for a catalog of its own"
)
"""What to do where nothing says where a table goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlace:
    """Where a table is or goes.

    Args:
        place: of the table.
        entry: what Spark's catalog says of it, or is to say; None if it is not told.
        is_known: whether Spark's catalog has the entry.
    """

    place: TablePlace
    entry: SparkEntry | None = None
    is_known: bool = False

    @property
    def has_table(self) -> bool:
        """Whether there is a table."""
        return has_table(self.place.context.store)

    def note(self, spark: SparkSession) -> None:
        """Let Spark's catalog hold the table as it is now."""
        if self.entry is not None:
            columns = load_snapshot(self.place.context).configuration.schema
            make_entry(spark, self.entry, columns)


def place_of_name(
    spark: SparkSession,
    name: QualifiedName,
    location: str | None = None,
    storage: Mapping[str, Any] | None = None,
    *,
    provider: str | None = None,
) -> NamedPlace | None:
    """Return where the table of a name is or goes; None if nothing says so.

    Args:
        spark: the session.
        name: of the table.
        location: that was given with it.
        storage: options of the store.
        provider: the format of a new entry; None follows the session.

    Raises:
        InvalidInputError: Spark's catalog has another location for the name.
        SparkTableExistsError: the name is that of a table in another format.
    """
    if name.location is not None:
        return NamedPlace(place=open_to_write(location or name.location, storage))
    kept = catalogs_of(spark).names.place(name, location)
    if kept is not None:
        return NamedPlace(place=kept)
    formats = formats_of(spark)
    if not formats:
        return None if location is None else NamedPlace(place=open_to_write(location, storage))
    entry = find_entry(spark, name)
    if entry is not None and entry.location is not None:
        _check_entry(entry, location, formats)
        place = open_to_write(entry.location, storage)
        return NamedPlace(place=place, entry=entry, is_known=True)
    where = location or default_location(spark, name)
    if where is None:
        return None
    place = open_to_write(where, storage)
    new = SparkEntry(
        name=name,
        provider=provider or format_of_new(formats),
        location=place.context.store.root,
        is_managed=location is None,
    )
    return NamedPlace(place=place, entry=new)


def _check_entry(entry: SparkEntry, location: str | None, formats: frozenset[str]) -> None:
    if entry.provider not in formats:
        raise SparkTableExistsError(
            f"cannot take the name {entry.name} for a Delta table: it already exists in Spark's "
            f"catalog, in the format {entry.provider!r}; deltalog's are {sorted(formats)} here"
        )
    own = open_to_write(entry.location or "").context.store.root
    if location is not None and open_to_write(location).context.store.root != own:
        raise InvalidInputError(
            f"cannot use the location {location!r} for {entry.name}: Spark's catalog has {own!r}; "
            "drop the table there, or leave the location out"
        )
