"""The actions of the transaction log: values, their JSON and Arrow forms, table properties.

Core: no I/O. Modules import only those before them: property_values, properties, settable, model,
descriptors, commit_rules, codec, arrow, arrow_lines.

Protocol: Actions, Table Properties
"""

from __future__ import annotations

from deltalog.protocol.actions.codec import (
    action_to_json,
    actions_from_json,
    encode_actions,
)
from deltalog.protocol.actions.model import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
)

__all__ = [
    "Action",
    "AddCDCFile",
    "AddFile",
    "CommitInfo",
    "DeletionVectorDescriptor",
    "DomainMetadata",
    "Metadata",
    "Protocol",
    "SetTransaction",
    "action_to_json",
    "actions_from_json",
    "encode_actions",
]
