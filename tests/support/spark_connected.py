"""A client of Spark Connect whose server has a Python without deltalog: a process of its own.

Its arguments are the server's Python, and a directory with what that Python can import. It uses a
table in several ways, and prints for each what came of it, as a line of JSON.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.outcomes import print_outcomes
from tests.support.reference_driver import QUICK


def ways(spark: Any, table: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Reads by Spark alone, and uses of the format, which the server plans."""
    import pyarrow as pa

    import deltalog.spark
    from deltalog import write_deltalake
    from deltalog.spark.session.workers import CHECK_WORKERS

    write_deltalake(table, pa.table({"id": [1, 2]}))

    def sink() -> Any:
        rows = spark.readStream.format("rate").load().selectExpr("value AS id")
        written = rows.writeStream.format("deltalog").option("checkpointLocation", f"{table}/_c")
        return written.start(table)

    def stream() -> Any:
        return spark.readStream.format("deltalog").load(table)

    yield "read", lambda: deltalog.spark.read(spark, table).count()
    yield "unregistered", lambda: spark.read.format("deltalog").load(table).collect()
    deltalog.spark.register(spark)
    by_source = spark.read.format("deltalog").option("maxPartitionBytes", 1 << 20)
    yield "registered", lambda: spark.read.format("deltalog").load(table).count()
    yield "by workers", lambda: by_source.load(table)
    yield "stream", stream
    yield "sink", sink
    spark.conf.set(CHECK_WORKERS, "false")
    yield "unchecked stream", stream


def main(python: str, path: str) -> None:
    """Start the server and try."""
    warnings.simplefilter("ignore")
    os.environ |= {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONPATH": path,
        "SPARK_TESTING": "1",  # a port of its own for every server
    }
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        spark = (
            SparkSession.builder.remote("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.log.level", "OFF")
            .config("spark.local.dir", f"{scratch}/local")
            .config(map={**QUICK})
            .getOrCreate()
        )
        print_outcomes(ways(spark, str(Path(scratch, "table"))))
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
