"""What goes wrong between tasks and commit leaves a table as it was, or as it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world
from pyspark.sql.types import StructType

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog import write_deltalake
from deltalog.errors import (
    AccessDeniedError,
    CommitConflictError,
    MetadataChangedError,
    StorageError,
)
from deltalog.spark import DeltaTable
from deltalog.spark.writing.options import WriteOptions
from deltalog.spark.writing.plan import open_to_write
from deltalog.spark.writing.writer import BatchWriter
from deltalog.storage import open_store
from deltalog.testing import FaultyStore, Harm, InjectedFault
from tests.spark.test_settings import setting
from tests.support.native_writes import failing, failing_late
from tests.support.rivals import RivalStore


def rows(path: Path) -> list[Any]:
    return sorted(CoreTable(path).to_pyarrow_table().column("id").to_pylist())


def data_files(path: Path) -> set[str]:
    return {file.name for file in path.glob("*.parquet")}


def named_files(path: Path) -> set[str]:
    return {uri.rpartition("/")[2] for uri in CoreTable(path).file_uris()}


@pytest.mark.parametrize("by_format", [True, False])
def test_tasks_that_are_run_again_leave_each_row_once(
    spark: SparkSession, tmp_path: Path, *, by_format: bool
) -> None:
    path = tmp_path / "t"
    frame = spark.range(0, 6, 1, 2).mapInArrow(failing(2), "id long")
    if by_format:
        frame.write.format("deltalog").mode("append").save(str(path))
    else:
        deltalog.spark.write(frame, path)
    assert rows(path) == [0, 1, 2, 3, 4, 5]
    assert data_files(path) == named_files(path)


def append_by_format(spark: SparkSession, path: Path, *, is_stream: bool) -> None:
    """Append by a job or a micro-batch of which the second task fails."""
    numbers, given = spark.range(0, 6, 1, 2), path.parent / "input"
    if is_stream:
        numbers.write.parquet(str(given))
        numbers = spark.readStream.schema("id LONG").parquet(str(given))
    frame = numbers.repartition(2).mapInArrow(failing_late(path), "id LONG")
    if not is_stream:
        frame.write.format("deltalog").mode("append").save(str(path))
        return
    stream = frame.writeStream.format("deltalog").trigger(availableNow=True)
    stream = stream.option("checkpointLocation", str(path.parent / "checkpoint"))
    stream.start(str(path)).awaitTermination()


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_job_of_the_format_that_fails_leaves_no_file(
    spark: SparkSession, tmp_path: Path, *, is_stream: bool
) -> None:
    """One task has written its file when the other one fails for the last time."""
    path = tmp_path / "t"
    deltalog.spark.write(spark.range(3), path)
    before = sorted(path.rglob("*.parquet"))
    with pytest.raises(Exception, match="lost late"):
        append_by_format(spark, path, is_stream=is_stream)
    assert sorted(path.rglob("*.parquet")) == before
    assert rows(path) == [0, 1, 2]


def broken_log(path: Path, harm: Harm, error: StorageError | None = None) -> FaultyStore:
    """A store that refuses a commit, or loses the answer to one."""
    fault = InjectedFault(verb="put_if_absent", path="_delta_log", harm=harm, error=error)
    return FaultyStore(open_store(path), fault)


def test_a_write_that_cannot_commit_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    deltalog.spark.write(spark.range(3), path)
    store = broken_log(path, Harm.REFUSE, AccessDeniedError("not yours"))
    with pytest.raises(AccessDeniedError):
        deltalog.spark.write(spark.range(5), store, mode="append")
    assert rows(path) == [0, 1, 2]
    assert data_files(path) == named_files(path)


def test_a_commit_whose_answer_is_lost_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    deltalog.spark.write(spark.range(2), path)
    deltalog.spark.write(spark.range(2, 4), broken_log(path, Harm.LOSE_RESPONSE), mode="append")
    assert rows(path) == [0, 1, 2, 3]


def test_a_driver_that_dies_before_the_commit_is_cleaned_up_after(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    deltalog.spark.write(spark.range(1), path)
    writer = BatchWriter(open_to_write(path), spark.range(1).schema, WriteOptions())
    writer.write(iter(pa.table({"id": [7]}).to_batches()))  # and then nothing more
    assert rows(path) == [0]
    assert len(data_files(path) - named_files(path)) == 1
    CoreTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert data_files(path) == named_files(path)


@pytest.mark.parametrize("verb", ["delete", "update", "merge"])
def test_a_change_that_lost_to_another_writer_is_evaluated_anew(
    spark: SparkSession, tmp_path: Path, verb: str
) -> None:
    path, flag = tmp_path / "t", tmp_path / "flag"
    deltalog.spark.write(spark.range(0, 4, 1, 1), path)

    def is_late(number: int) -> bool:
        """Another writer adds a row while the rows are looked at for the first time."""
        if not flag.exists():
            flag.touch()
            write_deltalake(str(path), pa.table({"id": [8]}), mode="append")
        return number > 2

    meanwhile = F.udf(lambda number: is_late(number), "boolean", useArrow=False)  # noqa: PLW0108  # no hints
    table = DeltaTable.forPath(spark, path)
    if verb == "delete":
        table.delete(meanwhile("id"))
        assert rows(path) == [0, 1, 2]
    elif verb == "update":
        table.update(meanwhile("id"), {"id": F.col("id") + 100})
        assert rows(path) == [0, 1, 2, 103, 108]
    else:
        source = spark.createDataFrame([(8,), (9,)], "k long")
        merge = table.merge(source, (F.col("id") == F.col("k")) & meanwhile("k"))
        merge.whenMatchedDelete().whenNotMatchedInsert(values={"id": "k * 10"}).execute()
        assert rows(path) == [0, 1, 2, 3, 90]
    assert data_files(path) >= named_files(path)


def change(spark: SparkSession, table: Any, verb: str) -> None:
    """A change that looks at every row."""
    found = DeltaTable.forPath(spark, table)
    match verb:
        case "delete":
            found.delete("abs(id) > 2")
        case "update":
            found.update(set={"id": "id"})
        case "merge":
            source = spark.range(3, 5, 1, 1)
            merge = found.alias("t").merge(source.alias("s"), "abs(t.id) = s.id")
            merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
        case "overwrite":
            new = spark.range(3, 5, 1, 1)
            deltalog.spark.write(new, table, mode="overwrite", replace_where="id < 0 OR id > 2")
        case "optimize":
            found.optimize().executeCompaction()


KEPT = {"delete": [0, 1, 2], "merge": [0, 1, 2, 4], "overwrite": [0, 1, 2, 3, 4]}


@pytest.mark.parametrize("verb", ["delete", "update", "merge", "overwrite", "optimize"])
def test_a_change_is_run_again_as_often_as_the_session_says(
    spark: SparkSession, tmp_path: Path, verb: str
) -> None:
    path = tmp_path / "t"
    deltalog.spark.write(spark.range(-1, 4, 1, 2), path)
    before = data_files(path)
    with setting(spark, {"spark.deltalog.maxRetries": "0"}), pytest.raises(CommitConflictError):
        change(spark, RivalStore(path, 1), verb)
    assert rows(path) == [0, 1, 2, 3]  # the other writer has won
    assert data_files(path) - before == named_files(path) - before
    write_deltalake(path, pa.table({"id": [-1]}), mode="append")
    store = RivalStore(path, 1)
    with setting(spark, {"spark.deltalog.maxRetries": "1"}):
        change(spark, store, verb)
    assert store.rivals_left == 0
    assert rows(path) == KEPT.get(verb, [0, 1, 2, 3])


def test_a_merge_that_loses_many_times_ends(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    deltalog.spark.write(spark.range(-5, 4, 1, 1), path)
    change(spark, RivalStore(path, 5), "merge")
    assert rows(path) == [0, 1, 2, 4]


def planned(path: Path) -> tuple[BatchWriter, list[Any]]:
    """An overwrite by the format whose tasks are done, but which is not committed."""
    options = WriteOptions(mode="overwrite", replace_where="id > 2")
    writer = BatchWriter(open_to_write(path), StructType().add("id", "long"), options)
    return writer, [writer.write(iter(pa.table({"id": [7]}).to_batches()))]


FEED = {"delta.enableChangeDataFeed": "true"}


def test_an_overwrite_by_the_format_finds_the_rows_of_other_writers(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration=FEED)
    writer, messages = planned(tmp_path)
    write_deltalake(tmp_path, pa.table({"id": [2, 3]}), mode="append")
    writer.commit(messages)
    assert rows(tmp_path) == [1, 2, 7]
    feed = CoreTable(tmp_path).load_cdf(starting_version=2).read_all()
    assert sorted(zip(*feed.select(["_change_type", "id"]).to_pydict().values(), strict=True)) == [
        ("delete", 3),
        ("insert", 7),
    ]


def test_an_overwrite_by_the_format_is_not_repeated_under_other_rules(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration=FEED)
    writer, messages = planned(tmp_path)
    CoreTable(tmp_path).alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(MetadataChangedError):
        writer.commit(messages)
    assert {file.name for file in tmp_path.rglob("*.parquet")} == named_files(tmp_path)
