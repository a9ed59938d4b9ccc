"""What is written on Spark here the reference reads, and the other way round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog.spark import DeltaTable
from tests.support.reference import Spark
from tests.support.reference_scenarios import FULL

SETTINGS = {
    "copied": "",
    "masked": "'delta.enableDeletionVectors' = 'true'",
    "all": "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true', "
    "'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name'",
}


def sorted_rows(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows), key=repr)


@pytest.mark.parametrize("name", SETTINGS if FULL else ["all"])
def test_two_clusters_share_a_table(
    spark: SparkSession,
    delta_spark: Spark,
    tmp_path: Path,
    name: str,
) -> None:
    path = tmp_path / "t"
    properties = SETTINGS[name]
    settings = f"TBLPROPERTIES ({properties})" if properties else ""
    delta_spark.tell(
        path,
        f"CREATE TABLE T (k BIGINT, p STRING, v STRING) USING delta PARTITIONED BY (p) {settings}",
        "INSERT INTO T SELECT id, CAST(id % 2 AS STRING), concat('v', id) FROM range(0, 10, 1, 2)",
    )
    table = DeltaTable.forPath(spark, path).alias("t")
    source = spark.sql("SELECT id AS k, '1' AS p, 's' AS v FROM range(7, 13)").alias("s")

    def check(expected: int) -> None:
        """Both see the same rows, and so many of them."""
        here = [row.asDict() for row in deltalog.spark.read(spark, path).collect()]
        there = delta_spark.read(path).to_pylist()
        assert len(there) == expected
        assert sorted_rows(here) == sorted_rows(there)

    deltalog.spark.write(source.limit(1), path, mode="append")
    check(11)
    table.delete("k = 3 OR v = 's'")
    check(9)
    table.update("p = '0' AND k > 2", {"v": "concat(v, '!')"})
    check(9)
    merge = table.merge(source, "t.k = s.k").whenMatchedUpdate("t.k > 7", {"v": "s.v"})
    merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
    check(11)
    delta_spark.tell(path, "DELETE FROM T WHERE k = 12", "UPDATE T SET v = 'theirs' WHERE k = 11")
    check(10)
    table.optimize().executeCompaction()
    check(10)
    if "ChangeDataFeed" not in properties:
        return
    found = delta_spark.changes(path, 3).to_pylist()
    told = sorted((row["_commit_version"], row["_change_type"], row["k"]) for row in found)
    assert [one[1:] for one in told if one[0] == 3] == [("delete", 3), ("delete", 7)]
    assert [one[1:] for one in told if one[0] == 5] == [
        ("delete", 7),
        ("insert", 10),
        ("insert", 11),
        ("insert", 12),
        ("update_postimage", 8),
        ("update_postimage", 9),
        ("update_preimage", 8),
        ("update_preimage", 9),
    ]
    here = deltalog.spark.read(spark, path, metadata_columns=["row_id"])
    mine = {row["k"]: row["_metadata"]["row_id"] for row in here.collect()}
    theirs = delta_spark.read(path, columns="k, _metadata.row_id AS row_id").to_pylist()
    assert mine == {row["k"]: row["row_id"] for row in theirs}
