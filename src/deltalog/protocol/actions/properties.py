"""Table properties: every known `delta.*` key with its type, default and meaning.

A value is parsed when it is read, so a malformed value is an error only in operations that need it.
Some properties have an effect only with a table feature; `configuration` checks this.

Protocol: Table Properties
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Self, TypeVar, overload

from deltalog._util.call_errors import UnknownNameError, WrongCallError
from deltalog.errors import InvalidInputError, InvalidMetadataError

if TYPE_CHECKING:
    from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping


# --- Parsers for the values of table properties


_UNIT_US: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_MOST_MICROSECONDS: Final = (1 << 63) - 1
_MOST_BYTES: Final = (1 << 63) - 1
_INTERVAL_PART: Final = re.compile(r"([+-]?\d+)(?:\.(\d{1,6}))?\s+([a-z]+?)s?(?:\s+|$)")
_COLUMN_PART: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.,]+?))\s*([.,]|$)")


def parse_boolean(text: str) -> bool:
    """Parse `true` or `false`, ignoring case."""
    folded = text.strip().lower()
    if folded not in {"true", "false"}:
        raise ValueError("expected true or false")
    return folded == "true"


def parse_interval_ms(text: str) -> int:
    """Return the milliseconds of an interval such as `interval 1 week` or `2 days 12 hours`.

    Months and years are not allowed, as in all Delta engines, because they have no fixed length.

    Raises:
        ValueError: the string is not an interval, or the interval is negative.
    """
    return _interval_us(text) // 1_000


def spell_interval(text: str) -> str:
    """Return a valid interval in the form `interval N unit`, which all engines understand.

    Spark also accepts `30 days`, `INTERVAL 30 DAYS` and several units. deltalake ignores the first
    two, and then vacuums with its default, and it reads only the first unit of the last.
    """
    words = " ".join(text.lower().split()).removeprefix("interval ")
    if re.fullmatch(r"\+?\d+ [a-z]+", words):
        return f"interval {words.removeprefix('+')}"
    total_us = _interval_us(text)
    unit = next(name for name in reversed(_UNIT_US) if total_us % _UNIT_US[name] == 0)
    return f"interval {total_us // _UNIT_US[unit]} {unit}s"


def _interval_us(text: str) -> int:
    words = text.strip().lower().removeprefix("interval").strip()
    total_us = position = 0
    while position < len(words):
        part = _INTERVAL_PART.match(words, position)
        if part is None or (part[2] is not None and part[3] != "second"):
            raise ValueError("expected an interval such as 'interval 2 weeks'")
        if part[3] in {"month", "year"}:
            raise ValueError("expected an interval of weeks or less ('365 days' for a year)")
        if part[3] not in _UNIT_US:
            raise ValueError(f"expected units {', '.join(f'{unit}s' for unit in _UNIT_US)}")
        total_us += int(part[1]) * _UNIT_US[part[3]]
        fraction_us = int((part[2] or "").ljust(6, "0"))
        total_us += -fraction_us if part[1].startswith("-") else fraction_us
        position = part.end()
    if not words or total_us < 0:
        raise ValueError("expected an interval that is not negative, such as 'interval 2 weeks'")
    if total_us > _MOST_MICROSECONDS:  # the maximum of Spark's intervals
        raise ValueError(f"expected an interval of at most {_MOST_MICROSECONDS} microseconds")
    return total_us


def parse_column_list(text: str) -> tuple[tuple[str, ...], ...]:
    """Parse a comma-separated list of column paths; backticks quote names, dots separate fields."""
    paths: list[tuple[str, ...]] = []
    path: list[str] = []
    position = 0
    while True:
        part = _COLUMN_PART.match(text, position)
        if part is None:
            raise ValueError("expected column names separated by commas")
        path.append(part[2] if part[1] is None else part[1].replace("``", "`"))
        position = part.end()
        if part[3] != ".":
            paths.append(tuple(path))
            path = []
        if not part[3]:
            return tuple(paths)


def parse_whole(least: int, most: int = 2**63 - 1) -> Callable[[str], int]:
    """Return a parser for integers from `least` to `most`."""
    upwards = f"{least} or more" if most == 2**63 - 1 else f"{least} to {most}"

    def parse(text: str) -> int:
        is_number = re.fullmatch(r"\s*[+-]?\d{1,40}\s*", text, re.ASCII)
        if not is_number or not least <= int(text) <= most:
            raise ValueError(f"expected a whole number of {upwards}")
        return int(text)

    return parse


def parse_ratio(text: str) -> float:
    """Parse a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError("expected a number from 0 to 1")
    return number


def parse_bytes(text: str) -> int:
    """Parse a number of bytes, or a size such as `128mb`."""
    match = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)i?b?\s*", text.lower(), re.ASCII)
    if match is None or int(match[1]) == 0:
        raise ValueError("expected a size such as 134217728 or 128mb")
    size = int(match[1]) << (10 * " kmgt".index(match[2] or " "))
    if size > _MOST_BYTES:
        raise ValueError(f"expected a size of at most {_MOST_BYTES} bytes")
    return size


def parse_one_of(*words: str) -> Callable[[str], str]:
    """Return a parser for one of `words`, ignoring case."""
    by_folded = {word.lower(): word for word in words}

    def parse(text: str) -> str:
        found = by_folded.get(text.strip().lower())
        if found is None:
            raise ValueError(f"expected one of {', '.join(words)}")
        return found

    return parse


def parse_names(text: str) -> tuple[str, ...]:
    """Parse names that are separated by commas; return them in lower case."""
    return tuple(part.strip().lower() for part in text.split(",") if part.strip())


def parse_text(text: str) -> str:
    """Return the string unchanged."""
    return text


def parse_auto_compact(text: str) -> bool:
    """Parse a boolean; `auto` and the older `legacy` of Databricks mean true."""
    return text.strip().lower() in {"auto", "legacy"} or parse_boolean(text)


# --- Table properties: every known `delta.*` key with its type, default and meaning


T = TypeVar("T")

CONSTRAINT_PREFIX: Final = "delta.constraints."
FEATURE_PREFIX: Final = "delta.feature."
MIN_READER_VERSION: Final = "delta.minReaderVersion"
MIN_WRITER_VERSION: Final = "delta.minWriterVersion"
IGNORE_PROTOCOL_DEFAULTS: Final = "delta.ignoreProtocolDefaults"

ISOLATION_LEVELS: Final = ("Serializable", "WriteSerializable", "SnapshotIsolation")


@dataclass(frozen=True, eq=False)
class Property(Generic[T]):
    """A table property: its key, parser, default and purpose.

    Args:
        key: the key in the log.
        parse: converts the string to a value; raises ValueError with the expected form.
        default: the value if the key is absent.
        doc: one line for the reference documentation.
        aliases: keys that older writers used.
        settable: False if only writers may set the property, not users.
    """

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str
    aliases: tuple[str, ...] = field(default=(), kw_only=True)
    settable: bool = field(default=True, kw_only=True)

    @overload
    def __get__(self, table: None, owner: type) -> Property[T]: ...
    @overload
    def __get__(self, table: TableProperties, owner: type) -> T: ...
    def __get__(self, table: TableProperties | None, owner: type) -> T | Property[T]:
        """Return the table's value; on the class, return the property itself."""
        if table is None:
            return self
        for key in (self.key, *self.aliases):
            text = table.configuration.get(key)
            if text is not None:
                return self.value_of(text)
        return self.default

    def value_of(self, text: str) -> T:
        """Parse a value of the property.

        Raises:
            InvalidMetadataError: the value is invalid for the property.
        """
        try:
            return self.parse(text)
        except ValueError as error:
            raise InvalidMetadataError(
                f"table property {self.key}: {error}, found {text!r}"
            ) from None


def _flag(
    key: str, doc: str, *, default: bool = False, aliases: tuple[str, ...] = ()
) -> Property[bool]:
    return Property(key, parse_boolean, default, doc, aliases=aliases)


def _duration(key: str, days: int, doc: str) -> Property[int]:
    return Property(key, parse_interval_ms, days * 86_400_000, doc)


def _unset(
    key: str, parse: Callable[[str], T], doc: str, *, settable: bool = True
) -> Property[T | None]:
    """Return a property without a default."""
    optional: Callable[[str], T | None] = parse
    return Property(key, optional, None, doc, settable=settable)


class TableProperties:
    """The properties of one table, typed: `properties.checkpoint_interval`.

    Args:
        configuration: the `configuration` of the metaData action.

    Raises:
        InvalidMetadataError: on access, if the value is invalid for the property.
    """

    __slots__ = ("configuration",)

    def __init__(self, configuration: Mapping[str, str]) -> None:
        self.configuration: Mapping[str, str] = configuration

    # --- Allowed changes and concurrency
    append_only: Final = _flag("delta.appendOnly", "Refuse to delete or change rows.")
    isolation_level: Final = Property(
        "delta.isolationLevel",
        parse_one_of(*ISOLATION_LEVELS),
        "Serializable",
        "The isolation level of concurrent transactions; only `Serializable` can be set.",
    )

    enable_row_level_concurrency: Final = _flag(
        "delta.enableRowLevelConcurrency", "Changes to different rows of one file do not conflict."
    )
    fsync: Final = _flag(
        "deltalog.fsync", "A commit waits until its local files are on disk.", default=True
    )
    max_deleted_rows_ratio: Final = _unset(
        "deltalog.maxDeletedRowsRatio",
        parse_ratio,
        "A delete or update rewrites files with a larger share of deleted rows; if not set, 0.5.",
    )

    # --- Retention periods, and clean-up of the log
    log_retention_ms: Final = _duration("delta.logRetentionDuration", 30, "Retention of history.")
    deleted_file_retention_ms: Final = _duration(
        "delta.deletedFileRetentionDuration",
        7,
        "Retention of removed files; vacuum deletes files that were removed earlier.",
    )
    checkpoint_retention_ms: Final = _duration(
        "delta.checkpointRetentionDuration",
        2,
        "Retention of old checkpoints; without effect, because that of the log applies.",
    )
    set_transaction_retention_ms: Final = _unset(
        "delta.setTransactionRetentionDuration",
        parse_interval_ms,
        "Retention of application transactions; if unset, they never expire.",
    )
    sample_retention_ms: Final = _duration(
        "delta.sampleRetentionDuration",
        7,
        "Retention of sample files (Databricks); without effect in deltalog.",
    )
    truncate_history_retention_ms: Final = _duration(
        "delta.dropFeatureTruncateHistory.retentionDuration",
        1,
        "Retention of history when a feature is dropped with TRUNCATE HISTORY.",
    )
    enable_expired_log_cleanup: Final = _flag(
        "delta.enableExpiredLogCleanup", "Delete expired log files after checkpoints.", default=True
    )
    enable_full_retention_rollback: Final = _flag(
        "delta.enableFullRetentionRollback",
        "Every version within the retention period remains readable; deltalog ensures it anyway.",
        default=True,
    )
    require_checkpoint_protection_before_version: Final = Property(
        "delta.requireCheckpointProtectionBeforeVersion",
        parse_whole(0),
        0,
        "Clean-up must not delete checkpoints before this version.",
        settable=False,
    )

    # --- Checkpoints
    checkpoint_interval: Final = Property(
        "delta.checkpointInterval", parse_whole(1), 10, "Number of commits between checkpoints."
    )
    checkpoint_policy: Final = Property(
        "delta.checkpointPolicy",
        parse_one_of("classic", "v2"),
        "classic",
        "The kind of checkpoints to write: `classic` or `v2`.",
    )
    checkpoint_write_stats_as_json: Final = _flag(
        "delta.checkpoint.writeStatsAsJson", "Checkpoints store statistics as JSON.", default=True
    )
    # True is the default of Delta Spark. The protocol's default is false (requirement B-25).
    checkpoint_write_stats_as_struct: Final = _flag(
        "delta.checkpoint.writeStatsAsStruct",
        "Checkpoints store statistics and partition values as typed columns.",
        default=True,
    )

    # --- Statistics
    data_skipping_num_indexed_cols: Final = Property(
        "delta.dataSkippingNumIndexedCols",
        parse_whole(-1),
        32,
        "Number of leading columns with statistics; -1 means all columns.",
    )
    data_skipping_stats_columns: Final = _unset(
        "delta.dataSkippingStatsColumns",
        parse_column_list,
        "Columns with statistics; overrides delta.dataSkippingNumIndexedCols.",
    )
    data_skipping_string_prefix_length: Final = Property(
        "delta.dataSkippingStringPrefixLength",
        parse_whole(0),
        32,
        "Maximum number of characters of a string in statistics.",
    )

    # --- Indexes
    key_index_columns: Final = _unset(
        "deltalog.keyIndexColumns",
        parse_column_list,
        "The key columns of the key index (a preview), by physical names.",
    )

    # --- Table features
    enable_change_data_feed: Final = _flag(
        "delta.enableChangeDataFeed",
        "Record row-level changes.",
        aliases=("delta.enableChangeDataCapture",),
    )
    enable_deletion_vectors: Final = _flag(
        "delta.enableDeletionVectors",
        "Commands may mark rows as deleted instead of rewriting files.",
    )
    enable_row_tracking: Final = _flag(
        "delta.enableRowTracking", "Every row has a stable id and a stable commit version."
    )
    row_tracking_suspended: Final = _flag("delta.rowTrackingSuspended", "New files get no row ids.")
    materialized_row_id_column_name: Final = _unset(
        "delta.rowTracking.materializedRowIdColumnName",
        parse_text,
        "The hidden column of data files with the row ids of copied rows.",
        settable=False,
    )
    materialized_row_commit_version_column_name: Final = _unset(
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        parse_text,
        "The hidden column of data files with the row commit versions of copied rows.",
        settable=False,
    )
    enable_row_ids: Final = _flag("delta.enableRowIds", "Row tracking of a protocol draft.")
    row_ids_physical_column_name: Final = _unset(
        "delta.rowIds.physicalColumnName",
        parse_text,
        "The hidden column with the row ids of copied rows, in a protocol draft.",
        settable=False,
    )
    enable_in_commit_timestamps: Final = _flag(
        "delta.enableInCommitTimestamps", "Commits contain their own timestamp."
    )
    in_commit_timestamp_enablement_version: Final = _unset(
        "delta.inCommitTimestampEnablementVersion",
        parse_whole(0),
        "The first version whose commit contains its own timestamp.",
        settable=False,
    )
    in_commit_timestamp_enablement_timestamp: Final = _unset(
        "delta.inCommitTimestampEnablementTimestamp",
        parse_whole(0),
        "The timestamp of that version, in milliseconds since 1970.",
        settable=False,
    )
    enable_type_widening: Final = _flag(
        "delta.enableTypeWidening", "Column types may be changed to wider types."
    )
    enable_variant_shredding: Final = _flag(
        "delta.enableVariantShredding", "Variant columns may be stored shredded."
    )
    column_mapping_mode: Final = Property(
        "delta.columnMapping.mode",
        parse_one_of("none", "id", "name"),
        "none",
        "How columns are matched in data files: `none`, `name` or `id`.",
    )
    column_mapping_max_column_id: Final = Property(
        "delta.columnMapping.maxColumnId",
        parse_whole(0),
        0,
        "The highest column id ever assigned.",
        settable=False,
    )
    column_mapping_has_dropped_or_renamed: Final = Property(
        "delta.columnMapping.hasDroppedOrRenamed",
        parse_boolean,
        False,  # noqa: FBT003  # the default
        "Whether a column was ever dropped or renamed.",
        settable=False,
    )
    enable_iceberg_compat_v1: Final = _flag(
        "delta.enableIcebergCompatV1", "Iceberg can read the data files (V1)."
    )
    enable_iceberg_compat_v2: Final = _flag(
        "delta.enableIcebergCompatV2", "Iceberg can read the data files (V2)."
    )
    enable_iceberg_compat_v3: Final = _flag(
        "delta.enableIcebergCompatV3", "Iceberg can read the data files (V3)."
    )
    enable_iceberg_writer_compat_v1: Final = _flag(
        "delta.enableIcebergWriterCompatV1", "Iceberg engines could write the table (V1)."
    )
    enable_iceberg_writer_compat_v3: Final = _flag(
        "delta.enableIcebergWriterCompatV3", "Iceberg engines could write the table (V3)."
    )
    universal_format_enabled_formats: Final = Property(
        "delta.universalFormat.enabledFormats",
        parse_names,
        parse_names(""),
        "Other table formats in which metadata is also written: `iceberg`.",
    )
    enable_materialize_partition_columns: Final = _flag(
        "delta.enableMaterializePartitionColumnsFeature",
        "Data files must contain the partition columns.",
    )
    write_partition_columns_to_parquet: Final = _unset(
        "delta.writePartitionColumnsToParquet",
        parse_boolean,
        "Whether data files should contain the partition columns.",
    )

    # --- Layout of data files
    randomize_file_prefixes: Final = _flag(
        "delta.randomizeFilePrefixes",
        "Write files to random directories instead of partition directories.",
    )
    random_prefix_length: Final = Property(
        "delta.randomPrefixLength",
        parse_whole(1, 255),  # file systems allow at most 255 characters in a name
        2,
        "Number of characters in the name of a random directory.",
    )
    target_file_size_bytes: Final = _unset(
        "delta.targetFileSize",
        parse_bytes,
        "Target size of data files, such as `128mb`; if not set, 128 MiB.",
    )
    tune_file_sizes_for_rewrites: Final = _unset(
        "delta.tuneFileSizesForRewrites",
        parse_boolean,
        "Write smaller files if rows are often changed (Databricks); without effect in deltalog.",
    )
    auto_optimize: Final = _unset(
        "delta.autoOptimize",
        parse_boolean,
        "Deprecated form of `delta.autoOptimize.optimizeWrite`.",
    )
    optimize_write: Final = _unset(
        "delta.autoOptimize.optimizeWrite",
        parse_boolean,
        "Group rows into fewer files when writing; if not set, off.",
    )
    auto_compact: Final = _unset(
        "delta.autoOptimize.autoCompact",
        parse_auto_compact,
        "Compact small files after commits; if not set, off.",
    )
    parquet_compression_codec: Final = _unset(
        "delta.parquet.compression.codec",
        parse_text,
        "Compression codec of data files: `snappy` (if not set), `zstd`, `gzip`, `brotli`, `lz4`, "
        "`lz4_raw` or `uncompressed`.",
    )
    parquet_format_version: Final = _unset(
        "delta.parquet.format.version",
        parse_text,
        "Version of the Parquet format; without effect in deltalog, which writes 2.6.",
    )
    symlink_manifest_enabled: Final = _flag(
        "delta.compatibility.symlinkFormatManifest.enabled",
        "Write symlink manifests after commits.",
    )

    # --- The properties that are set, as a mapping from keys to strings

    def __getitem__(self, key: str) -> str:
        """Return the string of a property that is set, such as `delta.appendOnly`.

        Raises:
            KeyError: the table does not set the property.
        """
        return self.configuration[key]

    if not TYPE_CHECKING:  # type checkers must report this use

        def __setitem__(self, key: str, value: object) -> NoReturn:
            """Raise an error that says how to set a property."""
            text = str(value).lower() if isinstance(value, bool) else str(value)
            raise WrongCallError(
                "these are the properties of one version of a table: to set one, use "
                f"table.alter.set_table_properties({{{key!r}: {text!r}}})"
            )

    def __call__(self) -> Self:
        """Return the properties themselves: `table.properties()` is `table.properties`.

        `metadata()`, `protocol()` and `schema()` are methods, so callers write brackets here, too.
        """
        return self

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys of the properties that are set."""
        return iter(self.configuration)

    def __len__(self) -> int:
        """Return the number of properties that are set."""
        return len(self.configuration)

    def __contains__(self, key: object) -> bool:
        """Return whether the table sets a property."""
        return key in self.configuration

    def __bool__(self) -> bool:
        """Return True, also if no property is set, because defaults exist."""
        return True

    def keys(self) -> KeysView[str]:
        """Return the keys of the properties that are set."""
        return self.configuration.keys()

    def items(self) -> ItemsView[str, str]:
        """Return the properties that are set: key and string."""
        return self.configuration.items()

    def get(self, key: str, default: str | None = None) -> str | None:
        """Return the string of a property, or a default if the table does not set it."""
        return self.configuration.get(key, default)

    @property
    def constraints(self) -> dict[str, str]:
        """The SQL of CHECK constraints by name, unchanged.

        Protocol: CHECK Constraints
        """
        return {
            key[len(CONSTRAINT_PREFIX) :]: text
            for key, text in self.configuration.items()
            if key.lower().startswith(CONSTRAINT_PREFIX)
        }

    if not TYPE_CHECKING:  # type checkers must report unknown names themselves

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError that suggests a similar property."""
            public = [one for one in dir(type(self)) if not one.startswith("_")]
            close = [] if name.startswith("_") else get_close_matches(name, public, n=1)
            hint = f": did you mean {close[0]!r}?" if close else ""
            raise UnknownNameError(f"there is no table property {name!r}{hint}")

    def __repr__(self) -> str:
        return f"TableProperties({dict(self.configuration)!r})"

    def _repr_html_(self) -> str:
        """Return the notebook card: the properties that are set, then other defaults."""
        from deltalog._util.cards import card, folding, grid, plain  # noqa: PLC0415  # needed only in notebooks

        known = {key: one for one in PROPERTIES.values() for key in (one.key, *one.aliases)}
        given = [
            (key, text, *_described(known.get(key), text))
            for key, text in self.configuration.items()
        ]
        set_keys = {known[key].key for key in self.configuration if key in known}
        rest = [
            (one.key, _as_text(one, one.default), one.doc)
            for one in PROPERTIES.values()
            if one.settable and one.key not in set_keys
        ]
        return card(
            "Table properties",
            folding(f"{len(given)} set", grid(given, ("property", "value", "default", "meaning")))
            if given
            else plain("no property is set"),
            folding("defaults", grid(rest, ("property", "value", "meaning")), is_open=False),
        )


PROPERTIES: Final[Mapping[str, Property[Any]]] = {
    found.key: found for found in vars(TableProperties).values() if isinstance(found, Property)
}
"""Every known property by its key."""


def _described(known: Property[Any] | None, text: str) -> tuple[str, str]:
    """Return the default of a property; and its purpose, or what is wrong with its value."""
    if known is None:
        return "", ""
    try:
        known.value_of(text)
    except InvalidMetadataError as error:
        return _as_text(known, known.default), str(error)
    return _as_text(known, known.default), known.doc


def _as_text(known: Property[Any], value: object) -> str:
    """Return a value in the form in which it is set as a property."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if known.parse is parse_interval_ms and isinstance(value, int):
        return f"interval {value / 86_400_000:g} days"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


# --- Checks of the table properties that a user sets


# The prefixes of table properties of other engines and tools. They are stored without checks.
_OPEN_PREFIXES: Final = (
    "delta.universalFormat.",
    "delta.compatibility.",
    "delta.coordinatedCommits.",
    "delta.sharing.",
    "delta.workloadBasedColumns.",
)

PARQUET_CODECS: Final = (
    *("uncompressed", "none", "snappy", "gzip", "brotli", "lz4", "zstd", "lz4_raw"),
)
"""The compression codecs of data files that deltalog can write, by their names in Spark."""

_BY_FOLDED: Final = {
    **{alias.lower(): found.key for found in PROPERTIES.values() for alias in found.aliases},
    **{key.lower(): key for key in PROPERTIES},
    **{
        key.lower(): key
        for key in (MIN_READER_VERSION, MIN_WRITER_VERSION, IGNORE_PROTOCOL_DEFAULTS)
    },
}


def canonical_key(key: str) -> str:
    """Return a key in its canonical spelling; known keys are case-insensitive (requirement D-38).

    The name of a constraint is converted to lower case, as in Spark (requirement CON-03). A key
    without the prefix `delta.` or `deltalog.` is returned unchanged.

    Raises:
        InvalidInputError: the key has one of these prefixes, but is unknown.
    """
    folded = key.lower()
    if (known := _BY_FOLDED.get(folded)) is not None:
        return known
    if folded.startswith(CONSTRAINT_PREFIX):
        return folded
    if folded.startswith(FEATURE_PREFIX):
        return FEATURE_PREFIX + key[len(FEATURE_PREFIX) :]
    if not folded.startswith(("delta.", "deltalog.")) or key.startswith(_OPEN_PREFIXES):
        return key
    # Without the prefix, which would make all names similar.
    short = {known.partition(".")[2]: known for known in _BY_FOLDED}
    wanted = folded.partition(".")[2]
    close = [_MEANT[wanted]] if wanted in _MEANT else difflib.get_close_matches(wanted, short, n=1)
    hint = f"; did you mean {_BY_FOLDED[short[close[0]]]!r}?" if close else ""
    raise InvalidInputError(f"there is no table property {key!r}{hint}")


_MEANT: Final = {
    **dict.fromkeys(("cdf", "cdc", "enablecdf", "enablecdc"), "enablechangedatafeed"),
    **dict.fromkeys(("dv", "dvs", "enabledv", "enabledvs"), "enabledeletionvectors"),
    **dict.fromkeys(
        ("retention", "retentionduration", "retentionhours", "vacuumretention"),
        "deletedfileretentionduration",
    ),
}
"""Names that users guess → the name of a property, both folded and without `delta.`."""


def key_without_prefix(key: str) -> str | None:
    """Return the table property that a key without the prefix `delta.` was meant to be, if any."""
    return _BY_FOLDED.get(f"delta.{key.lower()}")


def check_settable(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a user sets, with canonical keys and canonical values.

    Other engines compare values exactly: for deltalake, the mode `NAME` is no column mapping, and
    it then reads NULL; `appendOnly = 'True'` does not protect the table.

    Raises:
        InvalidInputError: a key is unknown or may be set only by writers, or a value is invalid.
    """
    checked: dict[str, str] = {}
    for key, text in properties.items():
        canonical = canonical_key(key)
        if canonical in checked:
            raise InvalidInputError(f"table property {canonical!r} is given twice")
        checked[canonical] = _checked_value(canonical, text)
    return checked


def canonical_value(known: Property[Any], text: str) -> str:
    """Return a valid value of a property as the protocol spells it, such as `true` for `TRUE`.

    Raises:
        InvalidMetadataError: the value is invalid for the property.
    """
    value = known.value_of(text)
    if known.parse is parse_interval_ms:
        return spell_interval(text)
    if known.parse is parse_auto_compact or known is TableProperties.parquet_compression_codec:
        return text.strip().lower()
    if known.parse is parse_names:
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    is_size = known.parse is parse_bytes
    return str(value) if isinstance(value, int) and not is_size else text.strip()


def _checked_value(key: str, text: str) -> str:
    found = PROPERTIES.get(key)
    if found is None:
        if key in {MIN_READER_VERSION, MIN_WRITER_VERSION} and not text.strip().isdecimal():
            raise InvalidInputError(
                f"table property {key}: expected a whole number, found {text!r}"
            )
        return text
    if not found.settable:
        raise InvalidInputError(f"cannot set table property {key}: only writers may set it")
    try:
        value = canonical_value(found, text)
    except InvalidMetadataError as error:
        raise InvalidInputError(str(error)) from None
    if found is TableProperties.parquet_compression_codec and value not in PARQUET_CODECS:
        # Spark also supports LZO, but deltalog cannot write such files.
        raise InvalidInputError(
            f"table property {key}: expected one of {', '.join(PARQUET_CODECS)}, found {text!r}"
        )
    if found is TableProperties.isolation_level and value != "Serializable":
        raise InvalidInputError(
            f"table property {key}: expected Serializable, found {text!r}; "
            "other levels are an argument of a transaction"
        )
    return value
