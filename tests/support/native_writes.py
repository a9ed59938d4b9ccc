"""Tables that Spark writes, and who made their files: Spark's own Parquet writer, or our tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from deltalog import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BY_SPARK: Final = {"parquet-mr"}
BY_TASKS: Final = {"parquet-cpp-arrow"}
TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
STAGING: Final = ".staged.0123456789abcdef0123456789abcdef.tmp"
"""A name of `staging_directory`."""


@contextmanager
def having(spark: SparkSession, **given_settings: str) -> Iterator[None]:
    """The session with other settings: `__` in a name is a dot."""
    before = {}
    for name, value in given_settings.items():
        key = name.replace("__", ".")
        before[key] = spark.conf.get(key, None)
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


def by_tasks(spark: SparkSession) -> AbstractContextManager[None]:
    """Let no write be one of Spark's own."""
    return having(spark, spark__sql__parquet__writeLegacyFormat="true")


def paths(table: Path) -> list[Path]:
    """The files of the newest version, the largest last."""
    found = [table / uri.rpartition("/")[2] for uri in DeltaTable(table).file_uris()]
    return sorted(found, key=lambda path: path.stat().st_size)


def writers(table: Path) -> set[str]:
    """Who made the files of the newest version, wherever these are."""
    uris = [uri.removeprefix("file://") for uri in DeltaTable(table).file_uris()]
    return {pq.read_metadata(uri).created_by.partition(" ")[0] for uri in uris}


def adds(table: Path, version: int | None = None) -> list[dict[str, Any]]:
    """The add actions of a commit."""
    number = DeltaTable(table).version() if version is None else version
    lines = (table / "_delta_log" / f"{number:020d}.json").read_bytes().split(b"\n")
    actions = [json.loads(line) for line in lines if line]
    return [action["add"] for action in actions if "add" in action]


def stats(table: Path) -> list[dict[str, Any]]:
    return [json.loads(add["stats"]) for add in adds(table)]


def rows(table: Path) -> list[tuple[Any, ...]]:
    found = DeltaTable(table).to_pyarrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def entries(table: Path) -> set[str]:
    """Everything that is there, hidden or not; directories as well."""
    if not table.exists():
        return set()
    return {path.relative_to(table).as_posix() for path in table.rglob("*")}


def is_clean(table: Path) -> bool:
    """Whether nothing is there but the log and the files of the newest version."""
    names = {path.name for path in table.iterdir()}
    return names == {"_delta_log", *(path.name for path in paths(table))}


def frame_of(spark: SparkSession, *columns: str, first: int = 0) -> DataFrame:
    """Two rows in one task: `id`, and expressions of it."""
    return spark.range(first, first + 2).coalesce(1).selectExpr("id", *columns)


def failing(times: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What hands on its rows, and fails behind them: some times in the first task."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0 and context.attemptNumber() < times:
            raise RuntimeError("lost")

    return work


def failing_late(table: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Fail in the second task, each time, after another task has written its file."""
    before = len(list(table.glob("*.parquet")))

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1:
            for _ in range(100):
                if len(list(table.glob("*.parquet"))) > before:
                    break
                time.sleep(0.05)
            time.sleep(0.5)  # until Spark knows of the other task
            raise ValueError("lost late")
        yield from batches

    return work
