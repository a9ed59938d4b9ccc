"""Snapshots: one version of a table, read on demand.

- `snapshot`: the public class, and how to load it.
- `open_log`: open the log, and fall back to other files if some are damaged.
- `state`: the reconciled actions of a version.
- `splits`: split a version into pieces that can be read independently.
- `totals`: check a version against its checksum.
"""

from __future__ import annotations

from deltalog.log.snapshot.snapshot import (
    Snapshot,
    check_new_location,
    checked_in_place,
    find_version,
    load_if_any,
    load_snapshot,
    new_table_snapshot,
)

__all__ = [
    "Snapshot",
    "check_new_location",
    "checked_in_place",
    "find_version",
    "load_if_any",
    "load_snapshot",
    "new_table_snapshot",
]
