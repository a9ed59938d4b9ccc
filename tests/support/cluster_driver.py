"""A driver that does what it is asked: run as a program, on a cluster that its argument names.

Each line of its input is some work and its arguments, as JSON. It answers with a line of its output
that begins with `> `. The same works are functions here.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Options = dict[str, str]


def numbers(spark: SparkSession, first: int, count: int) -> DataFrame:
    """Rows of some tasks, each of which takes a moment."""
    return spark.range(first, first + count, 1, 4).selectExpr("id", "id % 7 AS n")


def append(spark: SparkSession, table: str, options: Options, first: int, count: int) -> int | None:
    """Append numbers; the new version."""
    import deltalog.spark

    rows = numbers(spark, first, count)
    return deltalog.spark.write(rows, table, mode="append", storage_options=options)


def total(spark: SparkSession, table: str, options: Options) -> list[int]:
    """How many rows there are, how many ids, and the sum of `n`."""
    import deltalog.spark

    frame = deltalog.spark.read(spark, table, storage_options=options)
    (row,) = frame.selectExpr("count(*)", "count(DISTINCT id)", "sum(n)").collect()
    return list(row)


def merge(spark: SparkSession, table: str, options: Options, first: int, count: int) -> None:
    """Count the matched rows up, and insert the others."""
    from deltalog.spark import DeltaTable

    found = DeltaTable.forPath(spark, table, storage_options=options)
    begun = found.alias("t").merge(numbers(spark, first, count).alias("s"), "t.id = s.id")
    begun.whenMatchedUpdate(set={"n": "t.n + 1"}).whenNotMatchedInsertAll().execute()


def optimize(spark: SparkSession, table: str, options: Options) -> int:
    """Compact; the number of new files."""
    from deltalog.spark import DeltaTable

    found = DeltaTable.forPath(spark, table, storage_options=options)
    return int(found.optimize().executeCompaction().collect()[0].metrics.numFilesAdded)


def stream(
    spark: SparkSession, source: str, target: str, options: Options, checkpoint: str
) -> None:
    """Copy what is new; the format is found by PySpark itself."""
    options = {f"storage.{name}": value for name, value in options.items()}
    query = (
        spark.readStream.format("deltalog")
        .options(**options)
        .load(source)
        .writeStream.format("deltalog")
        .options(**options)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(target)
    )
    query.awaitTermination()


def speculated(
    spark: SparkSession, table: str, options: Options, first: int, count: int, flag: str
) -> int:
    """Append numbers, where the first attempt of a task hangs; the number of its attempts."""
    import deltalog.spark

    rows = numbers(spark, first, count).mapInArrow(_hanging(flag), "id LONG, n LONG")
    deltalog.spark.write(rows, table, mode="append", storage_options=options)
    return len(list(Path(flag).iterdir()))


def _hanging(
    flag: str,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == 0:
            (Path(flag) / str(context.taskAttemptId())).touch()
            if len(list(Path(flag).iterdir())) == 1:
                time.sleep(600)

    return work


def medallion(
    spark: SparkSession, lake: str, options: Options, directory: str, num_orders: int
) -> dict[str, Any]:
    """Raw orders by dataframes, one row per order by SQL, totals by a stream."""
    import deltalog.spark

    bronze, silver, gold = f"{lake}/bronze", f"{directory}/silver", f"{lake}/gold"
    for change in (0, 1):  # each order comes twice
        deltalog.spark.write(
            _orders(spark, num_orders, change),
            bronze,
            mode="append",
            properties={"delta.enableDeletionVectors": "true"},
            storage_options=options,
        )
    raw = deltalog.spark.read(spark, bronze, storage_options=options)
    deltalog.spark.register(spark)
    _refine(spark, raw, silver)
    _sum_up(spark, silver, gold, options, f"{directory}/gold-checkpoint")
    deltalog.spark.unregister(spark)
    rows = deltalog.spark.read(spark, gold, storage_options=options).collect()
    return {
        "bronze": _values(raw, "count(*)", "count(total)", "sum(total)"),
        "silver": _values(
            deltalog.spark.read(spark, silver), "count(*)", "sum(total)", "CAST(max(at) AS STRING)"
        ),
        "gold": sorted([str(value) for value in row] for row in rows),
    }


def _orders(spark: SparkSession, count: int, change: int) -> DataFrame:
    return spark.range(0, count, 1, 4).selectExpr(
        "id AS order_id",
        "id % 5 AS customer",
        f"IF(id % 3 = {change}, NULL, CAST(id AS DECIMAL(12, 2))) AS total",
        f"{change} AS change",
        "TIMESTAMP'2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id) AS at",
    )


def _refine(spark: SparkSession, raw: DataFrame, table: str) -> None:
    """One row per order, by statements."""
    spark.sql(
        f"CREATE TABLE deltalog.`{table}` (order_id BIGINT, customer BIGINT, "
        "total DECIMAL(12, 2), at TIMESTAMP) USING deltalog PARTITIONED BY (customer) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    for change in (0, 1):
        raw.where(f"change = {change} AND total IS NOT NULL").createOrReplaceTempView("raw")
        spark.sql(
            f"MERGE INTO deltalog.`{table}` t USING raw s ON t.order_id = s.order_id "
            "WHEN MATCHED THEN UPDATE SET total = t.total + s.total "
            "WHEN NOT MATCHED THEN INSERT (order_id, customer, total, at) "
            "VALUES (s.order_id, s.customer, s.total, s.at)"
        )
    spark.sql(f"DELETE FROM deltalog.`{table}` WHERE total < 10")


def _sum_up(
    spark: SparkSession, source: str, table: str, options: Options, checkpoint: str
) -> None:
    """One row per customer, by a stream of which each batch is merged."""
    from pyspark.sql.functions import expr

    import deltalog.spark
    from deltalog.spark.streaming.sink import merge_batches

    empty = spark.createDataFrame([], "customer LONG, total DECIMAL(22, 2), orders LONG")
    deltalog.spark.write(empty, table, storage_options=options)
    merging = merge_batches(
        table,
        "t.customer = s.customer",
        lambda begun: begun.whenMatchedUpdate(
            set={"total": "t.total + s.total", "orders": "t.orders + s.orders"}
        ).whenNotMatchedInsertAll(),
        app_id="gold",
        prepare=lambda batch: batch.groupBy("customer").agg(
            expr("sum(total)").alias("total"), expr("count(*)").alias("orders")
        ),
        storage_options=options,
    )
    query = (
        spark.readStream.format("deltalog")
        .load(source)
        .writeStream.foreachBatch(merging)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _values(frame: DataFrame, *expressions: str) -> list[str]:
    return [str(value) for value in frame.selectExpr(*expressions).collect()[0]]


WORKS: dict[str, Callable[..., Any]] = {
    work.__name__: work for work in (append, total, merge, optimize, stream, speculated, medallion)
}


def main(settings: str) -> None:
    """Start the session, and work."""
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.config(map=json.loads(settings)).getOrCreate()
    for line in sys.stdin:
        work, arguments = json.loads(line)
        try:
            told = {"answer": WORKS[work](spark, **arguments)}
        except Exception:  # noqa: BLE001  # the test decides
            told = {"error": traceback.format_exc()[-6000:]}
        print(f"> {json.dumps(told)}", flush=True)  # noqa: T201  # the test reads it
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
