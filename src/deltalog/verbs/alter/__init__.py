"""Changes of a table's metadata, one verb each; every one stages into an open transaction.

Nothing here commits. A verb changes protocol and metadata through `table_change`, checks rows
that are there where a rule is new, and names itself as Delta Spark does in the history.

Protocol: Change Metadata, Protocol Evolution
"""

from __future__ import annotations

from deltalog.verbs.alter.clustering import clustering_domain, set_clustering_columns
from deltalog.verbs.alter.columns import (
    add_columns,
    drop_column_not_null,
    drop_columns,
    move_column,
    rename_column,
    set_column_comment,
    set_column_default,
    set_column_metadata,
    set_column_not_null,
    set_column_type,
)
from deltalog.verbs.alter.constraints import add_constraints, drop_constraint
from deltalog.verbs.alter.domains import remove_domain_metadata, set_domain_metadata
from deltalog.verbs.alter.identity import sync_identity
from deltalog.verbs.alter.properties import (
    set_table_description,
    set_table_name,
    set_table_properties,
    unset_table_properties,
)
from deltalog.verbs.alter.protocol import add_feature, upgrade_protocol
from deltalog.verbs.alter.row_tracking import stage_backfill, upgrade_row_ids

__all__ = [
    "add_columns",
    "add_constraints",
    "add_feature",
    "clustering_domain",
    "drop_column_not_null",
    "drop_columns",
    "drop_constraint",
    "move_column",
    "remove_domain_metadata",
    "rename_column",
    "set_clustering_columns",
    "set_column_comment",
    "set_column_default",
    "set_column_metadata",
    "set_column_not_null",
    "set_column_type",
    "set_domain_metadata",
    "set_table_description",
    "set_table_name",
    "set_table_properties",
    "stage_backfill",
    "sync_identity",
    "unset_table_properties",
    "upgrade_protocol",
    "upgrade_row_ids",
]
