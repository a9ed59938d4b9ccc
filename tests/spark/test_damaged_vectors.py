"""Deletion vectors that contradict their file, on Spark: a join would pass over their rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable
from tests.support.raw_tables import RawTable, metadata, protocol

Action = dict[str, Any]
NUM_ROWS = 10
# Row 3, with a `#` for each of the two bytes that the last group lacks.
PADDED: Action = {
    "storageType": "i",
    "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg##093",
    "sizeInBytes": 34,
    "cardinality": 1,
}


def masked(path: Path, vector: Action | None = None, **stats: object) -> None:
    """Version 1: ten rows; version 2: the same file with a vector, by default of row 10."""
    table = RawTable(path)
    table.create()
    add = table.add(range(NUM_ROWS), 1)
    table.commit(1, [add])
    _, beyond = table.deletion_vector([NUM_ROWS])
    again = {**add["add"], "deletionVector": beyond if vector is None else vector}
    if stats:
        again["stats"] = json.dumps({name: value for name, value in stats.items() if value})
    remove = {"path": add["add"]["path"], "dataChange": True, "deletionTimestamp": 1}
    table.commit(2, [{"remove": remove}, {"add": again}])
    first, second = protocol(), metadata()
    first["writerFeatures"] = [*first["writerFeatures"], "changeDataFeed"]
    second["configuration"]["delta.enableChangeDataFeed"] = "true"
    table.commit(0, [{"protocol": first}, {"metaData": second}])


def read_changes(spark: SparkSession, path: Path) -> DataFrame:
    """The change feed of version 2, by the registered format."""
    deltalog.spark.register(spark)
    read = spark.read.format("deltalog").option("readChangeFeed", True)
    return read.option("startingVersion", 2).load(str(path))


Act = Callable[[SparkSession, Path], Any]
ACTS: dict[str, Act] = {
    "read": lambda spark, path: deltalog.spark.read(spark, path).collect(),
    "count": lambda spark, path: deltalog.spark.read(spark, path).count(),
    "changes": lambda spark, path: read_changes(spark, path).collect(),
    "delete": lambda spark, path: deltalog.spark.DeltaTable.forPath(spark, str(path)).delete(
        "id = 3"
    ),
    "update": lambda spark, path: deltalog.spark.DeltaTable.forPath(spark, str(path)).update(
        set={"id": "0"}
    ),
}


@pytest.mark.protocol("DV-16", "DV-17")
def test_a_vector_with_missing_bytes_is_read(spark: SparkSession, tmp_path: Path) -> None:
    masked(tmp_path, PADDED)
    found = deltalog.spark.read(spark, tmp_path).select("id").collect()
    assert sorted(row.id for row in found) == [n for n in range(NUM_ROWS) if n != 3]
    (change,) = read_changes(spark, tmp_path).collect()
    assert (change.id, change["_change_type"]) == (3, "delete")


@pytest.mark.protocol("DV-08")
@pytest.mark.parametrize("act", ACTS)
def test_a_row_beyond_the_file_is_refused(spark: SparkSession, tmp_path: Path, act: str) -> None:
    masked(tmp_path)
    with pytest.raises(Exception, match="below 10, which its data file has, found row 10"):
        ACTS[act](spark, tmp_path)
    assert DeltaTable(tmp_path).version() == 2


@pytest.mark.parametrize("act", ["read", "changes"])
def test_it_is_refused_where_tasks_read_the_vectors(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    monkeypatch.setattr("deltalog.spark.reading.positions.MOST_READ_HERE", 0)
    masked(tmp_path)
    with pytest.raises(Exception, match="found row 10"):
        ACTS[act](spark, tmp_path)


def test_the_footer_counts_the_rows_that_the_log_does_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    masked(tmp_path, numRecords=None)
    with pytest.raises(Exception, match="below 10, which its data file has, found row 10"):
        deltalog.spark.read(spark, tmp_path).collect()


def test_another_cardinality_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    masked(tmp_path, {**PADDED, "cardinality": 2})
    with pytest.raises(Exception, match="cardinality of 2, found 1"):
        deltalog.spark.read(spark, tmp_path).collect()
