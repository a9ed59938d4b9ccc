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
from functools import partial
from itertools import chain, islice
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


def ways_with_a_package(spark: Any, place: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Entry points whose workers have deltalog only from `addPyFile`."""
    import deltalog.spark
    from deltalog.spark import DeltaTable

    table = str(place / "table")
    rows = spark.range(3)
    sized: dict[str, Any] = {"mode": "append", "target_file_size": 1 << 20}
    where = f"delta.`{table}`"

    def merge() -> Any:
        merge = DeltaTable(spark, table).alias("t").merge(rows.alias("s"), "t.id = s.id")
        return merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()

    yield "read", lambda: deltalog.spark.read(spark, table, native=False)
    yield "write", lambda: deltalog.spark.write(rows, table, **sized)
    yield "delete", lambda: DeltaTable(spark, table).delete("id = 1")
    yield "update", lambda: DeltaTable(spark, table).update("id = 1", {"id": "3"})
    yield "merge", merge
    yield "optimize", lambda: DeltaTable(spark, table).optimize().executeCompaction()
    yield "vacuum", lambda: DeltaTable(spark, str(place / "partitions")).vacuum()
    yield "checkpoint", lambda: deltalog.spark.checkpoint(spark, table)
    for verb, rest in (
        ("UPDATE", " SET id = 3 WHERE id = 1"),
        ("OPTIMIZE", ""),
        ("DELETE FROM", " WHERE id = 1"),
    ):
        statement = f"{verb} {where}{rest}"
        yield f"sql {verb}", partial(deltalog.spark.sql, spark, statement)


def ways_with_a_format(spark: Any, place: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Entry points of the registered format; workers have deltalog only from `addPyFile`."""
    import deltalog.spark

    deltalog.spark.register(spark)
    table = str(place / "table")
    by_source = spark.read.format("deltalog").option("maxPartitionBytes", 1 << 20)
    sized = spark.range(3).write.format("deltalog").mode("append").option("targetFileSize", 1 << 20)
    numbers = spark.readStream.format("rate").load().selectExpr("value AS id")
    sink = numbers.writeStream.format("deltalog").option("checkpointLocation", f"{place}/_c")
    view = f"CREATE TEMPORARY VIEW shown USING deltalog OPTIONS (path '{table}')"
    yield "format", lambda: by_source.load(table)
    yield "saved", lambda: sized.save(table)
    yield "stream", lambda: spark.readStream.format("deltalog").load(table)
    yield "sink", lambda: sink.start(table)
    yield "view", lambda: spark.sql(view)
    statement = f"DELETE FROM deltalog.`{table}` WHERE id = 1"  # noqa: S608  # a path of ours
    yield "statement", lambda: spark.sql(statement)


def ways_without_packages(
    spark: Any, place: Path, python: str, path: str
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Entry points whose workers have a Python of their own, and a wheel or a zip of deltalog."""
    import pyarrow as pa

    import deltalog
    from deltalog import write_deltalake

    write_deltalake(
        place / "partitions", pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by="p"
    )
    context, source = spark.sparkContext, Path(deltalog.__file__).parent
    context.pythonExec = python
    context.environment["PYTHONPATH"] = path
    archive = shutil.make_archive(str(place / "deltalog"), "zip", source.parent, source.name)
    wheel = place / f"deltalog-{deltalog.__version__}-py3-none-any.whl"
    shutil.copy(archive, wheel)
    context.addPyFile(str(wheel))
    for name, do in islice(ways_with_a_package(spark, place), 2):
        yield f"wheel: {name}", do
    context.addPyFile(archive)
    yield from ways_with_a_package(spark, place)
    yield from ways_with_a_format(spark, place)


def main(path: str, other_python: str, other_path: str) -> None:
    """Start the session and try."""
    warnings.simplefilter("ignore")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.pop("PYTHONPATH", None)  # Spark would add it to the path of all workers
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
        scheduler = spark.sparkContext._jsc.sc().dagScheduler()
        packaged = ways_without_packages(spark, place, other_python, other_path)
        for name, do in chain(ways(spark, place), packaged):
            told, before = {"way": name, "error": None}, scheduler.numTotalJobs()
            try:
                told["text"] = str(do())
            except Exception as error:  # noqa: BLE001  # the test decides what an error means
                told |= {"error": type(error).__name__, "text": str(error)[:4000]}
            told["jobs"] = scheduler.numTotalJobs() - before
            print(json.dumps(told), flush=True)  # noqa: T201  # the test reads it
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
