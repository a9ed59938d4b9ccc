"""`deltalog.spark.DeltaTable` with delta.tables' names: rows are changed by tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog import write_deltalake
from deltalog.errors import (
    ConstraintViolationError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.spark import DeltaTable
from deltalog.spark.create import IdentityGenerator
from deltalog.spark.session.settings import RETENTION_CHECK

DEFAULTS = "spark.databricks.delta.properties.defaults."
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
IDS = {"delta.enableRowTracking": "true"}

kinds = pytest.mark.parametrize(
    "properties",
    [{}, VECTORS, FEED, {**VECTORS, **FEED, **IDS}],
    ids=["copied", "masked", "copied-feed", "masked-feed-ids"],
)


def make(
    spark: SparkSession, path: Path, properties: dict[str, str], *, partition_by: str | None = None
) -> DeltaTable:
    """Rows 0…9 in two files, `p` tells odd from even."""
    frame = spark.range(0, 10, 1, 2).selectExpr("id", "id % 2 AS p", "concat('v', id) AS s")
    deltalog.spark.write(frame, path, properties=properties, partition_by=partition_by)
    return DeltaTable.forPath(spark, path)


def rows(path: Path) -> list[tuple[Any, ...]]:
    """The rows, of a table in which nothing is wrong."""
    table = CoreTable(path)
    report = table.doctor()
    assert report.is_healthy, report.summary
    found = table.to_pyarrow_table().select(["id", "p", "s"]).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def feed(path: Path, version: int) -> list[tuple[Any, ...]]:
    changes = CoreTable(path).load_cdf(starting_version=version).read_all().to_pylist()
    return sorted((row["_change_type"], row["id"], row["s"]) for row in changes)


def row_ids(path: Path) -> dict[int, int]:
    names = ["id", "_metadata.row_id"]
    found = CoreTable(path).scan(columns=names).to_table().to_pylist()
    return {row["id"]: row["_metadata.row_id"] for row in found}


ALL = [(n, n % 2, f"v{n}") for n in range(10)]


@kinds
@pytest.mark.parametrize(
    "condition", [lambda: "id IN (1, 8)", lambda: F.col("id").isin(1, 8)], ids=["sql", "col"]
)
def test_rows_are_deleted(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], condition: Any
) -> None:
    table = make(spark, tmp_path / "t", properties)
    assert table.delete(condition()).collect() == [(2,)]
    assert rows(tmp_path / "t") == [row for row in ALL if row[0] not in {1, 8}]
    table.delete("id = 9")
    assert rows(tmp_path / "t") == [row for row in ALL if row[0] not in {1, 8, 9}]
    if properties.get("delta.enableChangeDataFeed"):
        assert feed(tmp_path / "t", 1) == [("delete", n, f"v{n}") for n in (1, 8, 9)]


def test_values_that_do_not_fit_are_errors_without_ansi_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As in Delta, which stores a value whole or not at all."""
    path = tmp_path / "t"
    deltalog.spark.write(spark.sql("SELECT 1 AS id, 5Y AS b"), path)
    table = DeltaTable.forPath(spark, path)
    source = spark.sql("SELECT 1 AS id, 300 AS b")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(PySparkException, match="'b' does not fit into byte: 300"):
            table.update(set={"b": "300"})
        with pytest.raises(PySparkException, match="'b' does not fit into byte: 300"):
            merge.whenMatchedUpdateAll().execute()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    assert table.toDF().collect() == [(1, 5)]


def test_an_alias_prunes_like_a_bare_name(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", {}, partition_by="p").alias("T")
    table.delete("t.p = 1")
    (newest, *_) = CoreTable(tmp_path / "t").history(1)
    assert newest["operationMetrics"]["numAddedFiles"] == "0"
    assert {row[1] for row in rows(tmp_path / "t")} == {0}


def test_a_version_is_not_changed(spark: SparkSession, tmp_path: Path) -> None:
    make(spark, tmp_path / "t", {})
    with pytest.raises(InvalidInputError, match=r"@v0': the location contains a version"):
        DeltaTable.forPath(spark, f"{tmp_path}/t@v0")


def test_deletes_that_the_log_can_answer_run_no_job(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", {}, partition_by="p")
    table.delete("p = 1")
    (newest, *_) = CoreTable(tmp_path / "t").history(1)
    assert newest["operationMetrics"]["numAddedFiles"] == "0"
    assert {row[1] for row in rows(tmp_path / "t")} == {0}
    table.delete()
    assert CoreTable(tmp_path / "t").file_uris() == []


def test_nothing_is_committed_where_no_row_matches(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", {})
    assert table.delete("id > 5 AND s = 'none'").collect() == [(0,)]
    assert table.update("s = 'none'", {"s": "'x'"}).collect() == [(0,)]
    assert CoreTable(tmp_path / "t").version() == 0


@kinds
def test_rows_are_updated(spark: SparkSession, tmp_path: Path, properties: dict[str, str]) -> None:
    path = tmp_path / "t"
    table = make(spark, path, properties)
    ids = row_ids(path) if properties.get("delta.enableRowTracking") else {}
    changed = table.alias("t").update("t.id >= 8", {"s": F.concat("s", F.lit("!")), "t.p": "p + 7"})
    assert changed.collect() == [(2,)]
    assert rows(path) == [*ALL[:8], (8, 7, "v8!"), (9, 8, "v9!")]
    if properties.get("delta.enableChangeDataFeed"):
        assert feed(path, 1) == [
            ("update_postimage", 8, "v8!"),
            ("update_postimage", 9, "v9!"),
            ("update_preimage", 8, "v8"),
            ("update_preimage", 9, "v9"),
        ]
    assert not ids or row_ids(path) == ids


def test_updates_keep_the_tables_rules(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = (
        DeltaTable.create(spark)
        .location(str(path))
        .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(5, 2))
        .addColumn("x", "INT", nullable=False)
        .addColumn("y", "INT", generatedAlwaysAs="x * 2")
        .addColumn("st", "STRUCT<a: INT, b: STRING>", comment="a struct")
        .property("delta.enableDeletionVectors", "true")
        .execute()
    )
    deltalog.spark.write(
        spark.sql("SELECT 1 AS x, named_struct('a', 1, 'b', 'u') AS st"), path, mode="append"
    )
    table.update(set={"x": "x + 1", "st.b": "concat(st.b, id)"})
    found = table.toDF().collect()
    assert [row.asDict(recursive=True) for row in found] == [
        {"id": 5, "x": 2, "y": 4, "st": {"a": 1, "b": "u5"}}
    ]
    with pytest.raises(InvalidInputError, match="identity"):
        table.update(set={"id": "7"})
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        table.update(set={"x": "NULL"})
    with pytest.raises(InvalidInputError, match="nope"):
        table.update(set={"nope": "1"})
    assert table.toDF().count() == 1


def test_builders_say_what_is_there_already(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        DeltaTable.replace(spark).location(path).addColumn("x", "INT").execute()
    schema = spark.createDataFrame([], "x INT, p STRING").schema
    DeltaTable.createIfNotExists(spark).location(path).addColumns(schema).partitionedBy(
        "p"
    ).comment("c").execute()
    with pytest.raises(TableExistsError):
        DeltaTable.create(spark).location(path).addColumns(schema).execute()
    assert DeltaTable.createIfNotExists(spark).location(path).execute().toDF().columns == ["x", "p"]
    replaced = DeltaTable.createOrReplace(spark).tableName(f"delta.`{path}`").addColumn("z", "DATE")
    assert replaced.clusterBy("z").execute().toDF().columns == ["z"]
    (detail,) = DeltaTable.forPath(spark, path).detail().collect()
    assert (detail["clusteringColumns"], detail["partitionColumns"]) == (["z"], [])
    with pytest.raises(InvalidInputError, match="register"):
        DeltaTable.create(spark).tableName("a.b").addColumn("x", "INT").execute()


def test_history_detail_and_going_back(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(spark, path, VECTORS)
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "why")
    try:
        table.delete("id = 3")
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    (newest, first) = table.history().collect()
    assert (newest["operation"], newest["userMetadata"]) == ("DELETE", "why")
    assert newest["operationMetrics"]["numDeletedRows"] == "1"
    assert first["timestamp"] <= newest["timestamp"]
    (detail,) = table.detail().collect()
    assert (detail["numFiles"], detail["properties"]) == (2, VECTORS)
    (restored,) = table.restoreToVersion(0).collect()
    assert restored["num_of_files_after_restore"] == 2
    assert rows(path) == ALL


def test_settings_of_the_session_say_what_new_tables_have(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set(f"{DEFAULTS}enableChangeDataFeed", "true")
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "nightly")
    try:
        deltalog.spark.write(spark.range(1), tmp_path / "w")
        where = str(tmp_path / "c")
        DeltaTable.create().location(where).addColumn("id", "LONG").execute()
    finally:
        spark.conf.unset(f"{DEFAULTS}enableChangeDataFeed")
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    for name in "wc":
        assert CoreTable(tmp_path / name).metadata().configuration == FEED
    assert CoreTable(tmp_path / "w").history(1)[0]["userMetadata"] == "nightly"


def test_files_in_retention_are_deleted_where_the_session_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = make(spark, tmp_path / "t", {})
    table.delete("id = 3")
    with pytest.raises(InvalidInputError, match=rf"{RETENTION_CHECK}=false"):
        table.vacuum(0)
    spark.conf.set(RETENTION_CHECK, "false")
    try:
        assert table.vacuum(0).count() == 1
    finally:
        spark.conf.unset(RETENTION_CHECK)


def test_the_history_shows_what_others_wrote_in_other_types(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = make(spark, tmp_path, {})
    info = '"operation": "X", "readVersion": "0", "isBlindAppend": "true", "userMetadata": {"k": 1}'
    commit = f'{{"commitInfo": {{"timestamp": 1795314062643, {info}, "job": 5}}}}'
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(commit)
    first = table.history(1).collect()[0]
    shown = first["readVersion"], first["isBlindAppend"], first["userMetadata"], first["job"]
    assert shown == (0, True, "{'k': 1}", None)


def test_filters_of_an_optimization_all_hold(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", {}, partition_by="p")
    begun = table.optimize().where("p = 1 OR p IS NULL").where("p = 0")
    assert begun.executeCompaction().collect()[0]["metrics"]["numFilesRemoved"] == 0


def test_files_are_put_together_and_cleaned_away(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(spark, path, VECTORS)
    table.delete("id = 3")
    (found,) = table.optimize().executeCompaction().collect()
    assert (found["metrics"]["numFilesAdded"], found["metrics"]["numFilesRemoved"]) == (1, 2)
    assert tuple(found["metrics"]["deletionVectorStats"]) == (1, 1)
    assert found["metrics"]["zOrderStats"] is None  # a column of Delta's that nobody fills
    table.optimize().executeZOrderBy("id", "s")
    assert rows(path) == [row for row in ALL if row[0] != 3]
    assert table.vacuum().collect() == []
    table.upgradeTableProtocol(1, 3)
    table.addFeatureSupport("changeDataFeed")
    (told,) = table.history(1).collect()
    assert (told["operation"], dict(told["operationParameters"])) == (
        "SET TBLPROPERTIES",
        {"properties": '{"delta.feature.changeDataFeed":"supported"}'},
    )  # as Delta Spark, whose method sets the property


def test_copies(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", {})
    table.delete("id > 0")
    assert table.clone(str(tmp_path / "c")).toDF().count() == 1
    assert table.cloneAtVersion(0, str(tmp_path / "d"), isShallow=True).toDF().count() == 10


def test_tables_are_found_by_path_and_by_name(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    make(spark, path, {})
    assert DeltaTable.isDeltaTable(spark, str(path))
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path))
    assert DeltaTable.forName(spark, f"delta.`{path}`").toDF().count() == 10
    DeltaTable.forPath(spark, path).createOrReplaceTempView("a_view")
    assert DeltaTable.forName(spark, "a_view").toDF().count() == 10
    spark.catalog.dropTempView("a_view")
    spark.sql(f"CREATE TABLE in_catalog (id LONG) USING parquet LOCATION '{path}'")
    assert DeltaTable.forName(spark, "in_catalog").toDF().count() == 10
    spark.sql("DROP TABLE in_catalog")
    for name in ("nobody", "a_view"):
        with pytest.raises(TableNotFoundError, match="forPath"):
            DeltaTable.forName(spark, name)
    spark.range(1).write.parquet(str(tmp_path / "plain"))
    converted = DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 'plain'}`")
    assert converted.toDF().columns == ["id"]


def test_a_directory_with_tables_is_not_converted(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "plain"))
    write_deltalake(tmp_path / "orders", {"id": [1]})
    for convert in (
        lambda: DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path}`"),
        lambda: deltalog.spark.sql(spark, f"CONVERT TO DELTA parquet.`{tmp_path}`"),
    ):
        with pytest.raises(InvalidInputError, match=r"found 1 table in it: orders \(Delta\)"):
            convert()


def test_times_in_directories_are_converted_in_the_zone_of_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "plain"
    frame = spark.sql("SELECT 1 AS id, '2024-01-01 00:00:00' AS ts")
    frame.write.partitionBy("ts").parquet(str(path))
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        (expected,) = spark.read.schema("id INT, ts TIMESTAMP").parquet(str(path)).collect()
        converted = DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "ts TIMESTAMP")
        (found,) = converted.toDF().select("id", "ts").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert found == expected
    assert CoreTable(path).to_pyarrow_table()["ts"][0].as_py().hour == 5  # midnight there, in UTC
