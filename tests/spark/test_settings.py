"""Settings of a session that change what is written or read: followed, or refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable
from deltalog.errors import InvalidInputError
from deltalog.spark.session.known_settings import FOLLOWED, REFUSED, WITHOUT_EFFECT, full_name
from deltalog.spark.session.settings import SessionSettings, read_settings
from tests.spark.test_write import by_format, by_function

DOCS = Path(__file__).parents[2] / "docs"
DELTA = "spark.databricks.delta."
DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
AUTO_MERGE = {f"{DELTA}schema.autoMerge.enabled": "true"}
NEW_YORK = {"spark.sql.session.timeZone": "America/New_York"}
both = pytest.mark.parametrize("write", [by_format, by_function])
Write = Callable[..., None]


@contextmanager
def setting(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """The settings in this block, and then as they were."""
    before: dict[str, Any] = {name: spark.conf.get(name, None) for name in settings}
    for name, text in settings.items():
        spark.conf.set(name, text)
    try:
        yield
    finally:
        for name, text in before.items():
            if text is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, text)


def frame(spark: SparkSession, rows: list[tuple[Any, ...]], columns: str) -> DataFrame:
    return spark.createDataFrame(rows, columns)


def rows(table: Path) -> list[tuple[Any, ...]]:
    found = DeltaTable(table).to_pyarrow_table().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def partitioned(spark: SparkSession, table: Path) -> None:
    data = frame(spark, [(1, "a"), (2, "b")], "x long, p string")
    deltalog.spark.write(data, table, partition_by="p")


@both
def test_an_overwrite_replaces_the_partitions_of_its_rows(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    partitioned(spark, tmp_path)
    with setting(spark, DYNAMIC):
        write(frame(spark, [(3, "a")], "x long, p string"), tmp_path, mode="overwrite")
    assert rows(tmp_path) == [(2, "b"), (3, "a")]


@both
@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"partition_overwrite": "static"}, [(3, "a")]),
        ({"replace_where": "x = 2"}, [(1, "a"), (2, "a")]),
    ],
    ids=["static", "predicate"],
)
def test_what_the_overwrite_says_itself_comes_first(
    spark: SparkSession, tmp_path: Path, write: Write, given: Any, left: Any
) -> None:
    partitioned(spark, tmp_path)
    row = (2, "a") if "replace_where" in given else (3, "a")
    with setting(spark, DYNAMIC):
        data = frame(spark, [row], "x long, p string")
        write(data, tmp_path, mode="overwrite", **given)
    assert rows(tmp_path) == left


@both
def test_a_new_schema_does_not_go_with_dynamic_partitions(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    partitioned(spark, tmp_path)
    data = frame(spark, [(3, "a")], "y long, p string")
    with setting(spark, DYNAMIC), pytest.raises(Exception, match="overwriteSchema"):
        write(data, tmp_path, mode="overwrite", overwrite_schema=True)
    assert rows(tmp_path) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_writes_and_merges_add_columns(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    deltalog.spark.write(frame(spark, [(1,)], "id long"), tmp_path)
    more = frame(spark, [(2, "b")], "id long, s string")
    with setting(spark, AUTO_MERGE):
        by_function(more, tmp_path, mode=mode)
    assert rows(tmp_path)[-1] == (2, "b")


def test_a_merge_adds_columns(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(frame(spark, [(1,)], "id long"), tmp_path)
    more = frame(spark, [(1, "a"), (2, "b")], "id long, s string")
    with setting(spark, AUTO_MERGE):
        table = deltalog.spark.DeltaTable.forPath(spark, tmp_path).alias("t")
        merge = table.merge(more.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert rows(tmp_path) == [(1, "a"), (2, "b")]


def test_the_format_refuses_new_columns_and_says_what_adds_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    deltalog.spark.write(frame(spark, [(1,)], "id long"), tmp_path)
    more = frame(spark, [(2, "b")], "id long, s string")
    with setting(spark, AUTO_MERGE):
        with pytest.raises(Exception, match=r"'s' that the table lacks.*mergeSchema"):
            by_format(more, tmp_path)
        by_format(more, tmp_path, merge_schema=True)
    assert rows(tmp_path) == [(1, None), (2, "b")]


@both
def test_moments_without_a_zone_are_the_session_s(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    seed = frame(spark, [(1, datetime(2024, 1, 1, tzinfo=UTC))], "x long, t timestamp")
    deltalog.spark.write(seed, tmp_path)
    naive = spark.sql("select 2L x, timestamp_ntz'2024-01-01 12:00:00' t")
    with setting(spark, NEW_YORK):
        write(naive, tmp_path)
    assert rows(tmp_path)[1] == (2, datetime(2024, 1, 1, 17, tzinfo=UTC))


@both
def test_a_predicate_is_not_taken_for_utc(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    moment = datetime(2024, 1, 1, 12, tzinfo=UTC)
    deltalog.spark.write(frame(spark, [(1, moment)], "x long, t timestamp"), tmp_path)
    data = frame(spark, [(2, moment)], "x long, t timestamp")
    where = "t = '2024-01-01 12:00:00'"
    with setting(spark, NEW_YORK), pytest.raises(Exception, match="America/New_York"):
        write(data, tmp_path, mode="overwrite", replace_where=where)
    assert rows(tmp_path) == [(1, moment)]


def test_the_option_says_the_zone_of_a_predicate(spark: SparkSession, tmp_path: Path) -> None:
    moment = datetime(2024, 1, 1, 12, tzinfo=UTC)
    deltalog.spark.write(frame(spark, [(1, moment)], "x long, t timestamp"), tmp_path)
    data = frame(spark, [(2, moment)], "x long, t timestamp")
    with setting(spark, NEW_YORK):
        writer = data.write.format("deltalog").mode("overwrite").option("timeZone", "UTC")
        writer.option("replaceWhere", "t = '2024-01-01 12:00:00'").save(str(tmp_path))
    assert rows(tmp_path) == [(2, moment)]


def test_a_moment_to_read_at_is_not_taken_for_utc(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(frame(spark, [(1,)], "x long"), tmp_path)
    at = datetime.fromtimestamp(DeltaTable(tmp_path).history()[0]["timestamp"] / 1000, UTC)
    text = at.strftime("%Y-%m-%d %H:%M:%S.%f")
    reader = spark.read.format("deltalog").option("timestampAsOf", text)
    with setting(spark, NEW_YORK), pytest.raises(Exception, match=r"timestampAsOf.*timeZone"):
        reader.load(str(tmp_path)).collect()
    assert reader.load(str(tmp_path)).count() == 1
    with setting(spark, NEW_YORK):
        assert reader.option("timeZone", "UTC").load(str(tmp_path)).count() == 1
        zoned = spark.read.format("deltalog").option("timestampAsOf", text + "Z")
        assert zoned.load(str(tmp_path)).count() == 1


def test_a_partition_without_a_zone_is_not_taken_for_utc(
    spark: SparkSession, tmp_path: Path
) -> None:
    data = frame(spark, [(1, datetime(2024, 1, 1, tzinfo=UTC))], "x long, t timestamp")
    deltalog.spark.write(data, tmp_path, partition_by="t")
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    written = commit.read_text()
    assert "2024-01-01T00:00:00.000000Z" in written
    commit.write_text(written.replace("2024-01-01T00:00:00.000000Z", "2024-01-01 00:00:00"))
    for checksum in (tmp_path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    with setting(spark, NEW_YORK):
        with pytest.raises(Exception, match=r"partition column 't'.*timeZone"):
            spark.read.format("deltalog").load(str(tmp_path)).collect()
        given = spark.read.format("deltalog").option("timeZone", "America/New_York")
        assert given.load(str(tmp_path)).collect() == (
            deltalog.spark.read(spark, tmp_path).collect()
        )


@both
def test_a_write_of_the_session_s_application_happens_once(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    data = frame(spark, [(1,)], "x long")
    deltalog.spark.write(data, tmp_path)
    with setting(spark, {f"{DELTA}write.txnAppId": "app", f"{DELTA}write.txnVersion": "7"}):
        write(data, tmp_path)
        write(data, tmp_path)
        assert rows(tmp_path) == [(1,), (1,)]
        deltalog.spark.DeltaTable.forPath(spark, tmp_path).delete()
        assert rows(tmp_path) == [(1,), (1,)]


@both
def test_texts_and_compaction_follow_the_session(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    data = spark.range(0, 60, 1, 60).toDF("x")
    settings = {
        f"{DELTA}commitInfo.userMetadata": "by the session",
        f"{DELTA}autoCompact.enabled": "true",
    }
    deltalog.spark.write(frame(spark, [(1,)], "x long"), tmp_path)
    with setting(spark, settings):
        write(data, tmp_path)
    entries = DeltaTable(tmp_path).history()
    assert [entry["operation"] for entry in entries] == ["OPTIMIZE", "WRITE", "WRITE"]
    assert entries[1]["userMetadata"] == "by the session"


def test_rows_of_a_partition_are_gathered(spark: SparkSession, tmp_path: Path) -> None:
    data = spark.range(400).selectExpr("id", "id % 4 p").repartition(4)
    deltalog.spark.write(data.limit(0), tmp_path, partition_by="p")
    with setting(spark, {f"{DELTA}optimizeWrite.enabled": "true"}):
        by_function(data, tmp_path)
    assert len(DeltaTable(tmp_path).file_uris()) == 4


def test_what_is_created_and_converted_follows_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    made, converted = tmp_path / "made", tmp_path / "converted"
    place = converted / "t=2024-01-01 00%3A00%3A00"
    spark.range(1).coalesce(1).write.parquet(str(place))
    with setting(spark, {**NEW_YORK, f"{DELTA}commitInfo.userMetadata": "why"}):
        builder = deltalog.spark.DeltaTable.create(spark).location(str(made))
        builder.addColumn("x", "LONG").execute()
        deltalog.spark.DeltaTable.convertToDelta(spark, f"parquet.`{converted}`", "t TIMESTAMP")
    assert rows(converted) == [(0, datetime(2024, 1, 1, 5, tzinfo=UTC))]
    texts = [DeltaTable(one).history()[0]["userMetadata"] for one in (made, converted)]
    assert texts == ["why", "why"]


def test_the_size_of_optimized_files_is_the_session_s(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(spark.range(1000).repartition(4), tmp_path)
    with setting(spark, {f"{DELTA}optimize.maxFileSize": "1"}):
        deltalog.spark.DeltaTable.forPath(spark, tmp_path).optimize().executeCompaction()
    assert DeltaTable(tmp_path).version() == 0


def test_the_format_makes_no_table_without_the_session_s_defaults(
    spark: SparkSession, tmp_path: Path
) -> None:
    defaults = {f"{DELTA}properties.defaults.enableChangeDataFeed": "true"}
    data = frame(spark, [(1,)], "x long")
    with setting(spark, defaults):
        with pytest.raises(Exception, match=r"option.*delta\.enableChangeDataFeed"):
            by_format(data, tmp_path / "t")
        assert not (tmp_path / "t" / "_delta_log").exists()
        by_format(data, tmp_path / "t", properties={"delta.enableChangeDataFeed": "true"})
        by_format(data, tmp_path / "t")
    assert rows(tmp_path / "t") == [(1,), (1,)]


@both
def test_a_setting_that_is_not_followed_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    data = frame(spark, [(1,)], "x long")
    deltalog.spark.write(data, tmp_path)
    name = f"{DELTA}delete.deletionVectors.persistent"
    with setting(spark, {name: "false"}):
        with pytest.raises(Exception, match=rf"{name}='false'.*enableDeletionVectors"):
            write(data, tmp_path)
        with pytest.raises(Exception, match=name):
            deltalog.spark.DeltaTable.forPath(spark, tmp_path).delete()
        assert deltalog.spark.read(spark, tmp_path).count() == 1
    with setting(spark, {name: "true"}):
        write(data, tmp_path)
    assert rows(tmp_path) == [(1,), (1,)]


def test_a_read_refuses_what_concerns_reads(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(frame(spark, [(1,)], "x long"), tmp_path)
    name = f"{DELTA}timeTravel.resolveOnIdentifier.enabled"
    with setting(spark, {name: "false"}):
        with pytest.raises(Exception, match=name):
            deltalog.spark.read(spark, tmp_path)
        with pytest.raises(Exception, match=name):
            spark.read.format("deltalog").load(str(tmp_path)).collect()
        with pytest.raises(Exception, match=name):
            deltalog.spark.DeltaTable.forPath(spark, tmp_path).toDF()


def test_a_setting_of_no_known_name_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.write(frame(spark, [(1,)], "x long"), tmp_path)
    with (
        setting(spark, {f"{DELTA}schema.autoMerge.enable": "true"}),
        pytest.raises(Exception, match=r"schema\.autoMerge\.enable='true'"),
    ):
        deltalog.spark.read(spark, tmp_path)


def test_every_setting_has_one_fate_and_is_in_the_guide() -> None:
    names = [*FOLLOWED, *REFUSED, *(name for many in WITHOUT_EFFECT.values() for name in many)]
    assert len(names) == len(set(names))
    assert len(names) > 330
    shown = (DOCS / "how-to" / "spark-settings.md").read_text("utf-8")
    assert [
        name for name in names if f"`{name}`" not in shown and full_name(name) not in shown
    ] == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({f"{DELTA}schema.autoMerge.enabled": "yes"}, "expected true or false, found 'yes'"),
        (
            {f"{DELTA}write.txnAppId": "app"},
            "expected both .*txnAppId and a number as .*txnVersion",
        ),
        ({f"{DELTA}optimize.maxFileSize": "1g"}, "expected a number of bytes, found '1g'"),
        ({f"{DELTA}stats.collect": "FALSE"}, "stats.collect='FALSE'.*dataSkippingNumIndexedCols"),
    ],
)
def test_a_value_without_a_meaning_is_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        read_settings(settings)


def test_delta_s_defaults_are_taken() -> None:
    defaults = {full_name(name): one.accepted[0].upper() for name, one in REFUSED.items()}
    assert read_settings(defaults) == SessionSettings()
    assert read_settings({"spark.sql.sources.partitionOverwriteMode": "STATIC"}).dynamic is False
