"""What keeps the log short and quick to read: checkpoints, checksums, compaction, cleanup.

Called after commits and on request.

Protocol: Checkpoints, Version Checksum File, Log Compaction Files, Metadata Cleanup
"""

from __future__ import annotations

from deltalog.upkeep.checkpoint import create_checkpoint

__all__ = ["create_checkpoint"]
