"""How many bytes the operations of a real session send to their tasks, for few and many files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import write_deltalake
from deltalog.spark import DeltaTable
from deltalog.spark.session import tasks
from deltalog.spark.session.workers import mapped
from tests.support.spark_workers import packed

FEW, MANY = 16, 128


def make(path: Path, num_files: int) -> None:
    """A table of partitions of two files, which have two rows each."""
    numbers = list(range(num_files))
    for first in (0, 1):
        rows = {
            "id": [4 * number + first for number in numbers],
            "v": numbers,
            "p": [number // 2 for number in numbers],
        }
        write_deltalake(path, pa.table(rows), mode="append", partition_by=["p"])


def write(spark: SparkSession, path: str) -> None:
    rows = spark.range(9).selectExpr("id", "id AS v", "id % 2 AS p")
    deltalog.spark.write(rows, path, mode="append")


def delete(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).delete("id % 3 = 0")


def update(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).update("id % 3 = 0", {"v": "v + 1"})


def merge(spark: SparkSession, path: str) -> None:
    table, source = DeltaTable.forPath(spark, path).alias("t"), spark.range(0, 1000, 3).alias("s")
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"v": "t.v + 1"})
    merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()


def vacuum(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).vacuum()


def checkpoint(spark: SparkSession, path: str) -> None:
    deltalog.spark.checkpoint(spark, path, part_files=8)


def restore(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).restoreToVersion(0)


def clone(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).clone(f"{path}-clone")


def convert(spark: SparkSession, path: str) -> None:
    files = shutil.copytree(path, f"{path}-files", ignore=shutil.ignore_patterns("_delta_log"))
    DeltaTable.convertToDelta(spark, f"parquet.`{files}`", "p BIGINT")


@pytest.mark.parametrize(
    ("operation", "jobs"),
    [
        (write, 1),
        (delete, 1),
        (update, 1),
        (merge, 1),
        (vacuum, 1),
        (checkpoint, 5),
        (restore, 0),
        (clone, 0),
        (convert, 0),
    ],
)
def test_each_job_sends_less_than_200_bytes_per_file(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    operation: Callable[[SparkSession, str], None],
    jobs: int,
) -> None:
    sizes: list[int] = []

    def noted(frame: DataFrame, work: Any, schema: Any, **more: Any) -> DataFrame:
        sizes.append(len(packed(work)))
        return mapped(frame, work, schema, **more)

    monkeypatch.setattr(tasks, "mapped", noted)
    for num_files in (FEW, MANY):
        make(tmp_path / str(num_files), num_files)
        operation(spark, str(tmp_path / str(num_files)))
    few, many = sizes[:jobs], sizes[jobs:]
    assert len(few) == len(many) == jobs
    for less, more in zip(few, many, strict=True):
        assert more - less < 200 * (MANY - FEW)
