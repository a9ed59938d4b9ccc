"""Columns with collations on the Spark edge: plain strings, which Spark compares by bytes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, IsNotNull

import deltalog.spark
from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.spark.reading.batch_source import as_predicate

SCHEMA = Schema([Field("id", "long"), Field("name", "string").collate("UTF8_LCASE")])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    DeltaTable.create(tmp_path, schema=SCHEMA)
    for first, names in ((1, ["AB", "ab"]), (3, ["x", None])):
        ids = pa.array([first, first + 1], pa.int64())
        write_deltalake(tmp_path, pa.table({"id": ids, "name": names}), mode="append")
    return tmp_path


def test_filters_of_spark_prune_by_no_collation() -> None:
    assert as_predicate([EqualTo(("name",), "ab")], SCHEMA) is None
    assert as_predicate([IsNotNull(("name",))], SCHEMA) is not None


@pytest.mark.protocol("B-62")
@pytest.mark.parametrize(
    ("condition", "ids"),
    [("name = 'ab'", [2]), ("name <> 'ab'", [1, 3]), ("name COLLATE UTF8_LCASE = 'aB'", [1, 2])],
)
def test_spark_compares_bytes(
    spark: SparkSession, root: Path, condition: str, ids: list[int]
) -> None:
    deltalog.spark.register(spark)
    frame = spark.read.format("deltalog").load(str(root)).where(condition)
    assert sorted(row["id"] for row in frame.collect()) == ids
