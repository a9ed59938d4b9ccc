"""Tables in stores for which Spark has no file system, with credentials from here and there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException

import deltalog.spark
from deltalog import DeltaTable as CoreTable
from deltalog import write_deltalake
from deltalog.errors import AccessDeniedError
from deltalog.spark import DeltaTable, sql
from deltalog.spark.reading.conditions import objection_to_place
from deltalog.spark.session import spark_tables
from tests.spark.conftest import CONNECT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.support.emulators import Emulator

NONE = "Spark has no file system for 's3'"
FEED = {"delta.enableChangeDataFeed": "true"}


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.fixture
def everywhere(spark: SparkSession, s3: Emulator, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a table; the environments of the driver and of the workers have credentials."""
    if CONNECT:
        pytest.skip("the environment of the server's workers is set when the server starts")
    for name, value in {**s3.options, "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name.upper(), value)
        monkeypatch.setitem(spark.sparkContext.environment, name.upper(), value)
    deltalog.spark.register(spark)  # so that PySpark sends this environment with the format
    return s3.url.replace(" ", "-")


def test_a_table_in_a_store_that_spark_cannot_read(spark: SparkSession, everywhere: str) -> None:
    frame = spark.range(6, numPartitions=2).selectExpr("id", "'a' AS v")
    assert deltalog.spark.write(frame, everywhere, mode="append", properties=FEED) == 0
    spark_tables._have_file_system.clear()
    explained = deltalog.spark.scan(spark, everywhere).explain()
    assert f"because {NONE}" in explained
    assert "read by Spark's own Parquet reader: 0 files" in explained
    assert [*spark_tables._have_file_system.values()] == [False]

    assert len(rows(deltalog.spark.read(spark, everywhere))) == 6
    table = DeltaTable.forPath(spark, everywhere)
    assert len(rows(table.toDF())) == 6
    table.delete("id = 0")
    table.update("id = 1", {"v": "'u'"})
    source = spark.range(5, 7).selectExpr("id", "'m' AS v")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.optimize().executeCompaction()
    expected = [(1, "u"), (2, "a"), (3, "a"), (4, "a"), (5, "m"), (6, "m")]
    assert rows(table.toDF()) == expected
    named = f"delta.`{everywhere}`"
    assert rows(sql(spark, f"TABLE {named}")) == expected
    assert rows(spark.sql(f"TABLE deltalog.`{everywhere}`")) == expected
    assert rows(spark.read.format("deltalog").load(everywhere)) == expected
    feed = spark.read.format("deltalog").option("readChangeFeed", "true")
    changes = feed.option("startingVersion", 1).option("endingVersion", 1).load(everywhere)
    assert rows(changes.select("id", "_change_type")) == [(0, "delete")]
    assert [*spark_tables._have_file_system.values()] == [False]  # Hadoop was asked once


@pytest.mark.parametrize("native", [True, None])
def test_storage_options_do_not_make_spark_read(
    spark: SparkSession, s3: Emulator, native: bool | None
) -> None:
    frame = spark.range(3)
    deltalog.spark.write(frame, s3.url, mode="append", storage_options=s3.options)
    given: dict[str, Any] = {"storage_options": s3.options, "native": native}
    assert len(rows(deltalog.spark.read(spark, s3.url, **given))) == 3
    explained = deltalog.spark.scan(spark, s3.url, **given).explain()
    assert (NONE in explained) == bool(native)
    table = DeltaTable.forPath(spark, s3.url, **given)
    table.delete("id = 0")
    assert rows(table.toDF()) == [(1,), (2,)]


def test_hadoop_says_for_which_schemes_it_has_a_file_system(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[tuple[str, str], bool] = {}
    monkeypatch.setattr(spark_tables, "_have_file_system", asked)
    spark.conf.set("fs.obs.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
    spark.conf.set("fs.cosn.impl", "org.example.NoSuchFileSystem")
    try:
        assert objection_to_place(spark, "/a/table") is None
        assert asked == {}  # every Hadoop has local files
        assert objection_to_place(spark, "obs://bucket/table") is None
        for scheme in ("s3", "s3a", "gs", "abfss", "cosn"):
            objection = objection_to_place(spark, f"{scheme}://one@two.example/table")
            assert objection is not None
            assert "Spark has no file system for" in objection
        assert objection_to_place(spark, "sftp://host/table") is not None
    finally:
        spark.conf.unset("fs.obs.impl")
        spark.conf.unset("fs.cosn.impl")
    assert {scheme: found for (_, scheme), found in asked.items()} == {
        "obs": True,
        "s3": False,
        "s3a": False,
        "gs": False,
        "abfss": False,
        "cosn": False,
    }


def test_statements_create_tables_with_storage_options(spark: SparkSession, s3: Emulator) -> None:
    at = s3.url.replace(" ", "-")

    def run(statement: str) -> DataFrame:
        return sql(spark, statement, storage_options=s3.options)

    run(f"CREATE TABLE delta.`{at}/made` (id BIGINT) USING DELTA")
    run(f"CREATE TABLE located (id BIGINT, v STRING) USING DELTA LOCATION '{at}/located'")
    run("INSERT INTO located VALUES (1, 'a'), (2, 'b')")
    assert rows(run("SELECT * FROM located")) == [(1, "a"), (2, "b")]
    run(f"CREATE TABLE delta.`{at}/copied` USING DELTA AS SELECT * FROM located WHERE id = 2")  # noqa: S608
    run(f"CREATE OR REPLACE TABLE copy USING DELTA LOCATION '{at}/copy' AS SELECT 3 AS id")
    run(f"CREATE TABLE delta.`{at}/cloned` SHALLOW CLONE delta.`{at}/located`")
    run(f"ALTER TABLE copy SET LOCATION '{at}/copied'")
    assert rows(run("SELECT * FROM copy")) == [(2, "b")]
    found = {
        name: DeltaTable.forPath(spark, f"{at}/{name}", storage_options=s3.options).toDF().count()
        for name in ("made", "located", "copied", "copy", "cloned")
    }
    assert found == {"made": 0, "located": 2, "copied": 1, "copy": 1, "cloned": 2}
    spark.catalog.dropTempView("located")
    spark.catalog.dropTempView("copy")


def test_statements_create_entries_with_storage_options(spark: SparkSession, s3: Emulator) -> None:
    deltalog.spark.register(spark)
    at = s3.url.replace(" ", "-")

    def run(statement: str) -> DataFrame:
        return sql(spark, statement, storage_options=s3.options)

    run(f"CREATE TABLE kept_there USING DELTALOG LOCATION '{at}/kept' AS SELECT 1 AS id")
    try:
        run("INSERT INTO kept_there VALUES (2)")
        assert rows(run("SELECT * FROM kept_there")) == [(1,), (2,)]
    finally:
        run("DROP TABLE kept_there")
    assert rows(run(f"TABLE delta.`{at}/kept`")) == [(1,), (2,)]


@pytest.fixture
def only_here(spark: SparkSession, s3: Emulator, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a table, whose credentials only the driver has."""
    del spark
    if CONNECT:
        pytest.skip("the driver is the server")
    for name, value in s3.options.items():
        monkeypatch.setenv(name.upper(), value)
    return s3.url.replace(" ", "-")


def test_missing_credentials_of_workers_are_named(
    spark: SparkSession, only_here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(spark.sparkContext.environment, "AWS_EC2_METADATA_DISABLED", "true")
    core = CoreTable.create(only_here, pa.schema({"id": pa.int64()}))
    assert core.version() == 0
    remedy = "pass storage_options, which are sent with each task, or set the credentials"
    with pytest.raises(AccessDeniedError, match=remedy) as refused:
        deltalog.spark.write(spark.range(3), only_here, mode="append")
    (line,) = str(refused.value).splitlines()
    assert ": a Python worker of Spark cannot " in line
    assert only_here in line
    write_deltalake(only_here, pa.table({"id": [1, 2]}), mode="append")
    with pytest.raises(PythonException, match=remedy):  # Spark's, as is the action
        deltalog.spark.read(spark, only_here).collect()
    with pytest.raises(AccessDeniedError, match=remedy):
        DeltaTable.forPath(spark, only_here).delete("id = 1")
