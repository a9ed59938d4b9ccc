"""Snapshots: one version of a table, read on demand."""

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
