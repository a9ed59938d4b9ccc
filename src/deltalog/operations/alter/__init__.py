"""Operations that change a table's metadata.

An operation changes protocol and metadata through `table_change`, and checks the existing rows
against a new constraint. `drop_feature` needs several commits: it is a function that runs several
operations.

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
