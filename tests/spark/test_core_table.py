"""What follows commits on a cluster: tasks go through the files of large tables, not the driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog import PostCommitHookProperties, write_deltalake
from deltalog.operations.changes import key_tasks
from deltalog.spark import DeltaTable
from deltalog.spark.reading.state import MOST_FILES_HERE
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.support.statements import in_order

LATER = PostCommitHookProperties(auto_compact=False)
EVERY_OTHER = {"delta.checkpointInterval": "2"}


@pytest.fixture
def on_tasks(spark: SparkSession) -> Iterator[None]:
    """Every table is a large one."""
    spark.conf.set(MOST_FILES_HERE, "0")
    yield
    spark.conf.unset(MOST_FILES_HERE)


def checkpoints(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "_delta_log").glob("*.checkpoint*.parquet"))


@pytest.mark.protocol("CKPT-12")
@pytest.mark.usefixtures("on_tasks")
def test_tasks_write_the_checkpoint_that_is_due(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(4)
    deltalog.spark.write(frame, tmp_path, properties=EVERY_OTHER)
    deltalog.spark.write(frame, tmp_path, mode="append")
    deltalog.spark.write(frame, tmp_path, mode="append")
    (first,) = checkpoints(tmp_path)
    assert first.endswith("2.checkpoint.parquet")  # there was none before that tasks might read
    table = DeltaTable.forPath(spark, tmp_path)
    table.update("id = 1", {"id": "10L"})
    table.delete("id = 2")
    assert checkpoints(tmp_path) == [first, f"{4:020}.checkpoint.{1:010}.{1:010}.parquet"]
    for version in range(5):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    found = CoreTable(tmp_path).to_pyarrow_table().to_pylist()
    assert in_order(found) == [{"id": number} for number in (0, 0, 0, 3, 3, 3, 10, 10, 10)]


def test_smaller_tables_have_one_file(spark: SparkSession, tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration=EVERY_OTHER)
    table = DeltaTable.forPath(spark, tmp_path)
    for number in range(4):
        table.update("true", {"id": f"{number}L"})
    assert [name.count(".") for name in checkpoints(tmp_path)] == [2, 2]


def test_tasks_compact_after_a_write(spark: SparkSession, tmp_path: Path) -> None:
    wanted = {"delta.autoOptimize.autoCompact": "true"}
    core = CoreTable.create(tmp_path, pa.schema([("id", pa.int64())]), configuration=wanted)
    with core.transaction(post_commithook_properties=LATER) as transaction:
        for number in range(60):
            transaction.append(pa.table({"id": [number]}))
    store = CountingStore(open_store(str(tmp_path)))
    DeltaTable.forPath(spark, store).delete("id = 0")
    after = CoreTable(tmp_path)
    assert [entry["operation"] for entry in after.history(2)] == ["OPTIMIZE", "DELETE"]
    assert after.snapshot.num_files == 1
    assert in_order(after.to_pyarrow_table().to_pylist()) == [{"id": n} for n in range(1, 60)]
    read = store.paths("open", "read", "read_ranges")
    assert not [path for path in read if path.endswith(".parquet")]


def test_tasks_index_what_spark_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_tasks, "_LEAST_TASK_BYTES", 1)
    write_deltalake(tmp_path, pa.table({"id": [-1]}))
    CoreTable(tmp_path).alter.set_key_index(["id"])
    rows = spark.range(0, 9000, 1, 3)
    rows.write.format("deltalog").mode("append").save(str(tmp_path))
    packs = list(tmp_path.glob("_delta_log/_keys/*/*.keys"))
    assert len(packs) == 3
    table = CoreTable(tmp_path)
    found = str(table.scan(predicate="id = 8000").explain())
    assert "key index of id: 1 row in 1 file" in found
    assert table.scan(predicate="id = 8000").to_table().num_rows == 1
    assert DeltaTable.forPath(spark, tmp_path).toDF().where("id = 8000").count() == 1
