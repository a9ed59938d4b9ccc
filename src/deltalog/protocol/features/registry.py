"""The registry of table features: description, activation and support of each feature.

Checks, protocol changes and the feature matrix of the documentation use this registry. A feature
that is not in the registry is unknown. A table with an unknown reader feature cannot be read, and a
table with an unknown writer feature can only be read: "To read a table, readers must implement and
respect all features listed in `readerFeatures`".

Protocol: Valid Feature Names in Table Features, Active Features
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import EnumType, StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from deltalog._util.argument_types import checked_types
from deltalog._util.call_errors import UnknownNameError
from deltalog._util.previews import enable, enabled_previews, keep_nanoseconds
from deltalog._util.similar_names import similar_to
from deltalog.errors import InvalidInputError
from deltalog.protocol.features.schema_needs import (
    has_column_defaults,
    has_generated_columns,
    has_identity_columns,
    has_invariants,
    has_types_of,
    has_variant,
)
from deltalog.schema.collations import has_collations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.protocol.actions.properties import TableProperties
    from deltalog.schema.types import StructType

    Activation = Callable[[TableProperties, StructType], bool]


class Kind(StrEnum):
    """Who must support a feature."""

    READER_WRITER = "reader and writer"
    WRITER = "writer"


class Support(StrEnum):
    """Whether deltalog supports a feature."""

    FULL = "full"
    PREVIEW = "preview"  # supported only after a call of `enable_preview`
    PLANNED = "planned"  # not implemented yet
    NONE = "none"


@dataclass(frozen=True, slots=True)
class TableFeature:
    """One table feature.

    Args:
        kind: whether readers must support the feature, too.
        name: the current name.
        doc: one line for the reference documentation.
        protocol: the section of PROTOCOL.md, or another document.
        aliases: names in drafts and previews. They are accepted in a protocol, but never written.
        legacy: the lowest (reader, writer) versions that imply the feature; None if no versions do.
        requires: other features that the table must have.
        enabled_by: returns whether properties and schema activate the feature; None if it is active
            whenever the protocol lists it.
        read: support for reading such tables.
        write: support for writing such tables.
    """

    kind: Kind
    name: str
    doc: str
    protocol: str
    _: KW_ONLY
    aliases: tuple[str, ...] = ()
    legacy: tuple[int, int] | None = None
    requires: tuple[str, ...] = ()
    enabled_by: Activation | None = None
    read: Support = Support.FULL
    write: Support = Support.FULL

    @property
    def min_versions(self) -> tuple[int, int]:
        """The lowest (reader, writer) versions whose protocol can contain the feature."""
        if self.legacy is not None:
            return self.legacy
        return (3, 7) if self.kind is Kind.READER_WRITER else (1, 7)


_writer = partial(TableFeature, Kind.WRITER)
_reader_writer = partial(TableFeature, Kind.READER_WRITER)

_TABLE: Final = (
    # --- Features that protocol versions below (3,7) imply
    _writer(
        "appendOnly",
        "Rows may be added, but not changed or deleted.",
        "Append-only Tables",
        legacy=(1, 2),
        enabled_by=lambda properties, _: properties.append_only,
    ),
    _writer(
        "invariants",
        "Columns may have a condition that every row must satisfy.",
        "Column Invariants",
        aliases=("columnInvariants",),
        legacy=(1, 2),
        enabled_by=lambda _, schema: has_invariants(schema),
    ),
    _writer(
        "checkConstraints",
        "Named conditions that every row must satisfy.",
        "CHECK Constraints",
        legacy=(1, 3),
        enabled_by=lambda properties, _: bool(properties.constraints),
    ),
    _writer(
        "changeDataFeed",
        "Row-level changes can be read version by version.",
        "Add CDC File",
        legacy=(1, 4),
        enabled_by=lambda properties, _: properties.enable_change_data_feed,
    ),
    _writer(
        "generatedColumns",
        "Columns that are computed from other columns.",
        "Generated Columns",
        legacy=(1, 4),
        enabled_by=lambda _, schema: has_generated_columns(schema),
    ),
    _reader_writer(
        "columnMapping",
        "Columns can be renamed and dropped without rewriting files.",
        "Column Mapping",
        legacy=(2, 5),
        enabled_by=lambda properties, _: properties.column_mapping_mode != "none",
    ),
    _writer(
        "identityColumns",
        "Columns that number new rows.",
        "Identity Columns",
        legacy=(1, 6),
        enabled_by=lambda _, schema: has_identity_columns(schema),
    ),
    # --- Reader and writer features
    _reader_writer(
        "deletionVectors",
        "Bitmaps mark rows of data files as deleted.",
        "Deletion Vectors",
        enabled_by=lambda properties, _: properties.enable_deletion_vectors,
    ),
    _reader_writer(
        "timestampNtz",
        "Timestamps without a time zone.",
        "Timestamp without timezone (TimestampNtz)",
        aliases=("timestampNTZ", "timestampWithoutTimezone"),
        enabled_by=lambda _, schema: has_types_of(schema, "timestampNtz"),
    ),
    _reader_writer(
        "v2Checkpoint",
        "Checkpoints with unique names and sidecar files.",
        "V2 Checkpoint Table Feature",
        enabled_by=lambda properties, _: properties.checkpoint_policy == "v2",
    ),
    _reader_writer(
        "typeWidening",
        "Column types can be changed to wider types without rewriting files.",
        "Type Widening",
        aliases=("typeWidening-preview",),
        enabled_by=lambda properties, _: properties.enable_type_widening,
    ),
    _reader_writer(
        "variantType",
        "Semi-structured values in a binary form.",
        "Variant Data Type",
        aliases=("variantType-preview",),
        enabled_by=lambda _, schema: has_variant(schema),
    ),
    _reader_writer(
        "variantShredding",
        "Parts of variants are stored as typed columns.",
        "Variant Shredding",
        aliases=("variantShredding-preview",),
        requires=("variantType",),
        enabled_by=lambda properties, _: properties.enable_variant_shredding,
    ),
    _reader_writer(
        "vacuumProtocolCheck",
        "VACUUM checks reader and writer features before it deletes files.",
        "VACUUM Protocol Check",
    ),
    _reader_writer(
        "catalogManaged",
        "A catalog decides which commits are valid.",
        "Catalog-managed tables",
        aliases=("catalogManaged-preview", "catalogOwned", "catalogOwned-preview"),
        requires=("inCommitTimestamp",),
    ),
    _reader_writer(
        "geospatial",
        "Geometry and geography types.",
        "RFC geospatial types",
        aliases=("geospatial-dev", "geospatial-preview"),
        enabled_by=lambda _, schema: has_types_of(schema, "geospatial"),
        read=Support.PREVIEW,
        write=Support.PREVIEW,
    ),
    _reader_writer(
        "timestampNanos",
        "Timestamps in nanoseconds.",
        "RFC nanosecond timestamps",
        aliases=("timestampNanos-preview",),
        requires=("timestampNtz",),
        enabled_by=lambda _, schema: has_types_of(schema, "timestampNanos"),
        read=Support.PREVIEW,
        write=Support.PREVIEW,
    ),
    _reader_writer(
        "intervalTypes",
        "Intervals of months, and of days to microseconds.",
        "RFC interval types",
        enabled_by=lambda _, schema: has_types_of(schema, "intervalTypes"),
        read=Support.PREVIEW,
        write=Support.PREVIEW,
    ),
    _reader_writer(
        "adaptiveMetadata",
        "Another form of the log, in preview.",
        "RFC adaptive metadata",
        aliases=("adaptiveMetadata-preview",),
        read=Support.NONE,
        write=Support.NONE,
    ),
    _reader_writer(
        "redirectReaderWriter-preview",
        "Reads and writes go to another table.",
        "Delta Spark",
        read=Support.NONE,
        write=Support.NONE,
    ),
    # --- Writer features
    _writer(
        "domainMetadata",
        "Named configurations in the log.",
        "Domain Metadata",
    ),
    _writer(
        "rowTracking",
        "Rows have stable ids and commit versions.",
        "Row Tracking",
        requires=("domainMetadata",),
        enabled_by=lambda properties, _: properties.enable_row_tracking,
    ),
    _writer(
        "rowIds",
        "The draft's form of row tracking.",
        "Row IDs (draft)",
        aliases=("delta.rowIds",),
        enabled_by=lambda properties, _: properties.enable_row_ids,
    ),
    _writer(
        "inCommitTimestamp",
        "Commits contain their own timestamp.",
        "In-Commit Timestamps",
        aliases=("inCommitTimestamp-preview",),
        enabled_by=lambda properties, _: properties.enable_in_commit_timestamps,
    ),
    _writer(
        "clustering",
        "Rows with similar values in chosen columns are stored together.",
        "Clustered Table",
        requires=("domainMetadata",),
    ),
    _writer(
        "allowColumnDefaults",
        "Columns may have default values.",
        "Default Columns",
        enabled_by=lambda _, schema: has_column_defaults(schema),
    ),
    _writer(
        "checkpointProtection",
        "Checkpoints protect old versions that need dropped features.",
        "Checkpoint Protection",
        enabled_by=lambda properties, _: (
            properties.require_checkpoint_protection_before_version > 0
        ),
    ),
    _writer(
        "materializePartitionColumns",
        "Data files also contain the partition columns.",
        "RFC materialize partition columns",
        enabled_by=lambda properties, _: properties.enable_materialize_partition_columns,
    ),
    _writer(
        "icebergCompatV1",
        "Files and metadata can be converted to Iceberg.",
        "Iceberg Compatibility V1",
        requires=("columnMapping",),
        enabled_by=lambda properties, _: properties.enable_iceberg_compat_v1,
    ),
    _writer(
        "icebergCompatV2",
        "Like V1, but also with lists and maps.",
        "Iceberg Compatibility V2",
        requires=("columnMapping",),
        enabled_by=lambda properties, _: properties.enable_iceberg_compat_v2,
    ),
    _writer(
        "icebergCompatV3",
        "Like V2, but with row tracking, deletion vectors and variants.",
        "RFC IcebergCompatV3",
        requires=("columnMapping", "rowTracking"),
        enabled_by=lambda properties, _: properties.enable_iceberg_compat_v3,
    ),
    _writer(
        "icebergWriterCompatV1",
        "Iceberg engines could write the table (Iceberg format 2).",
        "RFC Iceberg writer compatibility",
        requires=("icebergCompatV2",),
        enabled_by=lambda properties, _: properties.enable_iceberg_writer_compat_v1,
    ),
    _writer(
        "icebergWriterCompatV3",
        "Iceberg engines could write the table (Iceberg format 3).",
        "RFC Iceberg writer compatibility",
        requires=("icebergCompatV3",),
        write=Support.NONE,
        enabled_by=lambda properties, _: properties.enable_iceberg_writer_compat_v3,
    ),
    _writer(
        "collations",
        "Strings are compared by the rules of a language.",
        "Collations Table Feature",
        aliases=("collations-preview",),
        requires=("domainMetadata",),
        enabled_by=lambda _, schema: has_collations(schema),
    ),
    _writer(
        "coordinatedCommits-preview",
        "A coordinator accepts the commits; an early form of catalog-managed tables.",
        "Delta Spark",
        requires=("inCommitTimestamp", "vacuumProtocolCheck"),
        write=Support.NONE,
    ),
    _writer(
        "redirectWriterOnly-preview",
        "Writes go to another table.",
        "Delta Spark",
        write=Support.NONE,
    ),
    _writer(
        "columnMappingUsageTracking",
        "Records whether columns were ever renamed or dropped.",
        "RFC column mapping usage tracking",
        requires=("columnMapping",),
    ),
    _writer(
        "liquid",
        "Databricks' early form of clustering.",
        "Databricks",
        write=Support.NONE,
    ),
)

FEATURES: Final[Mapping[str, TableFeature]] = {feature.name: feature for feature in _TABLE}
"""Every known feature by its current name."""

_BY_ANY_NAME: Final[Mapping[str, TableFeature]] = {
    name: feature for feature in _TABLE for name in (feature.name, *feature.aliases)
}

_BY_FOLDED_NAME: Final[Mapping[str, TableFeature]] = {
    name.lower(): feature for name, feature in _BY_ANY_NAME.items()
}
_PREVIEW: Final = "-preview"


def find_feature(name: str) -> TableFeature | None:
    """Return the feature with a name or alias (case-sensitive, as in Spark); None if unknown."""
    return _BY_ANY_NAME.get(name)


def requested_name(name: str) -> str | None:
    """Return the name of a requested feature, ignoring case; None if it is unknown.

    The name of a preview is returned unchanged, because other engines treat it as a different
    feature. For any other old name, the current name is returned.
    """
    feature = find_feature(name) or _BY_FOLDED_NAME.get(name.lower())
    if feature is None:
        return None
    spelled = [known for known in feature.aliases if known.lower() == name.lower()]
    return spelled[0] if spelled and spelled[0].endswith(_PREVIEW) else feature.name


def canonical_name(name: str) -> str:
    """Return the current name of a feature; return an unknown name unchanged."""
    feature = _BY_ANY_NAME.get(name)
    return name if feature is None else feature.name


# --- Features from protocol proposals (RFCs), which are off by default


PREVIEWS: Final = tuple(
    name for name, one in FEATURES.items() if Support.PREVIEW in {one.read, one.write}
)
"""The names of the preview features that can be enabled."""


_NEED_NOTHING: Final = {
    **dict.fromkeys(("branch", "branches"), "; branches need not be enabled"),
    **dict.fromkeys(
        ("keyIndex", "key_index"), "; alter.set_key_index(columns) makes one, it needs no enabling"
    ),
}
"""Other previews of deltalog, which are used without being enabled."""


def enable_preview(*features: str) -> None:
    """Enable features of protocol proposals, for this process and its child processes.

    Args:
        features: `geospatial`, `timestampNanos` or `intervalTypes`.

    Raises:
        InvalidInputError: the preview does not exist, or there is no name.
    """
    if not features:
        raise InvalidInputError(
            f"cannot enable previews without names: pass some of {', '.join(PREVIEWS)}"
        )
    for name in features:
        if name not in PREVIEWS:
            several = isinstance(name, list | tuple | set)
            raise InvalidInputError(
                f"cannot enable the preview {name!r}: expected one of {', '.join(PREVIEWS)}"
                + ("; pass several as arguments of their own" if several else "")
                + _NEED_NOTHING.get(str(name), "")
            )
    enable(*features)


@checked_types
def enable_nanosecond_timestamps() -> None:
    """Store timestamps in nanoseconds as such, in new columns, instead of cutting them off.

    This enables the preview `timestampNanos` for this process and its child processes. Then new
    tables, and columns that a write or merge adds, get the type `timestamp_nanos` or
    `timestamp_nanos_ntz` if the data has nanoseconds. Existing columns keep their types.
    """
    enable_preview("timestampNanos")
    keep_nanoseconds()


def is_supported(name: str, support: Support) -> bool:
    """Return whether a feature is supported in this process.

    Args:
        name: current name of the feature.
        support: the feature's entry in the registry.
    """
    if support is Support.PREVIEW:
        return name in enabled_previews()
    return support is Support.FULL


# --- Table features as deltalake's users name them: `TableFeatures.DeletionVectors`


class _NamesOfFeatures(EnumType):
    """The metaclass of `TableFeatures`: errors about unknown members suggest names."""

    if not TYPE_CHECKING:  # so that type checkers report unknown names

        def __getattr__(cls, name: str) -> NoReturn:
            """Raise an error that suggests a member."""
            raise UnknownNameError(
                f"{cls.__name__} has no member {name!r}"
                + (similar_to(name, cls.__members__) or f": it has {', '.join(cls.__members__)}")
            )


class TableFeatures(StrEnum, metaclass=_NamesOfFeatures):
    """Table features; each is a string, and plain strings are accepted instead."""

    AppendOnly = "appendOnly"
    Invariants = "invariants"
    CheckConstraints = "checkConstraints"
    ChangeDataFeed = "changeDataFeed"
    GeneratedColumns = "generatedColumns"
    ColumnMapping = "columnMapping"
    IdentityColumns = "identityColumns"
    DeletionVectors = "deletionVectors"
    TimestampWithoutTimezone = "timestampNtz"
    V2Checkpoint = "v2Checkpoint"
    TypeWidening = "typeWidening"
    VariantType = "variantType"
    VariantTypePreview = "variantType-preview"
    VariantShredding = "variantShredding"
    VacuumProtocolCheck = "vacuumProtocolCheck"
    DomainMetadata = "domainMetadata"
    RowTracking = "rowTracking"
    InCommitTimestamp = "inCommitTimestamp"
    Clustering = "clustering"
    AllowColumnDefaults = "allowColumnDefaults"
    CheckpointProtection = "checkpointProtection"
    MaterializePartitionColumns = "materializePartitionColumns"
    IcebergCompatV1 = "icebergCompatV1"
    IcebergCompatV2 = "icebergCompatV2"
    IcebergCompatV3 = "icebergCompatV3"
    TimestampNanos = "timestampNanos"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        near = similar_to(str(value), [one.value for one in cls])
        raise InvalidInputError(
            f"cannot find the table feature {value!r}"
            + (near or "; list(TableFeatures) has all, and add_feature also takes strings")
        )
