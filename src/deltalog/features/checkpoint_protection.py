"""Checkpoint protection: history that old readers can skip, since checkpoints stand before it.

A reader and writer feature leaves a table in one go where every version that needs it lies behind
checkpoints that do not. Those checkpoints must then stay.

Protocol: Checkpoint Protection
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from deltalog.actions.properties import TableProperties

CHECKPOINT_PROTECTION: Final = "checkpointProtection"
PROTECTED_BEFORE_PROPERTY: Final = "delta.requireCheckpointProtectionBeforeVersion"


def protected_before_version(features: Collection[str], properties: TableProperties) -> int:
    """The version before which checkpoints and commits are protected; 0 if none is.

    A writer may remove protected history only as a whole, or where it supports every protocol in
    it; and it makes no checkpoint of a protected version whose protocol it does not support.

    Args:
        features: current names of the features that the protocol supports.
        properties: of the table.
    """
    if CHECKPOINT_PROTECTION not in features:
        return 0
    return properties.require_checkpoint_protection_before_version
