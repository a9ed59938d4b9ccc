"""Open the snapshot that Spark is to read, from a location and options.

Owns Delta Spark's rules where they differ from the core's: a timestamp after the last commit is an
error, and timestamps without a zone are in the session's zone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from deltalog.arguments import as_timestamp_ms
from deltalog.context import TableContext
from deltalog.errors import InvalidInputError, VersionNotFoundError
from deltalog.locations import naming, open_table_store
from deltalog.paths import parse_table_uri
from deltalog.schema.primitives.moments import instant_micros
from deltalog.snapshot import load_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import PurePath

    from pyspark.sql import SparkSession

    from deltalog.snapshot import Snapshot
    from deltalog.storage.store import Store

# Java's forms of fixed offsets: +2, GMT+02:00, UTC-8.
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def load_version(
    table: str | PurePath | Store,
    storage: Mapping[str, Any] | None = None,
    *,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    time_zone: str,
) -> Snapshot:
    """Load the requested version of a table.

    Args:
        table: its location, which may end in `@v3`, or a store.
        storage: options for the store.
        version: to read at.
        timestamp: or a moment to read at.
        time_zone: of moments and partition values that name none.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: there is no such version, or the moment is after the last commit.
    """
    store, at = open_table_store(table, storage or None, None)
    asked = [named for named in (version, timestamp, at) if named is not None]
    if len(asked) > 1:
        raise InvalidInputError(
            f"cannot open {store.root} at both {asked[0]!r} and {asked[1]!r}: give one of them"
        )
    context = TableContext(store=store, time_zone=time_zone)
    with naming(store.root):
        if not asked:
            return load_snapshot(context)
        wanted = asked[0]
        if isinstance(wanted, int):
            return load_snapshot(context, version=wanted)
        return _at_moment(context, moment_ms(wanted, time_zone))


def open_store_of_latest(
    table: str | PurePath | Store, storage: Mapping[str, Any] | None = None, *, doing: str
) -> Store:
    """Open the store of a table that exists or will be created, for its latest version.

    Args:
        table: its location, or a store.
        storage: options for the store.
        doing: the operation, for the error, such as `write to`.

    Raises:
        InvalidInputError: the location names a version.
    """
    store, at = open_table_store(table, storage or None, None)
    if at is not None:
        raise InvalidInputError(
            f"cannot {doing} {table!r}: it names a version, and that concerns the latest one; "
            "leave the version out, or read it with deltalog.spark.read"
        )
    return store


def without_version(path: str, storage: Mapping[str, Any] | None) -> str:
    """Return the location without a version at its end."""
    _, at = open_table_store(path, storage or None, None)
    return path if at is None else parse_table_uri(path).uri


def moment_ms(moment: str | datetime, time_zone: str) -> int:
    """Return the milliseconds since 1970 of a moment; without a zone it is in `time_zone`."""
    if isinstance(moment, datetime):
        if moment.tzinfo is not None:
            return as_timestamp_ms(moment)
        moment = moment.isoformat(" ")
    try:
        return instant_micros(moment.strip(), time_zone) // 1000
    except ValueError:
        return as_timestamp_ms(moment.strip())


def moment_text(moment: str | datetime, time_zone: str) -> str:
    """Return a moment as text for the core; without a zone it is in `time_zone`."""
    seconds, millis = divmod(moment_ms(moment, time_zone), 1000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{millis:03}Z"


def session_time_zone(spark: SparkSession) -> str:
    """Return the session's time zone, as an IANA name or an offset such as `+02:00`."""
    return zone_of(spark.conf.get("spark.sql.session.timeZone") or "UTC")


def zone_of(name: str) -> str:
    """Return a time zone that Spark names as an IANA name or an offset such as `+02:00`."""
    found = _OFFSET.fullmatch(name)
    if found is None:
        return name
    return f"{found[1]}{int(found[2]):02}:{found[3] or '00'}"


def _at_moment(context: TableContext, timestamp_ms: int) -> Snapshot:
    latest = load_snapshot(context)
    if timestamp_ms > latest.commit_timestamp_ms:
        last = _EPOCH + timedelta(milliseconds=latest.commit_timestamp_ms)
        asked = _EPOCH + timedelta(milliseconds=timestamp_ms)
        raise VersionNotFoundError(
            f"cannot read {context.store.root} as of {asked.isoformat()}: its last commit, version "
            f"{latest.version}, is of {last.isoformat()}; read without a moment to get that"
        )
    return load_snapshot(context, timestamp_ms=timestamp_ms)
