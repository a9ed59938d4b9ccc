"""The driver program of `benchmarks.cluster`, with deltalog or with Delta Spark.

Usage: `python cluster_driver.py SETTINGS`. The program reads lines of JSON, `[work, arguments]`,
and writes a line `> {"answer": seconds}` for each. Preparations are not timed.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHANGES = 200_000


def append(spark: SparkSession, form: str, source: str, table: str) -> Callable[[], object]:
    """Append the rows of Parquet files to a table that has one row."""
    files = sorted(str(file) for file in Path(source).glob("*.parquet"))
    spark.read.parquet(*files).limit(1).write.format(form).mode("append").save(table)
    return lambda: spark.read.parquet(*files).write.format(form).mode("append").save(table)


def merge(spark: SparkSession, form: str, table: str, rows: int) -> Callable[[], object]:
    """Merge at most 200,000 rows, half of which are in the table, spread over all files."""
    source = f"{table}-source"
    changes = min(_CHANGES, rows // 10)
    frame = spark.range(0, 2 * rows, 2 * rows // changes).selectExpr(
        "id", "0.5D AS amount", "1 AS quantity", "'merged' AS name", "timestamp_micros(id) AS at"
    )
    frame.write.parquet(source)

    if form == "delta":
        return lambda: spark.sql(
            f"MERGE INTO delta.`{table}` AS t USING parquet.`{source}` AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    def call() -> object:
        from deltalog.spark import DeltaTable

        begun = DeltaTable.forPath(spark, table).alias("t")
        merger = begun.merge(spark.read.parquet(source).alias("s"), "t.id = s.id")
        return merger.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    return call


def optimize(spark: SparkSession, form: str, table: str) -> Callable[[], object]:
    """Compact all partitions."""
    if form == "delta":
        return lambda: spark.sql(f"OPTIMIZE delta.`{table}`").collect()
    from deltalog.spark import DeltaTable

    return lambda: DeltaTable.forPath(spark, table).optimize().executeCompaction().collect()


def stream(spark: SparkSession, form: str, table: str) -> Callable[[], object]:
    """Copy all commits into another table, a hundred files a batch."""
    target = f"{table}-copy"

    def call() -> None:
        frame = (
            spark.readStream.format(form)
            .option("startingVersion", "0")
            .option("maxFilesPerTrigger", "100")
            .load(table)
        )
        query = (
            frame.writeStream.format(form)
            .option("checkpointLocation", f"{table}-checkpoint")
            .trigger(availableNow=True)
            .start(target)
        )
        query.awaitTermination()

    return call


WORKS: dict[str, Callable[..., Callable[[], object]]] = {
    function.__name__: function for function in (append, merge, optimize, stream)
}


def main(settings: str) -> None:
    """Start the session, and process the input."""
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    given = json.loads(settings)
    form = given["spark.app.name"]
    spark = SparkSession.builder.config(map=given).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    if form == "deltalog":
        from deltalog.spark import register

        register(spark)
    for line in sys.stdin:
        work, arguments = json.loads(line)
        try:
            call = WORKS[work](spark, form, **arguments)
            began = time.perf_counter()
            call()
            answer: dict[str, object] = {"answer": time.perf_counter() - began}
        except Exception:  # noqa: BLE001  # the page says that it fails
            answer = {"error": traceback.format_exc()[-6000:]}
        print(f"> {json.dumps(answer)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
