"""What follows commits made through Spark: the same steps, whichever door they came through."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog import PostCommitHookProperties
from deltalog.spark import DeltaTable
from tests.support.raw_tables import DataTable
from tests.support.statements import in_order

AUTO = {"delta.autoOptimize.autoCompact": "true"}
ZONE = "America/New_York"
TEXT = "2020-01-01 00:00:00"  # in New York that is 05:00 in UTC
SHOWN = dt.datetime(2020, 1, 1, 5, tzinfo=dt.UTC)
Append = Callable[[SparkSession, Path], None]


def in_small_files(place: Path, count: int) -> None:
    core = CoreTable.create(place, pa.schema([("id", pa.int64())]), configuration=AUTO)
    later = PostCommitHookProperties(auto_compact=False)
    with core.transaction(post_commithook_properties=later) as transaction:
        for number in range(count):
            transaction.append(pa.table({"id": [number]}))


def by_function(spark: SparkSession, place: Path) -> None:
    deltalog.spark.write(spark.range(60, 61), place, mode="append")


def by_format(spark: SparkSession, place: Path) -> None:
    spark.range(60, 61).write.format("deltalog").mode("append").save(str(place))


def by_stream(spark: SparkSession, place: Path) -> None:
    given = place.with_name("input")
    given.mkdir()
    (given / "a.json").write_text('{"id": 60}')
    frame = spark.readStream.schema("id LONG").json(str(given))
    checkpoint = str(place.with_name("checkpoint"))
    writer = frame.writeStream.format("deltalog").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(str(place)).awaitTermination()


@pytest.mark.parametrize("append", [by_function, by_format, by_stream])
def test_small_files_are_compacted(spark: SparkSession, tmp_path: Path, append: Append) -> None:
    place = tmp_path / "table"
    in_small_files(place, 60)
    append(spark, place)
    after = CoreTable(place)
    operations = [entry["operation"] for entry in after.history(2)]
    assert operations[0] == "OPTIMIZE"
    assert operations[1] in {"WRITE", "STREAMING UPDATE"}
    assert after.snapshot.num_files == 1
    assert in_order(after.to_pyarrow_table().to_pylist()) == [{"id": n} for n in range(61)]


@pytest.fixture
def in_new_york(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def one_more(spark: SparkSession) -> DataFrame:
    return spark.sql(f"SELECT 55L AS id, TIMESTAMP'{TEXT}' AS ts")


def appended_by_function(spark: SparkSession, place: Path) -> None:
    deltalog.spark.write(one_more(spark), place, mode="append")


def appended_by_format(spark: SparkSession, place: Path) -> None:
    writer = one_more(spark).write.format("deltalog")
    writer.option("timeZone", ZONE).mode("append").save(str(place))


def appended_by_merge(spark: SparkSession, place: Path) -> None:
    table = DeltaTable.forPath(spark, place).alias("t")
    source = one_more(spark).alias("s")
    table.merge(source, "t.id = s.id").whenNotMatchedInsertAll().execute()


@pytest.mark.usefixtures("in_new_york")
@pytest.mark.parametrize("append", [appended_by_function, appended_by_format, appended_by_merge])
def test_compaction_keeps_moments_that_name_no_zone(
    spark: SparkSession, tmp_path: Path, append: Append
) -> None:
    raw = DataTable([("id", "long"), ("ts", "timestamp")], partition_by=["ts"], configuration=AUTO)
    for number in range(55):
        raw.commit(raw.add({"id": [number]}, partitionValues={"ts": TEXT}))
    for info in raw.store.list_all(""):
        (tmp_path / info.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / info.path).write_bytes(raw.store.read(info.path))
    append(spark, tmp_path)
    after = CoreTable(tmp_path, default_timezone=ZONE)
    assert after.history(1)[0]["operation"] == "OPTIMIZE"
    assert after.snapshot.num_files < 3
    rows = in_order(after.to_pyarrow_table().to_pylist())
    assert rows == [{"id": number, "ts": SHOWN} for number in range(56)]
