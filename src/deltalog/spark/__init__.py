"""Delta tables on Spark, through PySpark's public API alone: no jar, no JVM code of our own.

Owns the translation between Spark's words and the core's, and how work is spread over a cluster.
Every decision about the protocol is made in the core rooms. The files, those that others stand on
first:

- `environment`: which PySpark is needed; `workers`: whether Python workers have this deltalog.
- `types`, `options`, `opening`, `settings`, `filters`, `splits`: schemas, options and filters in
  both tongues, how a table is opened, what the session says, and how files are shared out among
  tasks.
- reading: `batch_source`, `read_limits` and `stream_source` (rows that Python workers read for the
  format), `task_frame` (the same without it), `fitness`, `file_keys`, `file_values`, `hive_layout`,
  `positions`, `native` (a DataFrame over Spark's own Parquet reader), `conditions`, `reading`
  (`read`, `scan`).
- the state of tables with very many files: `state` (found and pruned by tasks), `state_frames` (as
  a DataFrame), `state_ranks` and `state_checkpoint` (`checkpoint`).
- writing: `write_options`, `parts` (what one task does), `write_plan`, `core_table` (what follows
  commits), `writing` (`write`), `writer` and `sink` (for the format); changing: `row_tasks` (what
  one task does), `dml`, `statements`, `merge_plan`, `merge`, `merging`, `results`, `names`,
  `builders`, `sweeping`, `rewriting`, `care`, `table` (`DeltaTable`); `exceptions`.
- shared tables: `sharing_options`, `sharing_batch`, `sharing_stream`, `sharing_source` (the format
  `deltalog_sharing`) and `sharing` (the names of the official client).
- `source` (the format `deltalog` for `spark.read`, `df.write` and streams) and `registration`
  (`register`).

Names are loaded when they are first used: every Python worker imports this package, and needs
little of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import deltalog.spark.session.environment  # noqa: F401  # first: an old PySpark lacks what others need

if TYPE_CHECKING:
    from deltalog.spark.engine.checkpoint import checkpoint
    from deltalog.spark.reading.scan import SparkScan, read, scan
    from deltalog.spark.registration import register
    from deltalog.spark.shared_tables import load_as_spark, load_table_changes_as_spark
    from deltalog.spark.table import DeltaTable, IdentityGenerator
    from deltalog.spark.writing.frame import write

_ORIGINS = {
    "DeltaTable": "deltalog.spark.table",
    "IdentityGenerator": "deltalog.spark.table",
    "SparkScan": "deltalog.spark.reading.scan",
    "checkpoint": "deltalog.spark.engine.checkpoint",
    "load_as_spark": "deltalog.spark.shared_tables",
    "load_table_changes_as_spark": "deltalog.spark.shared_tables",
    "read": "deltalog.spark.reading.scan",
    "register": "deltalog.spark.registration",
    "scan": "deltalog.spark.reading.scan",
    "write": "deltalog.spark.writing.frame",
}

__all__ = [
    "DeltaTable",
    "IdentityGenerator",
    "SparkScan",
    "checkpoint",
    "load_as_spark",
    "load_table_changes_as_spark",
    "read",
    "register",
    "scan",
    "write",
]


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives (PEP 562)."""
    origin = _ORIGINS.get(name)
    if origin is None:
        raise AttributeError(f"module 'deltalog.spark' has no attribute {name!r}")
    value = getattr(import_module(origin), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return __all__
