"""Scans: from a snapshot to rows, by planning, pruning and reading.

Owns which files a read needs, which of their rows are live, and how a physical batch becomes a
logical one. Every reader of rows (pandas, Polars, DuckDB, Spark, Sharing) goes through this room.
`scan.dataset` is not imported here: importing `pyarrow.dataset` takes half a second.
"""

from __future__ import annotations

from deltalog.scan.changes import Changes, open_changes
from deltalog.scan.plan import Scan, plan_scan
from deltalog.scan.prune import Pruned, prune
from deltalog.scan.reader import read_task, read_tasks
from deltalog.scan.task import ReadSpec, ScanTask

__all__ = [
    "Changes",
    "Pruned",
    "ReadSpec",
    "Scan",
    "ScanTask",
    "open_changes",
    "plan_scan",
    "prune",
    "read_task",
    "read_tasks",
]
