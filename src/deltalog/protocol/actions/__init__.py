"""The actions of the transaction log as Python, JSON and Arrow values, and the table properties.

- `model`: the actions as frozen dataclasses.
- `codec`: conversion of actions from and to JSON.
- `arrow`: file actions as Arrow columns.
- `properties`: the table properties.

Core: no I/O.

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
