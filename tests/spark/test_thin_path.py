"""The shortest way through: a table read by Spark's own reader and by the Python source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import write_deltalake

Load = Callable[[SparkSession, Path], DataFrame]


def by_native(spark: SparkSession, table: Path) -> DataFrame:
    return deltalog.spark.read(spark, table)


def by_discovery(spark: SparkSession, table: Path) -> DataFrame:
    return spark.read.format("deltalog").load(str(table))


def by_other_name(spark: SparkSession, table: Path) -> DataFrame:
    deltalog.spark.register(spark, name="delta")
    return spark.read.format("delta").load(str(table))


def by_sql(spark: SparkSession, table: Path) -> DataFrame:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW t USING deltalog OPTIONS (path '{table}')")
    return spark.sql("SELECT * FROM t")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    write_deltalake(path, pa.table({"x": [1, 2], "s": ["a", None]}))
    write_deltalake(path, pa.table({"x": [3], "s": ["c"]}), mode="append")
    return path


@pytest.mark.parametrize("load", [by_native, by_discovery, by_other_name, by_sql])
def test_every_door_shows_the_same_rows(spark: SparkSession, table: Path, load: Load) -> None:
    rows = load(spark, table)
    assert rows.schema.simpleString() == "struct<x:bigint,s:string>"
    assert sorted(rows.collect()) == [(1, "a"), (2, None), (3, "c")]
