"""Commits of times that Python does not have, through Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from deltalog import write_deltalake
from deltalog.errors import DeltaError
from deltalog.spark import DeltaTable


@pytest.mark.parametrize("time_ms", [2**63 - 1, 253_402_300_800_000])
def test_a_commit_of_a_far_time(spark: SparkSession, tmp_path: Path, time_ms: int) -> None:
    path = tmp_path / "t"
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableInCommitTimestamps": "true"}
    write_deltalake(path, pa.table({"id": [1]}), configuration=properties)
    commit = path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    lines[0]["commitInfo"]["inCommitTimestamp"] = time_ms
    commit.write_text("\n".join(map(json.dumps, lines)))
    commit.with_suffix(".crc").unlink(missing_ok=True)
    table = DeltaTable.forPath(spark, path)
    assert [row["version"] for row in table.history().collect()] == [0]
    assert [row["numFiles"] for row in table.detail().collect()] == [1]
    changed = spark.read.format("deltalog").option("readChangeFeed", True)
    changes = changed.option("startingVersion", 0).load(str(path))
    assert changes.selectExpr("id", "_change_type").collect() == [(1, "insert")]
    with pytest.raises((DeltaError, PySparkException), match=r"as of|moment"):
        spark.read.format("deltalog").option("timestampAsOf", "2024-01-01").load(
            str(path)
        ).collect()
    for far in ("+12022-01-01 00:00:00", "9999-12-31T23:59:59-12:00"):
        with pytest.raises(
            (DeltaError, PySparkException), match=r"cannot take|cannot use|as of|is not a timestamp"
        ):
            table.restoreToTimestamp(far)
