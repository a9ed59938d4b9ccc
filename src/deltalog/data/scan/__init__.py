"""Scans: reading the rows of a snapshot, by planning, pruning and decoding.

Everything that reads rows (pandas, Polars, DuckDB, Spark, Sharing) uses this package.

- `plan`: a lazy read of one version, and its tasks. `task`: the description of one file to read.
- `prune`: skips files by the log. `row_groups`: skips row groups and pages by the Parquet footer.
- `reader`: opens and reads files, partly in advance. `pieces`: masks and filters rows of an open
  file.
- `transform`: converts physical columns to logical columns, and loads deletion vectors.
- `native`: which files an engine's own Parquet reader reads exactly. `polars_files`: such files as
  a scan of Polars.
- `changes`: the change data feed. `top_rows`: the first rows of a sort order.
- `rows`: converts results to tables and dataframes.
- `dataset`, `polars`: one version as a pyarrow dataset, and as a lazy frame of Polars.
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
