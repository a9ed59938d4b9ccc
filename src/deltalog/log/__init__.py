"""The files that make a version: listing, segment, replay, checkpoints, snapshot.

Other packages import from the modules: each owns one kind of file, or one step of reading the log.

Protocol: Delta Log Entries, Last Checkpoint File, Log Compaction Files, Version Checksum File
"""

from __future__ import annotations

__all__: list[str] = []
