"""Open the snapshot that Spark will read, from a location and options.

Two rules differ from the core, and agree with Delta Spark: a timestamp after the last commit is an
error, and a timestamp without a time zone is in the session's time zone.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.clock import Moment
from deltalog._util.paths import parse_table_uri, store_kind
from deltalog.catalogs.table_uri import named_table, naming, open_table_context, open_table_store
from deltalog.errors import InvalidInputError, VersionNotFoundError
from deltalog.log.context import TableContext
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations.arguments import as_timestamp_ms
from deltalog.schema.primitives.moments import instant_micros
from deltalog.storage.options import option_for_hadoop

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import PurePath

    from pyspark.sql import SparkSession

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.storage.store import Store

    Location = str | PurePath | Store | NamedTable | TableContext

# Matches time zones with a fixed offset, as Java accepts them: `+2`, `GMT+02:00`, `UTC-8`.
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


def load_version(
    table: Location,
    storage: Mapping[str, Any] | None = None,
    *,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    time_zone: str,
) -> Snapshot:
    """Load the requested version of a table.

    Args:
        table: a location, which may end in `@v3`, a store, or a table of a catalog.
        storage: options for the store, or for the catalog.
        version: the version to read.
        timestamp: the timestamp of the version to read.
        time_zone: the time zone of timestamps and partition values without a time zone.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: the version does not exist, or the timestamp is after the last commit.
    """
    context, at = open_context(table, storage, time_zone=time_zone)
    store = context.store
    asked = [named for named in (version, timestamp, at) if named is not None]
    if len(asked) > 1:
        raise InvalidInputError(
            f"cannot open {store.root} at both {asked[0]!r} and {asked[1]!r}: use one of them"
        )
    with naming(store.root):
        if not asked:
            return load_snapshot(context)
        wanted = asked[0]
        if isinstance(wanted, int):
            return load_snapshot(context, version=wanted)
        return _at_moment(context, moment_ms(wanted, time_zone))


def open_context(
    table: Location, storage: Mapping[str, Any] | None, *, time_zone: str
) -> tuple[TableContext, int | datetime | None]:
    """Return the context of a table, and the version or timestamp that its location ends with.

    Raises:
        TableNotFoundError: a catalog has no such table. Whether a location contains a table is
            not checked.
    """
    if isinstance(table, TableContext):
        return replace(table, time_zone=time_zone), None
    return open_table_context(table, storage or None, None, time_zone=time_zone)


def open_latest(
    table: Location, storage: Mapping[str, Any] | None = None, *, doing: str, time_zone: str
) -> TableContext:
    """Return the context of a table for an operation on its latest version.

    Args:
        table: a location, a store, or a table of a catalog.
        storage: options for the store, or for the catalog.
        doing: the operation, for the error, such as `write to`.
        time_zone: the time zone of values without a time zone.

    Raises:
        InvalidInputError: the location contains a version.
        TableNotFoundError: a catalog has no such table. Whether a location contains a table is
            not checked.
    """
    context, at = open_context(table, storage, time_zone=time_zone)
    if at is not None:
        raise names_a_version(table, doing)
    return context


def names_a_version(table: object, doing: str) -> InvalidInputError:
    """Return the error for a location with a version, if only the latest version is allowed."""
    return InvalidInputError(
        f"cannot {doing} {table!r}: the location contains a version, but the operation needs the "
        "latest version; remove the version, or read it with deltalog.spark.read"
    )


def without_version(path: str | NamedTable, storage: Mapping[str, Any] | None) -> str | NamedTable:
    """Return the location without the version at its end."""
    if not isinstance(path, str):
        return replace(path, at=None)
    named = named_table(path, storage or None)
    at = open_table_store(path, storage or None, None)[1] if named is None else named.at
    return path if at is None else parse_table_uri(path).uri


def moment_ms(moment: str | datetime | date, time_zone: str) -> int:
    """Return a timestamp as milliseconds since 1970.

    Args:
        moment: the timestamp.
        time_zone: the time zone of a timestamp that contains none.
    """
    if isinstance(moment, date):  # the class of a datetime, too
        if isinstance(moment, datetime) and moment.tzinfo is not None:
            return as_timestamp_ms(moment)
        moment = str(moment)
    try:
        return instant_micros(moment.strip(), time_zone) // 1000
    except ValueError:
        return as_timestamp_ms(moment.strip())


def moment_text(moment: str | datetime | date, time_zone: str) -> str:
    """Return a timestamp as a string that the core accepts.

    Args:
        moment: the timestamp.
        time_zone: the time zone of a timestamp that contains none.
    """
    return str(Moment(moment_ms(moment, time_zone)))


def session_time_zone(spark: SparkSession) -> str:
    """Return the session's time zone, as an IANA name or an offset such as `+02:00`."""
    return zone_of(spark.conf.get("spark.sql.session.timeZone") or "UTC")


def zone_of(name: str) -> str:
    """Convert Spark's name of a time zone to an IANA name or an offset such as `+02:00`."""
    found = _OFFSET.fullmatch(name)
    if found is None:
        return name
    return f"{found[1]}{int(found[2]):02}:{found[3] or '00'}"


def _at_moment(context: TableContext, timestamp_ms: int) -> Snapshot:
    latest = load_snapshot(context)
    if timestamp_ms > latest.commit_timestamp_ms:
        raise VersionNotFoundError(
            f"cannot read {context.store.root} as of {Moment(timestamp_ms)}: its last commit, "
            f"version {latest.version}, is from {Moment(latest.commit_timestamp_ms)}; omit the "
            "timestamp to read the latest version"
        )
    return load_snapshot(context, timestamp_ms=timestamp_ms)


# --- refusal of settings for Hadoop's file systems, which Delta's Python class accepts


_OF_A_SCHEME: Final = re.compile(r"(?:spark\.hadoop\.)?fs\.(?:abstractfilesystem\.)?([^.]+)\..*")


def check_hadoop_conf(given: Mapping[str, str], location: object) -> None:
    """Refuse settings of Hadoop's file system that concern the scheme of a location.

    Settings that concern other schemes are ignored, as in Hadoop.

    Args:
        given: the settings: name, such as `fs.s3a.access.key` → value.
        location: the location of the table.

    Raises:
        InvalidInputError: a setting is refused. The message contains its name, never its value.
    """
    own = _names_of(location)
    for name in given:
        found = _OF_A_SCHEME.fullmatch(name.lower())
        if found is None or found[1] in own:
            ours = option_for_hadoop(name)
            raise InvalidInputError(
                f"cannot use the setting {name!r} of hadoopConf for {location!r}: deltalog does "
                "not use Hadoop; set the store's credentials and settings in storage_options"
                + (f", here {ours!r}" if ours else "")
            )


def _names_of(location: object) -> set[str]:
    """Return Hadoop's names for the URI scheme of a location, such as `s3a`."""
    kind = store_kind(str(getattr(location, "root", location)))
    return {kind.name, *kind.aliases, *(one.rstrip("_") for one in kind.option_prefixes)}
