"""Processes that die in the middle, and pipelines that meet: nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog import write_deltalake
from deltalog.errors import CommitConflictError
from deltalog.spark import DeltaTable
from deltalog.spark.streaming.sink import merge_batches
from tests.support.dying import DyingStore, batch, counting
from tests.support.spark_workers import own_environment

# Workers of a Connect server do not find the tests.
cloudpickle.register_pickle_by_value(sys.modules[DyingStore.__module__])  # type: ignore[no-untyped-call]  # PySpark's
VECTORS = {"delta.enableDeletionVectors": "true"}


def counts(path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in CoreTable(path).to_pyarrow_table().to_pylist())


def data_files(path: Path) -> set[str]:
    return {file.name for file in path.glob("*.parquet")}


def named_files(path: Path) -> set[str]:
    return {uri.rpartition("/")[2] for uri in CoreTable(path).file_uris()}


def counters(path: Path, **configuration: str) -> None:
    """Two files of counters."""
    for first in (0, 2):
        rows = pa.table({"k": [first, first + 1], "n": [0, 0]})
        write_deltalake(path, rows, mode="append", configuration=configuration)


def appended(spark: SparkSession, store: Any) -> None:
    deltalog.spark.write(batch(spark), store, mode="append")


def updated(spark: SparkSession, store: Any) -> None:
    DeltaTable.forPath(spark, store).update("k > 0", {"n": "n + 1"})


def merged(spark: SparkSession, store: Any) -> None:
    merge_batches(store, "t.k = s.k", counting, app_id="counter")(batch(spark), 1)


def compacted(spark: SparkSession, store: Any) -> None:
    DeltaTable.forPath(spark, store).optimize().executeCompaction()


ONCE = [(0, 0), (1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (appended, sorted([(k, 0) for k in range(4)] + [(k, 1) for k in (1, 2, 3)])),
        (updated, ONCE),
        (merged, ONCE),
        (compacted, [(k, 0) for k in range(4)]),
    ],
)
def test_a_worker_that_is_killed_while_it_writes(
    spark: SparkSession,
    tmp_path: Path,
    change: Callable[[SparkSession, Any], None],
    expected: list[tuple[int, int]],
) -> None:
    path, flag = tmp_path / "t", tmp_path / "flag"
    counters(path, **VECTORS)
    change(spark, DyingStore(path, flag))
    assert flag.exists()
    assert counts(path) == expected


def dying(flag: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What ends its worker after it has handed on its rows, once."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return work


def test_a_worker_that_is_killed_below_a_write_of_the_format(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, flag = tmp_path / "t", tmp_path / "flag"
    frame = spark.range(0, 6, 1, 2).mapInArrow(dying(flag), "id long")
    frame.write.format("deltalog").mode("append").save(str(path))
    assert flag.exists()
    assert counts(path) == [(number,) for number in range(6)]


def test_a_driver_that_is_killed_before_it_commits(spark: SparkSession, tmp_path: Path) -> None:
    path, flag = tmp_path / "t", tmp_path / "flag"
    counters(path, **VECTORS)
    before = counts(path)
    died = subprocess.run(
        [sys.executable, "-m", "tests.support.dying", str(path), str(flag)],
        check=False,
        capture_output=True,
        env=own_environment(),
        cwd=Path(__file__).parents[2],
        timeout=300,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert counts(path) == before
    assert data_files(path) > named_files(path)  # the tasks were done
    for _ in range(2):  # the same batch comes again, and again
        merged(spark, path)
        assert counts(path) == ONCE
    CoreTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert data_files(path) == named_files(path)


def test_two_pipelines_merge_into_one_table(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    counters(path)

    def pipeline(name: str) -> None:
        merge = merge_batches(str(path), "t.k = s.k", counting, app_id=name)
        for number in range(3):
            for repetition in range(10):
                try:
                    merge(batch(spark), number)
                    merge(batch(spark), number)  # it is handed over twice
                    break
                except CommitConflictError:  # a pipeline starts again, as after any failure
                    assert repetition < 9

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(pipeline, name) for name in ("one", "other")]:
            done.result()
    assert counts(path) == [(0, 0), (1, 6), (2, 6), (3, 6)]
