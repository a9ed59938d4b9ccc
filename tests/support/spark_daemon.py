"""Spark's process that forks Python workers, with what they need imported before they are forked.

A worker ends with a task that fails, and half of what is tested are statements that are refused:
without this every other task would import deltalog anew. `make test-long` takes Spark's own.
"""

from __future__ import annotations

import gc
import importlib

from pyspark.daemon import manager

_MODULES = (
    "deltalog.spark.engine.row_tasks",
    "deltalog.spark.engine.rows",
    "deltalog.spark.reading.native",
    "deltalog.spark.session.tasks",
    "deltalog.data.write.files",
    "pyarrow.parquet",
    "pyspark.sql.worker",
    "pyspark.worker",
)

if __name__ == "__main__":
    for module in _MODULES:
        importlib.import_module(module)
    gc.freeze()  # a worker collects garbage after every task: not what it has only imported
    manager()
