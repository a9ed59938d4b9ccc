"""Log maintenance: checkpoints, checksums, log compaction, clean-up.

It runs after commits and on request, and never changes the state of the table.

Protocol: Checkpoints, Version Checksum File, Log Compaction Files, Metadata Cleanup
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import names_on_demand

if TYPE_CHECKING:
    from deltalog.transaction.maintenance.checkpoint import CheckpointInfo, create_checkpoint
    from deltalog.transaction.maintenance.checksum import (
        count_checksum,
        read_checksum,
        write_checksum,
    )
    from deltalog.transaction.maintenance.cleanup import (
        cleanup_metadata,
        cleanup_once_a_day,
        compact_logs,
    )

# Most commits only write a checksum.
_ORIGINS = {
    "CheckpointInfo": "deltalog.transaction.maintenance.checkpoint",
    "cleanup_metadata": "deltalog.transaction.maintenance.cleanup",
    "cleanup_once_a_day": "deltalog.transaction.maintenance.cleanup",
    "compact_logs": "deltalog.transaction.maintenance.cleanup",
    "count_checksum": "deltalog.transaction.maintenance.checksum",
    "create_checkpoint": "deltalog.transaction.maintenance.checkpoint",
    "read_checksum": "deltalog.transaction.maintenance.checksum",
    "write_checksum": "deltalog.transaction.maintenance.checksum",
}

__all__ = [
    "CheckpointInfo",
    "cleanup_metadata",
    "cleanup_once_a_day",
    "compact_logs",
    "count_checksum",
    "create_checkpoint",
    "read_checksum",
    "write_checksum",
]

if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
