"""Table properties: every known `delta.*` key with its type, default and meaning.

Owns the table of properties. A value is parsed when it is asked for, so a bad one harms only who
needs it. Whether a property has an effect is `configuration`'s answer: some need a table feature.

Protocol: Table Properties
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar, overload

from deltalog.actions.property_values import (
    optional,
    parse_auto_compact,
    parse_boolean,
    parse_bytes,
    parse_column_list,
    parse_interval_ms,
    parse_names,
    parse_one_of,
    parse_ratio,
    parse_text,
    parse_whole,
)
from deltalog.errors import InvalidMetadataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

CONSTRAINT_PREFIX: Final = "delta.constraints."
FEATURE_PREFIX: Final = "delta.feature."
MIN_READER_VERSION: Final = "delta.minReaderVersion"
MIN_WRITER_VERSION: Final = "delta.minWriterVersion"
IGNORE_PROTOCOL_DEFAULTS: Final = "delta.ignoreProtocolDefaults"

ISOLATION_LEVELS: Final = ("Serializable", "WriteSerializable", "SnapshotIsolation")


class Property(Generic[T]):
    """One property: the key in the log, how its text is read, and what it is for.

    Args:
        key: as it stands in the log.
        parse: text → value; raises ValueError with what was expected.
        default: the value where the key is absent.
        doc: one line for the reference.
        aliases: keys that older writers used.
        settable: False if only a writer itself may set it.
    """

    def __init__(
        self,
        key: str,
        parse: Callable[[str], T],
        default: T,
        doc: str,
        *,
        aliases: tuple[str, ...] = (),
        settable: bool = True,
    ) -> None:
        self.key = key
        self.parse = parse
        self.default = default
        self.doc = doc
        self.aliases = aliases
        self.settable = settable

    @overload
    def __get__(self, table: None, owner: type) -> Property[T]: ...
    @overload
    def __get__(self, table: TableProperties, owner: type) -> T: ...
    def __get__(self, table: TableProperties | None, owner: type) -> T | Property[T]:
        """The table's value; on the class, the property itself."""
        if table is None:
            return self
        for key in (self.key, *self.aliases):
            text = table.configuration.get(key)
            if text is not None:
                return self.value_of(text)
        return self.default

    def value_of(self, text: str) -> T:
        """The value that a text stands for.

        Raises:
            InvalidMetadataError: the text is none of the property's.
        """
        try:
            return self.parse(text)
        except ValueError as error:
            raise InvalidMetadataError(
                f"table property {self.key}: {error}, found {text!r}"
            ) from None


class TableProperties:
    """The properties of one table, typed: `properties.checkpoint_interval`.

    Args:
        configuration: the `configuration` of the metaData action.

    Raises:
        InvalidMetadataError: on access, if the text of that property is none of its values.
    """

    __slots__ = ("configuration",)

    def __init__(self, configuration: Mapping[str, str]) -> None:
        self.configuration = configuration

    # What the table allows.
    append_only = Property(
        "delta.appendOnly", parse_boolean, default=False, doc="Refuse to delete or change rows."
    )
    isolation_level = Property(
        "delta.isolationLevel",
        parse_one_of(*ISOLATION_LEVELS),
        "Serializable",
        "How strictly concurrent transactions are kept apart.",
    )

    enable_row_level_concurrency = Property(
        "delta.enableRowLevelConcurrency",
        parse_boolean,
        default=False,
        doc="Changes of different rows of one file do not conflict.",
    )
    max_deleted_rows_ratio = Property(
        "deltalog.maxDeletedRowsRatio", optional(parse_ratio), None, "Above it files are rewritten."
    )

    # What the log keeps, and for how long.
    log_retention_ms = Property(
        "delta.logRetentionDuration", parse_interval_ms, 30 * 86_400_000, "How long history stays."
    )
    deleted_file_retention_ms = Property(
        "delta.deletedFileRetentionDuration",
        parse_interval_ms,
        7 * 86_400_000,
        "How long files stay after they left the table; vacuum deletes older ones.",
    )
    checkpoint_retention_ms = Property(
        "delta.checkpointRetentionDuration",
        parse_interval_ms,
        2 * 86_400_000,
        "How long old checkpoints are kept.",
    )
    set_transaction_retention_ms = Property(
        "delta.setTransactionRetentionDuration",
        optional(parse_interval_ms),
        None,
        "How long application transactions are remembered; unset is forever.",
    )
    sample_retention_ms = Property(
        "delta.sampleRetentionDuration",
        parse_interval_ms,
        7 * 86_400_000,
        "How long sample files are kept (Databricks).",
    )
    truncate_history_retention_ms = Property(
        "delta.dropFeatureTruncateHistory.retentionDuration",
        parse_interval_ms,
        86_400_000,
        "How much history stays when a feature is dropped with its history.",
    )
    enable_expired_log_cleanup = Property(
        "delta.enableExpiredLogCleanup",
        parse_boolean,
        default=True,
        doc="Delete expired log files after checkpoints.",
    )
    enable_full_retention_rollback = Property(
        "delta.enableFullRetentionRollback",
        parse_boolean,
        default=True,
        doc="Keep every version of the retention period readable.",
    )
    require_checkpoint_protection_before_version = Property(
        "delta.requireCheckpointProtectionBeforeVersion",
        parse_whole(0),
        0,
        "Checkpoints before this version are protected from cleanup.",
        settable=False,
    )

    # Checkpoints.
    checkpoint_interval = Property(
        "delta.checkpointInterval", parse_whole(1), 10, "A checkpoint every so many commits."
    )
    checkpoint_policy = Property(
        "delta.checkpointPolicy",
        parse_one_of("classic", "v2"),
        "classic",
        "Which kind of checkpoint is written.",
    )
    checkpoint_write_stats_as_json = Property(
        "delta.checkpoint.writeStatsAsJson",
        parse_boolean,
        default=True,
        doc="Checkpoints keep statistics as JSON.",
    )
    checkpoint_write_stats_as_struct = Property(
        "delta.checkpoint.writeStatsAsStruct",
        parse_boolean,
        default=True,  # Delta Spark's default; the protocol's own is false (ledger B-25)
        doc="Checkpoints keep statistics and partition values as typed columns.",
    )

    # Statistics.
    data_skipping_num_indexed_cols = Property(
        "delta.dataSkippingNumIndexedCols",
        parse_whole(-1),
        32,
        "How many leading columns get statistics; -1 is all.",
    )
    data_skipping_stats_columns = Property(
        "delta.dataSkippingStatsColumns",
        optional(parse_column_list),
        None,
        "The columns that get statistics; wins over the number.",
    )
    data_skipping_string_prefix_length = Property(
        "delta.dataSkippingStringPrefixLength",
        parse_whole(0),
        32,
        "How many characters of a string its statistics keep.",
    )

    # Table features.
    enable_change_data_feed = Property(
        "delta.enableChangeDataFeed",
        parse_boolean,
        default=False,
        doc="Record row-level changes.",
        aliases=("delta.enableChangeDataCapture",),
    )
    enable_deletion_vectors = Property(
        "delta.enableDeletionVectors",
        parse_boolean,
        default=False,
        doc="Commands may mark rows as deleted instead of rewriting files.",
    )
    enable_row_tracking = Property(
        "delta.enableRowTracking",
        parse_boolean,
        default=False,
        doc="Every row has an id and a commit version that last.",
    )
    row_tracking_suspended = Property(
        "delta.rowTrackingSuspended",
        parse_boolean,
        default=False,
        doc="Stop giving row ids to new files.",
    )
    materialized_row_id_column_name = Property(
        "delta.rowTracking.materializedRowIdColumnName",
        optional(parse_text),
        None,
        "The hidden column of data files that holds kept row ids.",
        settable=False,
    )
    materialized_row_commit_version_column_name = Property(
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        optional(parse_text),
        None,
        "The hidden column of data files that holds kept row commit versions.",
        settable=False,
    )
    enable_row_ids = Property(
        "delta.enableRowIds",
        parse_boolean,
        default=False,
        doc="The draft's word for row tracking.",
    )
    row_ids_physical_column_name = Property(
        "delta.rowIds.physicalColumnName",
        optional(parse_text),
        None,
        "The draft's hidden column of kept row ids.",
        settable=False,
    )
    enable_in_commit_timestamps = Property(
        "delta.enableInCommitTimestamps",
        parse_boolean,
        default=False,
        doc="Commits carry their own time.",
    )
    in_commit_timestamp_enablement_version = Property(
        "delta.inCommitTimestampEnablementVersion",
        optional(parse_whole(0)),
        None,
        "The version from which commits carry their own time.",
        settable=False,
    )
    in_commit_timestamp_enablement_timestamp = Property(
        "delta.inCommitTimestampEnablementTimestamp",
        optional(parse_whole(0)),
        None,
        "The time of that version, milliseconds since 1970.",
        settable=False,
    )
    enable_type_widening = Property(
        "delta.enableTypeWidening",
        parse_boolean,
        default=False,
        doc="Column types may be changed to wider ones.",
    )
    enable_variant_shredding = Property(
        "delta.enableVariantShredding",
        parse_boolean,
        default=False,
        doc="Variant columns may be stored shredded.",
    )
    column_mapping_mode = Property(
        "delta.columnMapping.mode",
        parse_one_of("none", "id", "name"),
        "none",
        "How columns are found in data files.",
    )
    column_mapping_max_column_id = Property(
        "delta.columnMapping.maxColumnId",
        parse_whole(0),
        0,
        "The highest column id ever given.",
        settable=False,
    )
    enable_iceberg_compat_v1 = Property(
        "delta.enableIcebergCompatV1", parse_boolean, default=False, doc="Write for Iceberg (V1)."
    )
    enable_iceberg_compat_v2 = Property(
        "delta.enableIcebergCompatV2", parse_boolean, default=False, doc="Write for Iceberg (V2)."
    )
    enable_iceberg_compat_v3 = Property(
        "delta.enableIcebergCompatV3", parse_boolean, default=False, doc="Write for Iceberg (V3)."
    )
    enable_iceberg_writer_compat_v1 = Property(
        "delta.enableIcebergWriterCompatV1",
        parse_boolean,
        default=False,
        doc="Keep to what Iceberg writers can follow (V1).",
    )
    enable_iceberg_writer_compat_v3 = Property(
        "delta.enableIcebergWriterCompatV3",
        parse_boolean,
        default=False,
        doc="Keep to what Iceberg writers can follow (V3).",
    )
    universal_format_enabled_formats = Property(
        "delta.universalFormat.enabledFormats",
        parse_names,
        parse_names(""),
        "Formats that the table's metadata is also kept in.",
    )
    enable_materialize_partition_columns = Property(
        "delta.enableMaterializePartitionColumnsFeature",
        parse_boolean,
        default=False,
        doc="Data files must hold the partition columns.",
    )
    write_partition_columns_to_parquet = Property(
        "delta.writePartitionColumnsToParquet",
        optional(parse_boolean),
        None,
        "Whether data files should hold the partition columns.",
    )

    # Layout of data files.
    randomize_file_prefixes = Property(
        "delta.randomizeFilePrefixes",
        parse_boolean,
        default=False,
        doc="Random directories instead of partition directories.",
    )
    random_prefix_length = Property(
        "delta.randomPrefixLength", parse_whole(1), 2, "Characters of a random directory."
    )
    target_file_size_bytes = Property(
        "delta.targetFileSize", optional(parse_bytes), None, "How large data files should be."
    )
    tune_file_sizes_for_rewrites = Property(
        "delta.tuneFileSizesForRewrites",
        optional(parse_boolean),
        None,
        "Smaller files where rows are often changed.",
    )
    auto_optimize = Property(
        "delta.autoOptimize", optional(parse_boolean), None, "Deprecated: optimise writes."
    )
    optimize_write = Property(
        "delta.autoOptimize.optimizeWrite",
        optional(parse_boolean),
        None,
        "Gather rows into fewer files while writing.",
    )
    auto_compact = Property(
        "delta.autoOptimize.autoCompact",
        optional(parse_auto_compact),
        None,
        "Compact small files after commits.",
    )
    parquet_compression_codec = Property(
        "delta.parquet.compression.codec",
        optional(parse_text),
        None,
        "How data files are compressed.",
    )
    parquet_format_version = Property(
        "delta.parquet.format.version", optional(parse_text), None, "Version of the Parquet format."
    )
    symlink_manifest_enabled = Property(
        "delta.compatibility.symlinkFormatManifest.enabled",
        parse_boolean,
        default=False,
        doc="Write symlink manifests after commits.",
    )

    @property
    def constraints(self) -> dict[str, str]:
        """The SQL of CHECK constraints by name, as it stands in the configuration.

        Protocol: CHECK Constraints
        """
        return {
            key[len(CONSTRAINT_PREFIX) :]: text
            for key, text in self.configuration.items()
            if key.lower().startswith(CONSTRAINT_PREFIX)
        }

    if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves

        def __getattr__(self, name: str) -> NoReturn:
            """Say which property was meant."""
            close = [] if name.startswith("_") else get_close_matches(name, dir(type(self)), n=1)
            hint = f": did you mean {close[0]!r}?" if close else ""
            raise AttributeError(f"there is no table property {name!r}{hint}")

    def __repr__(self) -> str:
        return f"TableProperties({dict(self.configuration)!r})"


PROPERTIES: Final[Mapping[str, Property[Any]]] = {
    found.key: found for found in vars(TableProperties).values() if isinstance(found, Property)
}
"""Every known property by its key."""
