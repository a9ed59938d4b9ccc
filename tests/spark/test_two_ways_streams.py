"""Streams between this package and the reference: each follows what the other one writes."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from deltalog import DeltaTable
from tests.spark.test_sink import Stream
from tests.support.reference import Spark
from tests.support.reference_scenarios import FULL

MADE = (
    "CREATE TABLE T (id BIGINT, v STRING) USING delta TBLPROPERTIES ("
    "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
)
INSERT = "INSERT INTO T SELECT id, concat('v', id) FROM range({}, {}, 1, 2)"
DELETE = "DELETE FROM T WHERE id = {}"
SKIPPING = {"skipChangeCommits": "true"}
FEED = {"readChangeFeed": "true", "startingVersion": "0"}
# What of a row of the feed does not depend on who read it.
COLUMNS = ("id", "v", "_change_type", "_commit_version")


class Following:
    """A query of ours from a table into another, beside a query of the reference that does it."""

    def __init__(
        self, spark: SparkSession, delta_spark: Spark, place: Path, options: dict[str, str]
    ) -> None:
        self.spark, self.delta_spark = spark, delta_spark
        self.place, self.options = place, options
        self.table = place / "table"

    def start(self, **trigger: Any) -> StreamingQuery:
        frame = self.spark.readStream.format("deltalog").options(**self.options)
        writer = frame.load(str(self.table)).writeStream.format("deltalog")
        writer = writer.option("checkpointLocation", str(self.place / "ours-checkpoint"))
        return writer.trigger(**trigger).start(str(self.place / "ours"))

    def catch_up(self) -> None:
        """Both queries go on from their checkpoints."""
        self.start(availableNow=True).awaitTermination()
        theirs, checkpoint = self.place / "theirs", self.place / "theirs-checkpoint"
        self.delta_spark.follow(self.table, theirs, checkpoint, **self.options)

    def rows(self, name: str) -> Counter[tuple[Any, ...]]:
        found = DeltaTable(self.place / name).to_pyarrow_table()
        columns = [one for one in COLUMNS if one in found.schema.names]
        return Counter(tuple(row.values()) for row in found.select(columns).to_pylist())


@pytest.mark.parametrize("options", [FEED, SKIPPING] if FULL else [FEED])
def test_our_source_tells_of_their_table_what_theirs_tells(
    spark: SparkSession, delta_spark: Spark, tmp_path: Path, options: dict[str, str]
) -> None:
    following = Following(spark, delta_spark, tmp_path, options)
    path = following.table
    delta_spark.tell(path, MADE, INSERT.format(0, 6))
    following.catch_up()
    delta_spark.tell(path, INSERT.format(6, 10), "DELETE FROM T WHERE id IN (1, 7)", "OPTIMIZE T")
    if FULL:
        following.catch_up()
        assert following.rows("ours") == following.rows("theirs")
    delta_spark.tell(path, "UPDATE T SET v = 'new' WHERE id = 8", INSERT.format(10, 12))
    delta_spark.tell(path, "OPTIMIZE T", "DELETE FROM T WHERE id = 8", INSERT.format(12, 13))
    following.catch_up()
    ours = following.rows("ours")
    assert ours == following.rows("theirs")
    assert set(ours.values()) == {1}
    if options is SKIPPING:
        assert sorted(row[0] for row in ours) == list(range(13))
    else:
        kinds = Counter(row[2] for row in ours)
        assert kinds == {
            "insert": 13, "delete": 3, "update_preimage": 1, "update_postimage": 1,
        }  # fmt: skip


def test_our_source_follows_while_they_write(
    spark: SparkSession, delta_spark: Spark, tmp_path: Path
) -> None:
    following = Following(spark, delta_spark, tmp_path, SKIPPING)
    path = following.table
    delta_spark.tell(path, MADE, INSERT.format(0, 2))
    following.start(availableNow=True).awaitTermination()  # what is deleted before never comes

    size = 12 if FULL else 4

    def write(first: int) -> None:
        for start in range(first, first + size, 4):
            delta_spark.tell(path, INSERT.format(start, start + 4))
            delta_spark.tell(path, DELETE.format(start + 1), "OPTIMIZE T")

    with ThreadPoolExecutor(1) as pool:
        for first in (2, 2 + size):  # the second time the query goes on from its checkpoint
            query = following.start(processingTime="0 seconds")
            try:
                pool.submit(write, first).result()
            finally:
                query.stop()
    following.start(availableNow=True).awaitTermination()
    ours = following.rows("ours")
    assert sorted(row[0] for row in ours) == list(range(2 + 2 * size))
    assert set(ours.values()) == {1}
    assert DeltaTable(path).to_pyarrow_table().num_rows == 2 + 2 * size * 3 // 4


def test_their_source_follows_what_our_sink_writes(
    spark: SparkSession, delta_spark: Spark, tmp_path: Path
) -> None:
    stream = Stream(spark, tmp_path)
    target, checkpoint = tmp_path / "theirs", tmp_path / "theirs-checkpoint"

    def check(*numbers: int) -> None:
        delta_spark.follow(stream.table, target, checkpoint)
        assert Counter(delta_spark.read(target).column("x").to_pylist()) == Counter(numbers)

    stream.give("a", 1, 2)
    stream.give("b", 3)
    stream.run()
    check(1, 2, 3)
    stream.forget_last_commit()
    stream.run()  # the last batch again
    check(1, 2, 3)
    stream.give("c", 4)
    stream.forget_last_commit()
    stream.run()
    check(1, 2, 3, 4)
    DeltaTable(stream.table).optimize.compact()
    check(1, 2, 3, 4)
    stream.give("d", 5)
    stream.run()
    check(1, 2, 3, 4, 5)
    (query,) = DeltaTable(stream.table).snapshot.app_transactions
    assert DeltaTable(stream.table).transaction_version(query) == 3
