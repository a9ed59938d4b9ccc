"""Operations that change a table's metadata.

- `columns`: add, rename, move, drop and change columns; the base class `Alteration`.
- `properties`: properties, name and description; constraints, domains, features, clustering
  columns, row ids of existing rows.
- `iceberg`: UniForm. `drop_feature`: needs several commits, so it is a function that runs several
  operations.

An operation changes protocol and metadata through `protocol.table_change`, and checks the existing
rows against a new constraint.

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
    "SetTableDescription",
    "SetTableName",
    "SetTableProperties",
    "SyncIdentity",
    "UnsetTableProperties",
    "UpgradeProtocol",
    "UpgradeRowIds",
]
