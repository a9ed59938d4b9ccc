"""Operations that change a table's metadata.

- `columns`: add, rename, move, drop and change columns; the base class `Alteration`.
- `properties`: table properties, name and description; CHECK constraints, metadata domains, table
  features, clustering columns, and row ids for existing rows.
- `iceberg`: UniForm.
- `drop_feature`: a function that runs several operations, because dropping a feature needs several
  commits.

The operations compute the new protocol and metadata with `protocol.table_change`. Before they add a
constraint, they check that the existing rows satisfy it.

Protocol: Change Metadata, Protocol Evolution
"""

from __future__ import annotations

from deltalog.operations.alter.columns import (
    AddColumns,
    DropColumnNotNull,
    DropColumns,
    MoveColumn,
    RenameColumn,
    SetColumnCollations,
    SetColumnComment,
    SetColumnDefault,
    SetColumnMetadata,
    SetColumnNotNull,
    SetColumnType,
    SyncIdentity,
)
from deltalog.operations.alter.properties import (
    BATCH_FILES,
    AddConstraints,
    AddFeature,
    BackfillRowIds,
    DropConstraint,
    RemoveDomainMetadata,
    SetClusteringColumns,
    SetDomainMetadata,
    SetKeyIndex,
    SetTableDescription,
    SetTableName,
    SetTableProperties,
    UnsetTableProperties,
    UpgradeProtocol,
    UpgradeRowIds,
)

__all__ = [
    "BATCH_FILES",
    "AddColumns",
    "AddConstraints",
    "AddFeature",
    "BackfillRowIds",
    "DropColumnNotNull",
    "DropColumns",
    "DropConstraint",
    "MoveColumn",
    "RemoveDomainMetadata",
    "RenameColumn",
    "SetClusteringColumns",
    "SetColumnCollations",
    "SetColumnComment",
    "SetColumnDefault",
    "SetColumnMetadata",
    "SetColumnNotNull",
    "SetColumnType",
    "SetDomainMetadata",
    "SetKeyIndex",
    "SetTableDescription",
    "SetTableName",
    "SetTableProperties",
    "SyncIdentity",
    "UnsetTableProperties",
    "UpgradeProtocol",
    "UpgradeRowIds",
]
