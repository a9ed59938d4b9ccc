"""A cluster whose executors have the Python of a shipped environment, which the driver lacks.

Run as a process of its own, in an empty directory, with the archive of the environment as its
argument. It uses tables in each way, and prints what came of it, as a line of JSON.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.outcomes import print_outcomes


def ways(spark: Any, table: str, archive: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What executors run for deltalog itself, and what Spark starts for a format."""
    import pyarrow as pa

    import deltalog.spark
    from deltalog import write_deltalake

    # Spark's own reader cannot read a column of the type void.
    write_deltalake(table, pa.table({"id": [1, 2], "none": pa.nulls(2)}))
    view = f"CREATE TEMPORARY VIEW shown USING deltalog OPTIONS (path '{table}')"
    query = f"SELECT count(*) FROM delta.`{table}`"  # noqa: S608  # a path of ours

    def stream() -> Any:
        return spark.readStream.format("deltalog").load(table)

    def written() -> Any:
        rows = spark.readStream.format("rate").load().selectExpr("value AS id")
        written = rows.writeStream.format("deltalog").option("checkpointLocation", f"{table}/_c")
        return written.start(table)

    yield "read", lambda: deltalog.spark.read(spark, table).count()
    yield "sql", lambda: deltalog.spark.sql(spark, query).collect()[0][0]
    yield "delete", lambda: deltalog.spark.DeltaTable(spark, table).delete("id = 2")
    yield "format", lambda: spark.read.format("deltalog").load(table).collect()
    deltalog.spark.register(spark)
    yield "registered", lambda: spark.read.format("deltalog").load(table).count()
    yield "named", lambda: spark.sql(query.replace("delta", "deltalog", 1)).collect()[0][0]
    yield "stream", stream
    yield "sink", written
    yield "view", lambda: spark.sql(view)
    shutil.unpack_archive(archive, "environment")
    yield "unpacked", lambda: (spark.sql(view), spark.table("shown").count())[1]


def main(archive: str) -> None:
    """Start the cluster and try."""
    warnings.simplefilter("ignore")
    import deltalog

    os.environ["PYSPARK_PYTHON"] = "./environment/bin/python"
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        spark = (
            SparkSession.builder.master("local-cluster[1,1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.log.level", "OFF")
            .config("spark.archives", f"{archive}#environment")
            .config("spark.executorEnv.PYTHONPATH", str(Path(deltalog.__file__).parents[1]))
            .config("spark.local.dir", f"{scratch}/local")
            .getOrCreate()
        )
        print_outcomes(ways(spark, f"{scratch}/table", archive))
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
