"""The options of reads (`option(…)`). Their names are Delta's, in upper or lower case.

This module parses the values, and suggests a similar name for an unknown option. An option that
starts with `storage.` or with the prefix of a cloud (`aws_`, `azure_`, `google_`) is passed to the
store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog._util.store_kinds import split_option
from deltalog.errors import InvalidInputError
from deltalog.schema.metadata_columns import (
    METADATA,
    METADATA_COLUMNS,
    ROW_TRACKING,
    has_own_metadata,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.log.snapshot import Snapshot

STORAGE_PREFIX: Final = "storage."
# Options that jobs often set for reads of any format, but that have no effect for Delta tables.
_WITHOUT_EFFECT: Final = frozenset({"mergeschema", "inferschema", "overwriteschema"})
MAX_PARTITION_BYTES: Final = 128 << 20
"""The default of `spark.sql.files.maxPartitionBytes`."""
MAX_FILES_PER_TRIGGER: Final = 1000
"""The default of `maxFilesPerTrigger` if `maxBytesPerTrigger` is not set either, as in Delta."""
# Options of Delta that deltalog refuses: name of the option → advice in the error.
_ELSEWHERE: Final = {
    "versionAsOf": "it is for batch reads; use startingVersion for a stream",
    "timestampAsOf": "it is for batch reads; use startingTimestamp for a stream",
    "endingVersion": "it is for batch reads of the change feed; a stream has no end",
    "endingTimestamp": "it is for batch reads of the change feed; a stream has no end",
    "maxRecordsPerFile": "it is for writes",
    "paths": "load takes the location of one table; unite the frames of several by union",
    "replaceOn": "use DeltaTable.merge or replaceWhere to replace rows",
    "replaceUsing": "use DeltaTable.merge or replaceWhere to replace rows",
    "excludeRegex": "a stream reads all files of a commit; filter its rows by "
    "option('metadataColumns', 'file_path')",
    **dict.fromkeys(
        ("schemaTrackingLocation", "schemaLocation"),
        "after a restart with a new load, a stream continues in the new schema",
    ),
    **dict.fromkeys(
        (
            "allowSourceColumnRename",
            "allowSourceColumnDrop",
            "allowSourceColumnRenameAndDrop",
            "allowSourceColumnTypeChange",
        ),
        "a stream ends where its source's columns change; after a restart with a new load, it "
        "continues in the new schema",
    ),
}
_LOWERED: Final = {name.lower(): name for name in _ELSEWHERE}
"""The names in `_ELSEWHERE`: name in lower case → name. Spark passes options with names in lower
case."""
# Options that Spark's catalog passes to a data source in addition to the table's properties.
_OF_A_CATALOG: Final = frozenset({"owner", "provider"})
_SIZE_UNITS: Final = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

_TIME_TRAVEL: Final = ("versionAsOf", "timestampAsOf")
_CHANGES: Final = (
    "readChangeFeed",
    "readChangeData",
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
)
_MOMENTS: Final = ("timestampAsOf", "startingTimestamp", "endingTimestamp")
_READING: Final = ("path", "metadataColumns", "pushFilters", "maxPartitionBytes", "timeZone")
BATCH_OPTIONS: Final = (*_READING, *_TIME_TRAVEL, *_CHANGES)
STREAM_OPTIONS: Final = (
    "path",
    "metadataColumns",
    "timeZone",
    "maxPartitionBytes",
    "readChangeFeed",
    "readChangeData",
    "startingVersion",
    "startingTimestamp",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "ignoreDeletes",
    "ignoreChanges",
    "skipChangeCommits",
    "failOnDataLoss",
    "withEventTimeOrder",
)
ALL_METADATA: Final = ("*",)
"""A request for all metadata columns. Their names depend on the version of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The parsed options that are common to all kinds of reads.

    Args:
        path: the table's location, which may end in `@v3` for a batch read. If the read is planned
            in the session, also a table of a catalog of the session.
        storage: credentials and settings for the store.
        changes: whether the change data feed is read.
        start: the first version or timestamp of the changes, or `latest` for a stream. None for a
            stream means that the stream first returns all rows of the table.
        metadata_columns: the names of `METADATA_COLUMNS` to return in the struct `_metadata`.
        max_partition_bytes: the maximum number of bytes that one task reads.
        time_zone: the time zone of timestamps and partition values without a time zone.
        unzoned: the names and values of options that contain a timestamp, if `timeZone` is not set.
            Tasks check that these timestamps mean the same in the session's time zone. None if
            `timeZone` is set.
    """

    path: str | NamedTable
    storage: Mapping[str, str] = field(repr=False)
    changes: bool = False
    start: int | str | None = None
    metadata_columns: tuple[str, ...] = ()
    max_partition_bytes: int = MAX_PARTITION_BYTES
    time_zone: str = "UTC"
    unzoned: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(TableOptions):
    """The parsed options of a batch read.

    Args:
        version: the version to read.
        timestamp: the timestamp of the version to read, as the user wrote it.
        end: the last version or timestamp of the change feed.
        push_filters: whether Spark's filters prune files and row groups.
    """

    version: int | None = None
    timestamp: str | None = None
    end: int | str | None = None
    push_filters: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions(TableOptions):
    """The parsed options of a streaming read.

    Args:
        max_files: the maximum number of files in a batch; None means no limit.
        max_bytes: the maximum number of bytes in a batch; a single file may be larger.
        ignore_deletes: whether to skip commits that only delete rows.
        ignore_changes: whether to return the rows of rewritten files again.
        skip_change_commits: whether to skip commits that delete or rewrite rows.
        fail_on_data_loss: whether to fail if commits were cleaned up before they were read.
        in_event_time_order: whether the rows of the first version are returned in one batch. Then
            no row is too late for a watermark.
    """

    max_files: int | None = MAX_FILES_PER_TRIGGER
    max_bytes: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    fail_on_data_loss: bool = True
    in_event_time_order: bool = False


class Options:
    """The options of one read or write. An unknown name is an error.

    Args:
        given: the options as the user wrote them.
        known: the names of the allowed options.
    """

    others: ClassVar[str] = f", or {STORAGE_PREFIX}… for the store"
    """The end of a message that lists the known options. It suggests further options."""

    def __init__(self, given: Mapping[str, str], known: Collection[str]) -> None:
        self._names = {name.lower(): name for name in known}
        self._values: dict[str, str] = {}
        self.storage: dict[str, str] = {}
        comes_from_catalog = {name.lower() for name in given} >= _OF_A_CATALOG
        for name, value in given.items():
            lower = name.lower()
            if lower.startswith(STORAGE_PREFIX):
                self.storage[name[len(STORAGE_PREFIX) :]] = value
            elif split_option(name)[0] is not None:  # the prefix belongs to a store, such as `aws_`
                self.storage[name] = value
            elif lower in self._names:
                self._values[lower] = value
            elif lower not in _WITHOUT_EFFECT and not comes_from_catalog:
                raise InvalidInputError(self._unknown(name))

    def _unknown(self, name: str) -> str:
        close = get_close_matches(name.lower(), self._names, n=1)
        name = _LOWERED.get(name.lower(), name)
        hint = _ELSEWHERE.get(name) or (
            f"did you mean {self._names[close[0]]!r}?"
            if close
            else f"expected one of {sorted(self._names.values())}{self.others}"
        )
        return f"cannot use the option {name!r}: {hint}"

    def text(self, name: str) -> str | None:
        """Return the value of an option as the user wrote it; None if the option is not set."""
        return self._values.get(name.lower())

    def number(self, name: str) -> int | None:
        """Return the value of an option as a whole number of 0 or more; None if it is not set."""
        text = self.text(name)
        if text is None:
            return None
        if not text.strip().isdecimal():
            raise InvalidInputError(
                f"cannot use {name}={text!r}: expected a whole number of 0 or more"
            )
        return int(text)

    def truth(self, name: str, *, default: bool = False) -> bool:
        """Return the value of an option as a boolean."""
        text = self.text(name)
        if text is None:
            return default
        if text.strip().lower() not in {"true", "false"}:
            raise InvalidInputError(f"cannot use {name}={text!r}: expected true or false")
        return text.strip().lower() == "true"

    def size(self, name: str) -> int | None:
        """Return the value of an option as a number of bytes; it may have a unit, such as `64m`."""
        text = self.text(name)
        if text is None:
            return None
        digits = text.strip().lower().removesuffix("b")
        unit = digits[-1:] if digits[-1:] in _SIZE_UNITS else "b"
        digits = digits.removesuffix(unit)
        if not digits.isdecimal() or int(digits) == 0:
            raise InvalidInputError(
                f"cannot use {name}={text!r}: expected a size such as 134217728, 128m or 1g"
            )
        return int(digits) * _SIZE_UNITS[unit]

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names in the value of an option, which separates them by commas."""
        text = self.text(name) or ""
        return tuple(part.strip() for part in text.split(",") if part.strip())

    def one_of(self, *names: str) -> str | None:
        """Return the name of the one option that is set, or None. Two set options are an error."""
        given = [name for name in names if self.text(name) is not None]
        if len(given) > 1:
            raise InvalidInputError(f"cannot use both {given[0]} and {given[1]}: use one of them")
        return given[0] if given else None


def parse_read_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a batch read.

    Raises:
        InvalidInputError: an option is unknown or invalid, or options contradict each other.
    """
    options = Options(given, BATCH_OPTIONS)
    found = _read_options(options)
    if not found.changes and (found.start is not None or found.end is not None):
        raise InvalidInputError(
            "cannot use the bounds of a version range without readChangeFeed=true; to read one "
            "version, use versionAsOf or timestampAsOf"
        )
    if found.changes and found.start is None:
        raise InvalidInputError(
            "cannot read the change feed: expected startingVersion or startingTimestamp"
        )
    return found


def parse_any_read_options(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a batch or streaming read, if only the schema of the read is needed.

    Raises:
        InvalidInputError: an option is unknown or invalid.
    """
    return _read_options(Options(given, {*BATCH_OPTIONS, *STREAM_OPTIONS}))


def parse_stream_options(given: Mapping[str, str]) -> StreamOptions:
    """Parse the options of a streaming read.

    Raises:
        InvalidInputError: an option is unknown or invalid, or options contradict each other.
    """
    options = Options(given, STREAM_OPTIONS)
    max_files, max_bytes = options.number("maxFilesPerTrigger"), options.size("maxBytesPerTrigger")
    if max_files == 0:
        raise InvalidInputError("cannot use maxFilesPerTrigger=0: expected 1 or more")
    if max_files is None and max_bytes is None:
        max_files = MAX_FILES_PER_TRIGGER
    return StreamOptions(
        **_of_any_read(options),
        max_files=max_files,
        max_bytes=max_bytes,
        ignore_deletes=options.truth("ignoreDeletes"),
        ignore_changes=options.truth("ignoreChanges"),
        skip_change_commits=options.truth("skipChangeCommits"),
        fail_on_data_loss=options.truth("failOnDataLoss", default=True),
        in_event_time_order=options.truth("withEventTimeOrder"),
    )


def _read_options(options: Options) -> ReadOptions:
    found = ReadOptions(
        **_of_any_read(options),
        version=options.number("versionAsOf"),
        timestamp=options.text("timestampAsOf"),
        end=bound_of(options, "ending"),
        push_filters=options.truth("pushFilters", default=True),
    )
    if options.one_of(*_TIME_TRAVEL) and found.changes:
        raise InvalidInputError(
            "cannot use both readChangeFeed and versionAsOf or timestampAsOf: limit the feed with "
            "startingVersion and endingVersion"
        )
    return found


def _of_any_read(options: Options) -> dict[str, Any]:
    """Return the values of the fields of `TableOptions`."""
    return {
        "path": path_of(options),
        "storage": options.storage,
        "changes": options.truth("readChangeFeed") or options.truth("readChangeData"),
        "start": bound_of(options, "starting"),
        "metadata_columns": parse_metadata_columns(options.names("metadataColumns")),
        "max_partition_bytes": options.size("maxPartitionBytes") or MAX_PARTITION_BYTES,
        "time_zone": options.text("timeZone") or "UTC",
        "unzoned": _unzoned(options),
    }


def _unzoned(options: Options) -> tuple[tuple[str, str], ...] | None:
    if options.text("timeZone"):
        return None
    asked = ((name, options.text(name)) for name in _MOMENTS)
    return tuple((name, text) for name, text in asked if text is not None and text != "latest")


def path_of(options: Options) -> str:
    """Return the location of the table.

    Raises:
        InvalidInputError: the options contain no location.
    """
    path = options.text("path")
    if not path:
        raise InvalidInputError(
            "cannot find the table: expected its location in load(path), save(path) or "
            "option('path', …), because Spark passes no table names to a format; call "
            "deltalog.spark.register(spark) to use names with spark.table, spark.sql, saveAsTable "
            "and insertInto"
        )
    return path


def parse_metadata_columns(names: Collection[str]) -> tuple[str, ...]:
    """Return names of `METADATA_COLUMNS`, or `ALL_METADATA`. A name may omit `_metadata.`.

    Raises:
        InvalidInputError: there is no such column.
    """
    if any(name in {"*", "true"} for name in names):
        return ALL_METADATA
    found = []
    for name in names:
        full = name if name.startswith(f"{METADATA}.") else f"{METADATA}.{name}"
        if full not in METADATA_COLUMNS:
            known = [column.removeprefix(f"{METADATA}.") for column in METADATA_COLUMNS]
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"expected some of {known}"
            raise InvalidInputError(f"there is no metadata column {name!r}: {hint}")
        found.append(full)
    return tuple(dict.fromkeys(found))


def asked_metadata_columns(asked: tuple[str, ...], snapshot: Snapshot) -> tuple[str, ...]:
    """Return the requested names; `ALL_METADATA` is replaced by all metadata columns of the table.

    Raises:
        InvalidInputError: the table has a column with the name `_metadata`.
    """
    if asked and has_own_metadata(snapshot.configuration.schema):
        raise InvalidInputError(
            f"cannot add metadata columns to {snapshot.store.root}: the table has a column "
            f"{METADATA!r}; omit the metadata columns, or rename that column"
        )
    if asked != ALL_METADATA:
        return asked
    has_ids = snapshot.configuration.row_id_dialect is not None
    return tuple(name for name in METADATA_COLUMNS if has_ids or name not in ROW_TRACKING)


def bound_of(options: Options, end: str) -> int | str | None:
    """Return one end of a range of versions: a version, a timestamp as a string, or `latest`.

    Args:
        options: the user's options.
        end: `starting` or `ending`.
    """
    named = options.one_of(f"{end}Version", f"{end}Timestamp")
    if named is None:
        return None
    text: Any = options.text(named)
    return options.number(named) if named.endswith("Version") and text != "latest" else text
