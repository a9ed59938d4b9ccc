"""Table features as deltalake's users name them: `TableFeatures.DeletionVectors`.

Protocol: Valid Feature Names in Table Features
"""

from __future__ import annotations

from enum import StrEnum


class TableFeatures(StrEnum):
    """Table features; each is the text of its name, which is taken everywhere as well."""

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
