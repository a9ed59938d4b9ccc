"""Log maintenance: checkpoints, checksums, log compaction, clean-up.

Runs after commits and on request; never changes the state of the table.

Protocol: Checkpoints, Version Checksum File, Log Compaction Files, Metadata Cleanup
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalog.upkeep.checkpoint import CheckpointInfo, create_checkpoint
    from deltalog.upkeep.checksum import count_checksum, read_checksum, write_checksum
    from deltalog.upkeep.cleanup import cleanup_metadata, cleanup_once_a_day
    from deltalog.upkeep.log_compaction import compact_logs

# Most commits write a checksum, and nothing else.
_ORIGINS = {
    "CheckpointInfo": "checkpoint",
    "cleanup_metadata": "cleanup",
    "cleanup_once_a_day": "cleanup",
    "compact_logs": "log_compaction",
    "count_checksum": "checksum",
    "create_checkpoint": "checkpoint",
    "read_checksum": "checksum",
    "write_checksum": "checksum",
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

    def __getattr__(name: str) -> Any:
        """Load a name from the file that has it (PEP 562)."""
        origin = _ORIGINS.get(name)
        if origin is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"deltalog.upkeep.{origin}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
