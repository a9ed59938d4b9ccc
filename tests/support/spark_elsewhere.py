"""A driver whose Python workers have another deltalog: run as a process of its own.

Its arguments are a directory that comes first on the workers' path, another Python for workers, and
a directory for the path of that one. It writes and reads a table, and prints for each attempt what
came of it, as a line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tests.support.reference_driver import QUICK


def ways(spark: Any, place: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What lets workers load what is deltalog's, and what does not."""
    import pyarrow as pa

    import deltalog.spark
    from deltalog import write_deltalake
    from deltalog.spark.session.workers import CHECK_WORKERS

    table = place / "table"
    write_deltalake(table, pa.table({"id": [1, 2]}))
    rows = spark.range(3)
    spark.conf.set(CHECK_WORKERS, "false")
    # Spark's own writer knows nothing of sizes, so our tasks write.
    sized: dict[str, Any] = {"mode": "append", "target_file_size": 1 << 20}
    yield "a job", lambda: deltalog.spark.write(rows, table, **sized)
    yield "a frame", lambda: deltalog.spark.read(spark, table, native=False).collect()
    spark.conf.unset(CHECK_WORKERS)
    yield "before a frame", lambda: deltalog.spark.read(spark, table, native=False)
    yield "no workers", lambda: deltalog.spark.read(spark, table).count()
    yield "no workers that write", lambda: deltalog.spark.write(rows, table, mode="append")


def ways_with_a_zip(
    spark: Any, place: Path, python: str, path: str
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Entry points whose workers have deltalog only from `addPyFile`."""
    import deltalog.spark

    source = Path(deltalog.__file__).parent
    archive = shutil.make_archive(str(place / "deltalog"), "zip", source.parent, source.name)
    context = spark.sparkContext
    context.addPyFile(archive)
    context.pythonExec = python
    context.environment["PYTHONPATH"] = path
    table = str(place / "table")
    rows = spark.range(3)
    sized: dict[str, Any] = {"mode": "append", "target_file_size": 1 << 20}
    yield "read", lambda: deltalog.spark.read(spark, table, native=False)
    yield "write", lambda: deltalog.spark.write(rows, table, **sized)
    yield "update", lambda: deltalog.spark.DeltaTable(spark, table).update("id = 1", {"id": "3"})
    update = f"UPDATE delta.`{table}` SET id = 3 WHERE id = 1"  # noqa: S608  # a path of ours
    yield "sql", lambda: deltalog.spark.sql(spark, update)
    deltalog.spark.register(spark)
    by_source = spark.read.format("deltalog").option("maxPartitionBytes", 1 << 20)
    yield "format", lambda: by_source.load(table)
    yield "stream", lambda: spark.readStream.format("deltalog").load(table)


def main(path: str, other_python: str, other_path: str) -> None:
    """Start the session and try."""
    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.log.level", "OFF")
            .config("spark.executorEnv.PYTHONPATH", path)
            .config("spark.local.dir", f"{scratch}/local")
            .config(map={**QUICK})
            .getOrCreate()
        )
        place = Path(scratch)
        zipped = ways_with_a_zip(spark, place, other_python, other_path)
        for name, do in chain(ways(spark, place), zipped):
            told = {"way": name, "error": None}
            try:
                told["text"] = str(do())
            except Exception as error:  # noqa: BLE001  # the test decides what an error means
                told |= {"error": type(error).__name__, "text": str(error)[:4000]}
            print(json.dumps(told), flush=True)  # noqa: T201  # the test reads it
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
