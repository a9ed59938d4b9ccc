"""THE table of table features: what each is, when it is on, and who can honour it.

An entry is data. Checks, protocol changes and the documentation's feature matrix read it; nothing
else lists features. A name that is not here is unknown: among the reader features it stops reading,
among the writer features it stops writing only.

Protocol: Valid Feature Names in Table Features, Active Features
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from deltalog.features.schema_traits import (
    has_column_defaults,
    has_generated_columns,
    has_identity_columns,
    has_invariants,
    has_types_of,
    has_variant,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalog.actions.properties import TableProperties
    from deltalog.schema.types import StructType

    Activation = Callable[[TableProperties, StructType], bool]


class Kind(StrEnum):
    """Who must understand a feature."""

    READER_WRITER = "reader and writer"
    WRITER = "writer"


class Support(StrEnum):
    """What deltalog does about a feature."""

    FULL = "full"
    PLANNED = "planned"  # refused until it is there
    NONE = "none"


class Engine(StrEnum):
    """Other engines, at the versions that were looked at."""

    SPARK = "Delta Spark 4.4"
    KERNEL = "delta-kernel-rs 0.27"
    DELTALAKE = "deltalake 1.6"


_ALL: Final = tuple(Engine)
_SPARK: Final = (Engine.SPARK,)
_SPARK_KERNEL: Final = (Engine.SPARK, Engine.KERNEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFeature:
    """One table feature.

    Args:
        name: as it is written today.
        kind: whether readers must understand it too.
        doc: one line for the reference.
        protocol: section of PROTOCOL.md, or where else it is described.
        aliases: other names of the same thing: drafts, previews. They are read; they are written
            only where the table's protocol has them.
        legacy: (reader, writer) versions from which it is implied, or None.
        requires: features that must be there as well.
        enabled_by: whether properties and schema put it to use; None if being listed is enough.
        read: what deltalog does for readers.
        write: what deltalog does for writers.
        read_by: engines that read such tables.
        written_by: engines that write such tables.
    """

    name: str
    kind: Kind
    doc: str
    protocol: str
    aliases: tuple[str, ...] = ()
    legacy: tuple[int, int] | None = None
    requires: tuple[str, ...] = ()
    enabled_by: Activation | None = None
    read: Support = Support.FULL
    write: Support = Support.FULL
    read_by: tuple[Engine, ...] = _ALL
    written_by: tuple[Engine, ...] = _SPARK

    @property
    def min_versions(self) -> tuple[int, int]:
        """The lowest (reader, writer) versions that can hold the feature."""
        if self.legacy is not None:
            return self.legacy
        return (3, 7) if self.kind is Kind.READER_WRITER else (1, 7)


_TABLE: Final = (
    # Those that the versions before table features imply.
    TableFeature(
        name="appendOnly",
        kind=Kind.WRITER,
        doc="Rows may be added, never changed or deleted.",
        protocol="Append-only Tables",
        legacy=(1, 2),
        enabled_by=lambda properties, _: properties.append_only,
        written_by=_ALL,
    ),
    TableFeature(
        name="invariants",
        kind=Kind.WRITER,
        doc="Columns may carry a condition that every row meets.",
        protocol="Column Invariants",
        aliases=("columnInvariants",),
        legacy=(1, 2),
        enabled_by=lambda _, schema: has_invariants(schema),
        written_by=(Engine.SPARK, Engine.DELTALAKE),
    ),
    TableFeature(
        name="checkConstraints",
        kind=Kind.WRITER,
        doc="Named conditions that every row meets.",
        protocol="CHECK Constraints",
        legacy=(1, 3),
        enabled_by=lambda properties, _: bool(properties.constraints),
        written_by=(Engine.SPARK, Engine.DELTALAKE),
    ),
    TableFeature(
        name="changeDataFeed",
        kind=Kind.WRITER,
        doc="Row-level changes can be read version by version.",
        protocol="Add CDC File",
        legacy=(1, 4),
        enabled_by=lambda properties, _: properties.enable_change_data_feed,
        written_by=_ALL,
    ),
    TableFeature(
        name="generatedColumns",
        kind=Kind.WRITER,
        doc="Columns computed from others.",
        protocol="Generated Columns",
        legacy=(1, 4),
        enabled_by=lambda _, schema: has_generated_columns(schema),
        written_by=(Engine.SPARK, Engine.DELTALAKE),
    ),
    TableFeature(
        name="columnMapping",
        kind=Kind.READER_WRITER,
        doc="Columns can be renamed and dropped without rewriting files.",
        protocol="Column Mapping",
        legacy=(2, 5),
        enabled_by=lambda properties, _: properties.column_mapping_mode != "none",
        written_by=_ALL,
    ),
    TableFeature(
        name="identityColumns",
        kind=Kind.WRITER,
        doc="Columns that number new rows.",
        protocol="Identity Columns",
        legacy=(1, 6),
        enabled_by=lambda _, schema: has_identity_columns(schema),
    ),
    # Reader and writer features.
    TableFeature(
        name="deletionVectors",
        kind=Kind.READER_WRITER,
        doc="Rows are deleted by a bitmap beside the file.",
        protocol="Deletion Vectors",
        enabled_by=lambda properties, _: properties.enable_deletion_vectors,
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="timestampNtz",
        kind=Kind.READER_WRITER,
        doc="Timestamps without a time zone.",
        protocol="Timestamp without timezone (TimestampNtz)",
        aliases=("timestampNTZ",),
        enabled_by=lambda _, schema: has_types_of(schema, "timestampNtz"),
        written_by=_ALL,
    ),
    TableFeature(
        name="v2Checkpoint",
        kind=Kind.READER_WRITER,
        doc="Checkpoints with sidecar files and names of their own.",
        protocol="V2 Checkpoint Table Feature",
        enabled_by=lambda properties, _: properties.checkpoint_policy == "v2",
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="typeWidening",
        kind=Kind.READER_WRITER,
        doc="Column types can be changed to wider ones without rewriting files.",
        protocol="Type Widening",
        aliases=("typeWidening-preview",),
        enabled_by=lambda properties, _: properties.enable_type_widening,
        read_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="variantType",
        kind=Kind.READER_WRITER,
        doc="Semi-structured values in a binary form.",
        protocol="Variant Data Type",
        aliases=("variantType-preview",),
        enabled_by=lambda _, schema: has_variant(schema),
        written_by=_ALL,
    ),
    TableFeature(
        name="variantShredding",
        kind=Kind.READER_WRITER,
        doc="Parts of variants are stored as typed columns.",
        protocol="Variant Shredding",
        aliases=("variantShredding-preview",),
        requires=("variantType",),
        enabled_by=lambda properties, _: properties.enable_variant_shredding,
        read_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="vacuumProtocolCheck",
        kind=Kind.READER_WRITER,
        doc="VACUUM checks what writers must understand before it deletes.",
        protocol="VACUUM Protocol Check",
        read_by=_SPARK_KERNEL,
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="catalogManaged",
        kind=Kind.READER_WRITER,
        doc="A catalog decides which commits count.",
        protocol="Catalog-managed tables",
        aliases=("catalogManaged-preview", "catalogOwned", "catalogOwned-preview"),
        requires=("inCommitTimestamp",),
        read_by=_SPARK_KERNEL,
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="geospatial",
        kind=Kind.READER_WRITER,
        doc="Geometry and geography types.",
        protocol="RFC geospatial",
        aliases=("geospatial-dev", "geospatial-preview"),
        read=Support.NONE,
        write=Support.NONE,
        read_by=_SPARK,
    ),
    TableFeature(
        name="timestampNanos",
        kind=Kind.READER_WRITER,
        doc="Timestamps in nanoseconds.",
        protocol="RFC timestamp nanos",
        aliases=("timestampNanos-preview",),
        read=Support.NONE,
        write=Support.NONE,
        read_by=(Engine.DELTALAKE,),
        written_by=(),
    ),
    TableFeature(
        name="adaptiveMetadata-preview",
        kind=Kind.READER_WRITER,
        doc="Another form of the log, in preview.",
        protocol="RFC adaptive metadata",
        read=Support.NONE,
        write=Support.NONE,
        read_by=_SPARK,
    ),
    TableFeature(
        name="redirectReaderWriter-preview",
        kind=Kind.READER_WRITER,
        doc="Reads and writes go to another table.",
        protocol="Delta Spark",
        read=Support.NONE,
        write=Support.NONE,
        read_by=_SPARK,
    ),
    # Writer features.
    TableFeature(
        name="domainMetadata",
        kind=Kind.WRITER,
        doc="Named configurations beside the schema.",
        protocol="Domain Metadata",
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="rowTracking",
        kind=Kind.WRITER,
        doc="Rows have ids and commit versions that last.",
        protocol="Row Tracking",
        requires=("domainMetadata",),
        enabled_by=lambda properties, _: properties.enable_row_tracking,
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="rowIds",
        kind=Kind.WRITER,
        doc="The draft's form of row tracking.",
        protocol="Row IDs (draft)",
        aliases=("delta.rowIds",),
        enabled_by=lambda properties, _: properties.enable_row_ids,
        written_by=(),
    ),
    TableFeature(
        name="inCommitTimestamp",
        kind=Kind.WRITER,
        doc="Commits carry their own time.",
        protocol="In-Commit Timestamps",
        aliases=("inCommitTimestamp-preview",),
        enabled_by=lambda properties, _: properties.enable_in_commit_timestamps,
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="clustering",
        kind=Kind.WRITER,
        doc="Rows are kept close by chosen columns.",
        protocol="Clustered Table",
        requires=("domainMetadata",),
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="allowColumnDefaults",
        kind=Kind.WRITER,
        doc="Columns may have default values.",
        protocol="Default Columns",
        enabled_by=lambda _, schema: has_column_defaults(schema),
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="checkpointProtection",
        kind=Kind.WRITER,
        doc="Old checkpoints outlive the features they need.",
        protocol="Checkpoint Protection",
        enabled_by=lambda properties, _: (
            properties.require_checkpoint_protection_before_version > 0
        ),
    ),
    TableFeature(
        name="materializePartitionColumns",
        kind=Kind.WRITER,
        doc="Data files hold the partition columns too.",
        protocol="RFC materialize partition columns",
        enabled_by=lambda properties, _: properties.enable_materialize_partition_columns,
    ),
    TableFeature(
        name="icebergCompatV1",
        kind=Kind.WRITER,
        doc="Files and metadata can be converted to Iceberg.",
        protocol="Iceberg Compatibility V1",
        requires=("columnMapping",),
        enabled_by=lambda properties, _: properties.enable_iceberg_compat_v1,
    ),
    TableFeature(
        name="icebergCompatV2",
        kind=Kind.WRITER,
        doc="As V1, with lists and maps, without deletion vectors.",
        protocol="Iceberg Compatibility V2",
        requires=("columnMapping",),
        enabled_by=lambda properties, _: properties.enable_iceberg_compat_v2,
    ),
    TableFeature(
        name="icebergCompatV3",
        kind=Kind.WRITER,
        doc="As V2, with row tracking and deletion vectors.",
        protocol="Iceberg Compatibility V3",
        requires=("columnMapping", "rowTracking"),
        enabled_by=lambda properties, _: properties.enable_iceberg_compat_v3,
        write=Support.NONE,
        written_by=_SPARK_KERNEL,
    ),
    TableFeature(
        name="icebergWriterCompatV1",
        kind=Kind.WRITER,
        doc="Writers keep to what Iceberg V2 tables can follow.",
        protocol="RFC Iceberg writer compatibility",
        requires=("icebergCompatV2",),
        write=Support.NONE,
        enabled_by=lambda properties, _: properties.enable_iceberg_writer_compat_v1,
    ),
    TableFeature(
        name="icebergWriterCompatV3",
        kind=Kind.WRITER,
        doc="Writers keep to what Iceberg V3 tables can follow.",
        protocol="RFC Iceberg writer compatibility",
        requires=("icebergCompatV3",),
        write=Support.NONE,
        enabled_by=lambda properties, _: properties.enable_iceberg_writer_compat_v3,
    ),
    TableFeature(
        name="collations",
        kind=Kind.WRITER,
        doc="Strings compare by the rules of a language.",
        protocol="RFC collated string type",
        aliases=("collations-preview",),
        requires=("domainMetadata",),
        write=Support.NONE,
    ),
    TableFeature(
        name="coordinatedCommits-preview",
        kind=Kind.WRITER,
        doc="A coordinator takes the commits; an early form of catalog-managed tables.",
        protocol="Delta Spark",
        requires=("inCommitTimestamp", "vacuumProtocolCheck"),
        write=Support.NONE,
    ),
    TableFeature(
        name="redirectWriterOnly-preview",
        kind=Kind.WRITER,
        doc="Writes go to another table.",
        protocol="Delta Spark",
        write=Support.NONE,
    ),
    TableFeature(
        name="columnMappingUsageTracking",
        kind=Kind.WRITER,
        doc="Remembers whether columns were ever renamed or dropped.",
        protocol="RFC column mapping usage tracking",
        requires=("columnMapping",),
        write=Support.NONE,
    ),
    TableFeature(
        name="liquid",
        kind=Kind.WRITER,
        doc="Databricks' early form of clustering.",
        protocol="Databricks",
        write=Support.NONE,
        written_by=(),
    ),
)

FEATURES: Final[Mapping[str, TableFeature]] = {feature.name: feature for feature in _TABLE}
"""Every known feature by its current name."""

_BY_ANY_NAME: Final[Mapping[str, TableFeature]] = {
    name: feature for feature in _TABLE for name in (feature.name, *feature.aliases)
}


def find_feature(name: str) -> TableFeature | None:
    """The feature of a name or alias, or None if nobody knows it; case matters."""
    return _BY_ANY_NAME.get(name)


def canonical_name(name: str) -> str:
    """The current name of a feature; an unknown name is its own."""
    feature = _BY_ANY_NAME.get(name)
    return name if feature is None else feature.name
