"""Log maintenance: checkpoints, checksums, log compaction, clean-up.

It runs after commits and on request, and never changes the state of the table.

Protocol: Checkpoints, Version Checksum File, Log Compaction Files, Metadata Cleanup
"""

__all__: tuple[str, ...] = ()
