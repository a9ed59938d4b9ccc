"""Log maintenance: checkpoints, checksums, log compaction, clean-up.

Runs after commits and on request; never changes the state of the table.

Protocol: Checkpoints, Version Checksum File, Log Compaction Files, Metadata Cleanup
"""

from __future__ import annotations

from deltalog.upkeep.checkpoint import CheckpointInfo, create_checkpoint
from deltalog.upkeep.checksum import count_checksum, read_checksum, write_checksum
from deltalog.upkeep.cleanup import cleanup_metadata, cleanup_once_a_day
from deltalog.upkeep.log_compaction import compact_logs

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
