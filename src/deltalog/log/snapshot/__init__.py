"""Snapshots: one version of a table, read on demand.

- `snapshot`: the public class, and how to load it.
- `locations`: errors for a location without a table, or inside of another one.
- `open_log`: open the log, and fall back to other files if some are damaged.
- `state`: the reconciled actions of a version.
- `splits`: split a version into pieces that can be read independently.
- `totals`: check a version against its checksum.
"""

from __future__ import annotations

from deltalog.log.snapshot.snapshot import (
    Snapshot,
    checked_in_place,
    find_version,
    load_if_any,
    load_snapshot,
    new_table_snapshot,
)

__all__ = [
    "Snapshot",
    "checked_in_place",
    "find_version",
    "load_if_any",
    "load_snapshot",
    "new_table_snapshot",
]
