"""Processes that die in the middle, and pipelines that meet: nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog import write_deltalake
from deltalog.spark import DeltaTable
from deltalog.spark.streaming.sink import merge_batches
from tests.spark.conftest import CONNECT
from tests.support.dying import DyingStore, HeldStore, batch, counting
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
    """A merge that loses against the other pipeline is run again."""
    path = tmp_path / "t"
    counters(path)

    def pipeline(name: str) -> None:
        merge = merge_batches(str(path), "t.k = s.k", counting, app_id=name)
        for number in range(3):
            merge(batch(spark), number)
            merge(batch(spark), number)  # it is handed over twice

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(pipeline, name) for name in ("one", "other")]:
            done.result()
    assert counts(path) == [(0, 0), (1, 6), (2, 6), (3, 6)]


def partitioned(spark: SparkSession, path: Path) -> None:
    """Two partitions of two files each, so that two tasks compact them."""
    rows = spark.range(0, 4, 1, 2).selectExpr("id AS k", "0L AS n", "id % 2 AS p")
    deltalog.spark.write(rows, path, partition_by="p")
    deltalog.spark.write(rows, path, partition_by="p", mode="append")


def changed(spark: SparkSession, store: Any, verb: str) -> None:
    match verb:
        case "write":
            rows = spark.range(0, 4, 1, 2).selectExpr("id AS k", "1L AS n", "id % 2 AS p")
            deltalog.spark.write(rows, store, mode="append")
        case "update":
            DeltaTable.forPath(spark, store).update(set={"n": "n + 1"})
        case "optimize":
            compacted(spark, store)


GROUP = "spark.jobGroup.id"


def await_end(flags: Path) -> None:
    """Wait until the processes of tasks that wait are gone, at most for 10 s."""
    numbers = [int(flag.name.removeprefix("held-")) for flag in flags.glob("held-*")]
    for _ in range(200):
        if not any(Path(f"/proc/{number}").exists() for number in numbers):
            return
        time.sleep(0.05)


@pytest.mark.skipif(CONNECT, reason="a remote session cannot wait for tasks")
@pytest.mark.parametrize(
    ("verb", "ends"),
    [
        ("write", "cancelled"),
        ("write", "interrupted"),
        ("write", "failed"),
        ("update", "cancelled"),
        ("update", "failed"),
        ("optimize", "cancelled"),
        ("optimize", "interrupted"),
    ],
)
def test_a_job_that_ends_early_leaves_no_file(
    spark: SparkSession, tmp_path: Path, verb: str, ends: str
) -> None:
    """One task has written its file, and another one is writing when the job ends."""
    path, flags = tmp_path / "t", tmp_path / "flags"
    flags.mkdir()
    partitioned(spark, path)
    before = sorted(path.rglob("*.parquet"))

    def end() -> None:
        while not (flags / "written").exists():
            time.sleep(0.01)
        match ends:
            case "cancelled":
                spark.sparkContext.cancelJobGroup("held")
            case "interrupted":
                os.kill(os.getpid(), signal.SIGINT)
            case "failed":
                (flags / "fail").touch()
        if ends != "failed":
            await_end(flags)  # a busy machine needs a while to end the worker
        (flags / "go").touch()  # if the other task still runs, it writes its file now

    other = Thread(target=end)
    other.start()
    spark.sparkContext.setLocalProperty(GROUP, "held")
    try:
        with pytest.raises(BaseException, match=r"(?i)cancel|disk is full|^$"):
            changed(spark, HeldStore(path, flags), verb)
    finally:
        spark.sparkContext.setLocalProperty(GROUP, None)  # type: ignore[arg-type]  # removes it
        other.join()
        # After Ctrl-C, PySpark's new thread of the JVM has no session, and knows no Python format.
        jvm: Any = spark.sparkContext._jvm
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    assert sorted(path.rglob("*.parquet")) == before
    assert list(path.rglob("*.tmp")) == []
    assert CoreTable(path).version() == 1
