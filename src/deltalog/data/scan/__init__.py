"""Scans: from a snapshot to rows, by planning, pruning and reading.

Every reader of rows (pandas, Polars, DuckDB, Spark, Sharing) uses this package.

- `plan`: a lazy read of one version, and its tasks; `task`: one file to read, as a value.
- `prune`: files that may match, by the log; `row_groups`: row groups and pages that may match.
- `reader`: open files and read ahead; `pieces`: masked and filtered rows of an open file.
- `transform`: physical to logical columns; loads deletion vectors.
- `changes`: the change data feed; `top_rows`: the first rows of an order.
- `rows`: conversions of results to tables and data frames.
- `dataset`, `polars`: a version for pyarrow datasets and for Polars.
- `file_reports`: paths, partitions and statistics of live files.

`dataset` is not imported here, because importing `pyarrow.dataset` takes half a second.
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
