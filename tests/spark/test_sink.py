"""Streams into tables: every batch once, whatever is run again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog.spark.streaming.sink import merge_batches


class Stream:
    """A query from JSON files into a table."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark = spark
        self.table = place / "table"
        self.input = place / "input"
        self.checkpoint = place / "checkpoint"
        self.input.mkdir()

    def give(self, name: str, *numbers: int) -> None:
        lines = "\n".join(f'{{"x": {number}}}' for number in numbers)
        (self.input / f"{name}.json").write_text(lines)

    def read(self) -> DataFrame:
        stream = self.spark.readStream.schema("x LONG").option("maxFilesPerTrigger", 1)
        return stream.json(str(self.input))

    def run(self, frame: DataFrame | None = None, mode: str = "append", **options: Any) -> None:
        writer = (frame or self.read()).writeStream.format("deltalog").outputMode(mode)
        writer = writer.option("checkpointLocation", str(self.checkpoint)).options(**options)
        query = writer.trigger(availableNow=True).start(str(self.table))
        query.awaitTermination()

    def forget_last_commit(self) -> None:
        """As if the driver had died before Spark noted that the batch is done."""
        commits = sorted((self.checkpoint / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
        commits[-1].unlink()
        for checksum in (self.checkpoint / "commits").glob(".*.crc"):
            checksum.unlink()

    def rows(self) -> list[tuple[Any, ...]]:
        found = CoreTable(self.table).to_pyarrow_table().to_pylist()
        return sorted(tuple(row.values()) for row in found)


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def test_batches_are_appended_and_a_repeated_one_is_skipped(stream: Stream) -> None:
    stream.give("a", 1, 2)
    stream.give("b", 3)
    stream.run()
    assert stream.rows() == [(1,), (2,), (3,)]
    table = CoreTable(stream.table)
    (query,) = table.snapshot.app_transactions
    assert table.transaction_version(query) == 1
    for entry, number in zip(table.history(), ("1", "0"), strict=True):
        assert entry["operation"] == "STREAMING UPDATE"
        batch = {"outputMode": "Append", "queryId": query, "epochId": number}
        assert entry["operationParameters"] == batch
    stream.forget_last_commit()
    files = set(stream.table.glob("*.parquet"))
    stream.give("c", 4)
    stream.run()
    assert stream.rows() == [(1,), (2,), (3,), (4,)]
    assert len(set(stream.table.glob("*.parquet")) - files) == 1  # the repeated batch left none


def test_complete_mode_overwrites(stream: Stream) -> None:
    frame = stream.read().groupBy("x").count()
    stream.give("a", 1, 2)
    stream.give("b", 2)
    stream.run(frame, "complete")
    assert stream.rows() == [(1, 1), (2, 2)]
    (last,) = CoreTable(stream.table).history(1)
    assert last["operationParameters"]["outputMode"] == "Complete"


def test_two_queries_do_not_know_each_others_batches(stream: Stream) -> None:
    stream.give("a", 1)
    stream.run()
    shutil.rmtree(stream.checkpoint)
    stream.run()
    assert stream.rows() == [(1,), (1,)]
    shutil.rmtree(stream.checkpoint)
    stream.run(txnAppId="mine")
    shutil.rmtree(stream.checkpoint)
    stream.run(txnAppId="mine")
    assert stream.rows() == [(1,), (1,), (1,)]


def test_wrong_options_and_rows_end_the_query(stream: Stream) -> None:
    stream.give("a", 1)
    with pytest.raises(Exception, match="did you mean 'mergeSchema'"):
        stream.run(mergeSchemas="true")
    shutil.rmtree(stream.checkpoint)
    stream.run()
    CoreTable(stream.table).alter.add_constraint({"small": "x < 5"})
    stream.give("b", 9)
    with pytest.raises(Exception, match="CHECK constraint 'small'"):
        stream.run()
    assert stream.rows() == [(1,)]
    CoreTable(stream.table).alter.drop_constraint("small")
    stream.run()
    assert stream.rows() == [(1,), (9,)]


def test_batches_are_merged_once(stream: Stream) -> None:
    deltalog.spark.write(stream.spark.sql("SELECT 1L AS x, 0L AS n"), stream.table)
    merge = merge_batches(
        str(stream.table),
        "t.x = s.x",
        lambda m: m.whenMatchedUpdate(set={"n": "t.n + s.n"}).whenNotMatchedInsertAll(),
        app_id="counter",
        prepare=lambda batch: batch.groupBy("x").count().withColumnRenamed("count", "n"),
    )
    stream.give("a", 1, 1, 7)

    def run() -> None:
        writer = stream.read().writeStream.foreachBatch(merge)
        writer = writer.option("checkpointLocation", str(stream.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    assert stream.rows() == [(1, 2), (7, 1)]
    stream.forget_last_commit()
    run()
    assert stream.rows() == [(1, 2), (7, 1)]
