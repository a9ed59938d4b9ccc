"""Scans: from a snapshot to rows, by planning, pruning and reading.

Owns which files a read needs, which of their rows are live, and how a physical batch becomes a
logical batch. Every reader of rows (pandas, Polars, DuckDB, Spark, Sharing) uses this package.
`scan.dataset` is not imported here: importing `pyarrow.dataset` takes half a second.
"""

from __future__ import annotations

from deltalog.data.scan.changes import Changes, open_changes
from deltalog.data.scan.plan import Scan, plan_scan
from deltalog.data.scan.prune import Pruned, prune
from deltalog.data.scan.reader import ScanTask, read_task, read_tasks
from deltalog.data.scan.task import ReadSpec

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
