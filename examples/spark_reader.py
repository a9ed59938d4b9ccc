"""Read the table with Delta Spark, in the reference's own Python, which does not have deltalog."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

jars, table = Path(sys.argv[1]), sys.argv[2]
session = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", ",".join(map(str, jars.glob("*.jar"))))
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.log.level", "OFF")
    .getOrCreate()
)
rows = session.read.format("delta").load(table).where("month = 6")
june = rows.selectExpr("count(*)", "count(departure_delay)", "max(flown_on)").collect()[0]
print(f"  Delta Spark: {june[0]:,}, {june[1]:,} of them departed, the last on {june[2]}")
session.stop()
