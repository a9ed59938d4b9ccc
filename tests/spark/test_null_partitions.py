"""The option `useNullIntolerantEqualityWithDPO`: partitions of NULL stay in a dynamic overwrite."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog.errors import InvalidInputError

OPTION = "useNullIntolerantEqualityWithDPO"
DYNAMIC = {"partitionOverwriteMode": "dynamic"}
OLD = [("a", "x", 1), ("a", None, 2), (None, None, 3), ("b", "y", 4)]
NEW = [("a", "x", 10), ("a", None, 20), (None, None, 30)]


def _frame(spark: SparkSession, rows: list[tuple[str | None, str | None, int]]) -> DataFrame:
    return spark.createDataFrame(rows, "p STRING, q STRING, id INT")


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({}, [4, 10, 20, 30]),
        ({OPTION: "false"}, [4, 10, 20, 30]),
        ({OPTION: "true"}, [2, 3, 4, 10, 20, 30]),
    ],
)
def test_partitions_of_null(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], ids: list[int]
) -> None:
    deltalog.spark.register(spark, name="delta")
    where = str(tmp_path)
    _frame(spark, OLD).write.format("delta").partitionBy("p", "q").save(where)
    writer = _frame(spark, NEW).write.format("delta").mode("overwrite")
    writer.options(**DYNAMIC, **options).save(where)
    found = spark.read.format("delta").load(where)
    assert sorted(row["id"] for row in found.collect()) == ids


def test_it_goes_with_dynamic_overwrites(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.register(spark, name="delta")
    where = str(tmp_path)
    _frame(spark, OLD).write.format("delta").partitionBy("p", "q").save(where)
    for mode, options in (("overwrite", {}), ("append", DYNAMIC)):
        writer = _frame(spark, NEW).write.format("delta").mode(mode)
        with pytest.raises(InvalidInputError, match="partitionOverwriteMode"):
            writer.options(**{OPTION: "true"}, **options).save(where)
    assert spark.read.format("delta").load(where).count() == len(OLD)
