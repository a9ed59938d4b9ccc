"""Delta tables on Spark through PySpark's public API, without a jar.

The package translates Spark's API to the core's API, and distributes work over a cluster. The core
packages make every decision about the protocol. The subpackages, from the lowest layer to the
highest:

- `session`: settings, table names, types, workers, and jobs whose tasks report to the driver.
- `reading`: dataframes that use Spark's own Parquet reader or Python workers; the format's batch
  reader; pruning in tasks for tables with very many files.
- `engine`: `SparkEngine`, which runs the core's operations as Spark tasks.
- `writing`: the function `write`, and the format's batch writer.
- `streaming`: the format's streaming reader and writer.
- `sharing`: shared tables.
- `spellings`: replacements of PySpark's own methods in registered sessions.

The modules:

- `table`, `create`, `merge`, `results`: the class `DeltaTable` of `delta.tables`, and its builders.
- `source`, `registration`: the formats, and their registration in a session.
- `shared_tables`: the functions of the official sharing client, with the same names.
- `statements`, `cluster_session`: SQL statements that run on the cluster.

Names are imported on first use, because every Python worker imports this package but uses few of
its modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import deltalog.spark.session.environment  # noqa: F401  # first, to refuse a PySpark that is too old
from deltalog._util.lazy_names import explain_call, names_on_demand

if TYPE_CHECKING:
    from deltalog.spark.create import IdentityGenerator
    from deltalog.spark.engine.checkpoint import checkpoint
    from deltalog.spark.reading.scan import SparkScan, read, scan
    from deltalog.spark.registration import register, unregister
    from deltalog.spark.shared_tables import load_as_spark, load_table_changes_as_spark
    from deltalog.spark.statements import sql
    from deltalog.spark.table import DeltaTable
    from deltalog.spark.writing.frame import write

_ORIGINS = {
    "deltalog.spark.create": ["IdentityGenerator"],
    "deltalog.spark.engine.checkpoint": ["checkpoint"],
    "deltalog.spark.reading.scan": ["SparkScan", "read", "scan"],
    "deltalog.spark.registration": ["register", "unregister"],
    "deltalog.spark.shared_tables": ["load_as_spark", "load_table_changes_as_spark"],
    "deltalog.spark.statements": ["sql"],
    "deltalog.spark.table": ["DeltaTable"],
    "deltalog.spark.writing.frame": ["write"],
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
    "sql",
    "unregister",
    "write",
]

_MEANT = {
    **dict.fromkeys(("read_delta", "read_table", "load"), "read(spark, location)"),
    **dict.fromkeys(("write_deltalake", "write_delta", "save"), "write(frame, location)"),
    **dict.fromkeys(
        ("tables", "configure_spark_with_delta_pip", "install", "enable"),
        "register(spark) and deltalog.spark.DeltaTable; deltalog needs no jar",
    ),
}
"""Names of other libraries, and what to use instead."""

# Hide `__getattr__` from type checkers. Otherwise, they would accept any name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS, meant=_MEANT)
    explain_call(__name__, "deltalog.spark.read(spark, location)")
