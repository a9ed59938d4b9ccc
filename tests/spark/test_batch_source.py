"""The format `deltalog` for `spark.read`: options, schemas, filters, splits."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, GreaterThan, IsNotNull, StringStartsWith

import deltalog
import deltalog.spark
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.spark.reading.batch_source import BatchReader, TaskPartition, resolve
from deltalog.spark.reading.options import parse_any_read_options, parse_read_options
from deltalog.spark.session.opening import moment_ms
from deltalog.spark.session.types import to_spark_schema
from tests.spark.shapes import SHAPES, Build, mapped, partitioned, plain, tracked
from tests.spark.test_native import rows
from tests.support.spark_workers import packed


def load(spark: SparkSession, table: Path, **options: str) -> DataFrame:
    return spark.read.format("deltalog").options(**options).load(str(table))


def reader(table: Path, **options: str) -> BatchReader:
    """As PySpark makes it, without Spark."""
    given = {"path": str(table), **options}
    _, shown = resolve(parse_any_read_options(given))
    return BatchReader(parse_read_options(given), to_spark_schema(shown))


def partitions(reader: BatchReader) -> list[TaskPartition]:
    found = reader.partitions()
    return [one for one in found if isinstance(one, TaskPartition)]


@pytest.mark.parametrize("build", SHAPES, ids=lambda build: build.__name__)
def test_rows_are_those_of_the_core(spark: SparkSession, tmp_path: Path, build: Build) -> None:
    build(tmp_path)
    assert rows(load(spark, tmp_path)) == rows(DeltaTable(tmp_path).to_pyarrow_table())


def test_comments_are_shown_and_nothing_else_of_metadata(tmp_path: Path) -> None:
    mapped(tmp_path)
    DeltaTable(tmp_path).alter.set_column_comment("id", "counts")
    _, shown = resolve(parse_any_read_options({"path": str(tmp_path)}))
    found = {one.name: one.metadata for one in to_spark_schema(shown).fields}
    assert found == {"id": {"comment": "counts"}, "title": {}, "part": {}} | {
        name: {} for name in ("date", "at", "inner")
    }


@pytest.mark.parametrize("name", ["versionAsOf", "VERSIONASOF"])
def test_a_version_is_read_by_number(spark: SparkSession, tmp_path: Path, name: str) -> None:
    plain(tmp_path)
    assert load(spark, tmp_path, **{name: "0"}).count() == 8
    assert spark.read.format("deltalog").load(f"{tmp_path}@v0").count() == 8


def test_a_moment_after_the_last_commit_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    with pytest.raises(AnalysisException, match=r"VersionNotFoundError.* of its last commit|last"):
        load(spark, tmp_path, timestampAsOf="2999-01-01").count()


def test_a_frame_keeps_the_version_that_it_showed(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    frame = load(spark, tmp_path)
    write_deltalake(tmp_path, pa.table({"id": [99]}), mode="append")
    # Spark Connect plans a frame anew with each action.
    assert frame.count() == (13 if "connect" in type(spark).__module__ else 12)


def test_metadata_columns_come_as_a_struct(spark: SparkSession, tmp_path: Path) -> None:
    tracked(tmp_path)
    frame = load(spark, tmp_path, metadataColumns="row_id, _metadata.row_commit_version")
    names = ["_metadata.row_id", "_metadata.row_commit_version"]
    assert frame.columns[-1] == "_metadata"
    assert rows(frame.select(*names)) == rows(DeltaTable(tmp_path).scan(names).to_table())


@pytest.mark.parametrize("build", [plain, tracked])
def test_all_metadata_columns_are_those_of_the_table(
    spark: SparkSession, tmp_path: Path, build: Build
) -> None:
    build(tmp_path)
    shown = load(spark, tmp_path, metadataColumns="*").select("_metadata.*")
    has_ids = build is tracked
    names = ["file_path", "file_name", "file_size", "file_modification_time", "row_index"]
    names += ["row_id", "row_commit_version"] * has_ids
    assert sorted(shown.columns) == sorted(names)
    expected = DeltaTable(tmp_path).scan([f"_metadata.{name}" for name in shown.columns])
    assert rows(shown) == rows(expected.to_table())
    frame = deltalog.spark.read(spark, tmp_path, metadata_columns=["*"])
    assert frame.select("_metadata.*").columns == shown.columns


def test_the_change_feed_is_read_between_bounds(spark: SparkSession, tmp_path: Path) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path, pa.table({"x": [1, 2]}), configuration=feed)
    DeltaTable(tmp_path).delete("x = 1")
    write_deltalake(tmp_path, pa.table({"x": [3]}), mode="append")
    found = load(spark, tmp_path, readChangeFeed="true", startingVersion="1", endingVersion="9")
    shown = found.select("x", "_change_type", "_commit_version")
    assert sorted(shown.collect()) == [(1, "delete", 1), (3, "insert", 2)]
    bounded = load(spark, tmp_path, readChangeFeed="true", startingVersion="0", endingVersion="0")
    assert bounded.select("x").count() == 2


def test_filters_of_spark_prune_files(spark: SparkSession, tmp_path: Path) -> None:
    partitioned(tmp_path)
    deltalog.spark.register(spark, native=False)
    found = load(spark, tmp_path).where("day = date'2024-01-02' and name like 'n1%' and id > 1")
    assert sorted(row.id for row in found.collect()) == [10]
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"


def test_filters_leave_fewer_files(tmp_path: Path) -> None:
    partitioned(tmp_path)
    some, every = reader(tmp_path), reader(tmp_path)
    pushed = [EqualTo(("part",), "a"), GreaterThan(("id",), 6), IsNotNull(("name",))]
    assert some.pushFilters(pushed) == pushed  # Spark evaluates them again
    assert sum(len(one.tasks) for one in partitions(every)) == 10
    left = [task for one in partitions(some) for task in one.tasks]
    assert [task.partition_values["part"] for task in left] == ["a"]


def test_filters_that_cannot_be_told_prune_nothing(tmp_path: Path) -> None:
    plain(tmp_path)
    some = reader(tmp_path)
    some.pushFilters([EqualTo(("not there",), 1), StringStartsWith(("id",), "1")])
    assert sum(len(one.tasks) for one in partitions(some)) == 2


def test_filters_can_be_turned_off(tmp_path: Path) -> None:
    partitioned(tmp_path)
    some = reader(tmp_path, pushFilters="false")
    some.pushFilters([EqualTo(("part",), "a")])
    assert sum(len(one.tasks) for one in partitions(some)) == 10


def test_splits_are_about_equal(tmp_path: Path) -> None:
    partitioned(tmp_path)
    found = partitions(reader(tmp_path, maxPartitionBytes="2m"))
    assert sorted(len(one.tasks) for one in found) == [3, 3, 4]


def test_a_reader_travels_without_its_snapshot(tmp_path: Path) -> None:
    plain(tmp_path)
    assert len(packed(reader(tmp_path))) < 5000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"versonAsOf": "1"}, "did you mean 'versionAsOf'"),
        ({"header": "true"}, "expected one of"),
        ({"versionAsOf": "one"}, "expected a whole number"),
        ({"versionAsOf": "1", "timestampAsOf": "2024-01-01"}, "use one of them"),
        ({"readChangeFeed": "true"}, "expected startingVersion or startingTimestamp"),
        ({"startingVersion": "1"}, "without readChangeFeed=true"),
        ({"readChangeFeed": "maybe"}, "expected true or false"),
        ({"readChangeFeed": "true", "versionAsOf": "1"}, "limit the feed"),
        ({"maxPartitionBytes": "many"}, "expected a size"),
        ({"metadataColumns": "rowid"}, "did you mean 'row_id'"),
        ({"maxFilesPerTrigger": "1"}, "maxPartitionBytes"),
    ],
)
def test_bad_options_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_read_options({"path": "t", **options})


@pytest.mark.parametrize("moment", ["2024-01-01 09:00:00", datetime(2024, 1, 1, 9)])  # noqa: DTZ001  # the session's
def test_moments_without_a_zone_are_the_session_s(moment: str | datetime) -> None:
    assert moment_ms(moment, "Asia/Tokyo") == moment_ms("2024-01-01T00:00:00Z", "Asia/Tokyo")


def test_a_location_is_needed() -> None:
    with pytest.raises(InvalidInputError, match="expected its location"):
        parse_read_options({})


def test_options_for_the_store_are_taken_apart() -> None:
    given = {"path": "t", "storage.endpoint_url": "u", "aws_region": "r", "mergeSchema": "true"}
    assert parse_read_options(given).storage == {"endpoint_url": "u", "aws_region": "r"}


def test_another_schema_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    frame = spark.read.format("deltalog").schema("id STRING").load(str(tmp_path))
    with pytest.raises(AnalysisException, match=r"cannot read .* with another schema"):
        frame.collect()


def test_some_columns_may_be_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    plain(tmp_path)
    frame = spark.read.format("deltalog").schema("name STRING, id BIGINT").load(str(tmp_path))
    assert min(frame.collect(), key=lambda row: row.id) == ("n0", 0)


def test_only_two_names_can_be_registered(spark: SparkSession) -> None:
    with pytest.raises(InvalidInputError, match="expected one of"):
        deltalog.spark.register(spark, name="parquet")  # type: ignore[arg-type]  # that is the point
