"""Verbs that change a table's metadata.

A verb changes protocol and metadata through `table_change`, and checks the existing rows against a
new constraint. `drop_feature` takes several commits: it is a function that runs several verbs.

Protocol: Change Metadata, Protocol Evolution
"""

from __future__ import annotations

from deltalog.verbs.alter.clustering import SetClusteringColumns
from deltalog.verbs.alter.columns import (
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
)
from deltalog.verbs.alter.constraints import AddConstraints, DropConstraint
from deltalog.verbs.alter.domains import RemoveDomainMetadata, SetDomainMetadata
from deltalog.verbs.alter.identity import SyncIdentity
from deltalog.verbs.alter.properties import (
    SetTableDescription,
    SetTableName,
    SetTableProperties,
    UnsetTableProperties,
)
from deltalog.verbs.alter.protocol import AddFeature, UpgradeProtocol
from deltalog.verbs.alter.row_tracking import BackfillRowIds, UpgradeRowIds

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
