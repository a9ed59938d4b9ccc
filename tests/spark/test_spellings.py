# ruff: noqa: S608  # names and locations of tables are in the statements
"""PySpark's own spellings of writes, statements and names after `register`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    DeltaError,
    InvalidInputError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.spark import DeltaTable as SparkTable
from deltalog.spark.session.settings import check_catalog
from tests.spark.test_door import is_native, plan

ROWS = [(1, "a"), (2, "b")]
NAMES = ("spelt", "spelt_2", "spelt_external", "spelt_view", "spelt_parquet")


@pytest.fixture
def registered(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with both names of the format; tables of the tests are dropped behind them."""
    deltalog.spark.register(spark)
    deltalog.spark.register(spark, name="delta")
    yield spark
    for name in NAMES:
        spark.catalog.dropTempView(name)
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, "id LONG, name STRING")


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def operations(path: object) -> list[str]:
    return [str(one["operation"]) for one in DeltaTable(str(path)).history()]


# --- df.write … save


def test_modes_are_spark_s(registered: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    frame.write.format("delta").save(path)
    with pytest.raises(AnalysisException, match="already exists") as caught:
        frame.write.format("delta").save(path)
    assert isinstance(caught.value, TableExistsError)
    with pytest.raises(TableExistsError):
        frame.write.format("deltalog").mode("errorifexists").save(path)
    frame.write.format("delta").mode("ignore").save(path)
    assert DeltaTable(path).version() == 0
    frame.write.save(path, format="deltalog", mode="append")
    assert rows(registered.read.format("delta").load(path)) == sorted(ROWS + ROWS)
    frame.limit(1).write.format("delta").mode("overwrite").option("path", path).save()
    assert rows(registered.read.format("delta").load(path)) == ROWS[:1]
    assert operations(path) == ["WRITE"] * 3


def test_partitions_clusters_and_properties_of_new_tables(
    registered: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    by_name = frame.write.format("delta").partitionBy("name").option("delta.appendOnly", "true")
    by_name.save(str(tmp_path / "p"))
    made = DeltaTable(tmp_path / "p")
    assert list(made.metadata().partition_columns) == ["name"]
    assert made.metadata().configuration == {"delta.appendOnly": "true"}
    frame.write.format("delta").save(str(tmp_path / "q"), partitionBy=["id"])
    assert list(DeltaTable(tmp_path / "q").metadata().partition_columns) == ["id"]
    frame.write.format("delta").clusterBy("id").save(str(tmp_path / "c"))
    described = SparkTable.forPath(registered, str(tmp_path / "c")).detail().head()
    assert described is not None
    assert described.clusteringColumns == ["id"]
    with pytest.raises(InvalidInputError, match="no buckets"):
        frame.write.format("delta").bucketBy(2, "id").save(str(tmp_path / "b"))
    with pytest.raises(InvalidInputError, match=r"clustering columns \['name'\].*exists"):
        frame.write.format("delta").mode("append").clusterBy("name").save(str(tmp_path / "c"))


def test_options_reach_the_writer(
    registered: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    frame.write.format("delta").partitionBy("name").save(path)
    more = registered.createDataFrame([(9, "b")], frame.schema)
    (
        more.write.format("delta").mode("overwrite").option("replaceWhere", "name = 'b'")
        .option("userMetadata", "why").option("txnAppId", "me").option("TXNVERSION", 3).save(path)
    )  # fmt: skip
    assert rows(registered.read.load(path, "delta")) == [(1, "a"), (9, "b")]
    assert DeltaTable(path).history(1)[0]["userMetadata"] == "why"
    again = more.write.format("delta").mode("append").options(txnAppId="me", txnVersion=3)
    again.save(path)
    assert DeltaTable(path).version() == 1
    dynamic = more.write.format("delta").option("partitionOverwriteMode", "dynamic")
    dynamic.mode("overwrite").save(path)
    assert rows(registered.read.load(path, "delta")) == [(1, "a"), (9, "b")]
    wider = registered.createDataFrame([(4, "d", 0.5)], "id LONG, name STRING, x DOUBLE")
    with pytest.raises(SchemaMismatchError):
        wider.write.format("delta").mode("append").save(path)
    wider.write.format("delta").mode("append").option("mergeSchema", True).save(path)
    assert registered.read.load(path, "delta").columns == ["id", "name", "x"]
    other = registered.range(1).write.format("delta").mode("overwrite")
    other.option("overwriteSchema", "true").option("compression", "none").save(path)
    assert registered.read.load(path, "delta").columns == ["id"]
    assert not DeltaTable(path).metadata().partition_columns
    import pyarrow.parquet as pq  # what was written

    (file,) = DeltaTable(path).file_uris()
    assert pq.read_metadata(file).row_group(0).column(0).compression == "UNCOMPRESSED"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxRecordsPerFile": "ten"}, "maxRecordsPerFile='ten'"),
        ({"dataChange": "false"}, "dataChange=false.*optimize"),
        ({"replaceUsing": "id"}, "'replaceUsing'.*merge"),
        ({"replaceOn": "t.id = s.id"}, "'replaceOn'.*merge"),
        ({"mergeSchemas": "true"}, "did you mean 'mergeSchema'"),
        ({"compression": "zip"}, "found 'ZIP'"),
    ],
)
@pytest.mark.usefixtures("registered")
def test_options_that_cannot_be_honoured_are_named(
    frame: DataFrame,
    tmp_path: Path,
    options: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        frame.write.format("delta").options(**options).save(str(tmp_path / "t"))
    assert isinstance(caught.value, AnalysisException)
    assert not (tmp_path / "t").exists()


def test_other_formats_are_written_by_spark(
    registered: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    frame.write.parquet(str(tmp_path / "p"))
    frame.write.format("json").mode("overwrite").save(str(tmp_path / "j"))
    frame.write.mode("append").save(str(tmp_path / "p"))
    assert registered.read.parquet(str(tmp_path / "p")).count() == 4
    assert registered.read.json(str(tmp_path / "j")).count() == 2
    frame.write.saveAsTable("spelt_parquet")
    frame.write.insertInto("spelt_parquet")
    assert registered.table("spelt_parquet").count() == 4
    with pytest.raises(TableExistsError, match="'parquet'"):
        frame.write.format("delta").mode("append").saveAsTable("spelt_parquet")


# --- names


def test_a_saved_table_has_a_name(registered: SparkSession, frame: DataFrame) -> None:
    frame.write.format("delta").saveAsTable("spelt")
    assert is_native(registered.table("spelt"))
    for found in (
        registered.table("spelt"),
        registered.read.table("default.spelt"),
        registered.read.format("delta").table("spark_catalog.default.spelt"),
        registered.sql("SELECT * FROM spelt"),
        SparkTable.forName(registered, "spelt").toDF(),
    ):
        assert rows(found) == ROWS
    with pytest.raises(TableExistsError, match=r"spelt.*already exists"):
        frame.write.format("delta").saveAsTable("spelt")
    frame.write.format("delta").mode("ignore").saveAsTable("spelt")
    frame.write.format("delta").mode("append").saveAsTable("spelt")
    assert registered.table("spelt").count() == 4
    assert registered.read.option("versionAsOf", 0).table("spelt").count() == 2
    wider = registered.createDataFrame([(3, "c", True)], "id LONG, name STRING, new BOOLEAN")
    wider.write.format("delta").mode("append").saveAsTable("spelt", mergeSchema=True)
    assert registered.table("spelt").columns == ["id", "name", "new"]
    assert [one.name for one in registered.catalog.listColumns("spelt")] == ["id", "name", "new"]
    frame.write.format("delta").mode("overwrite").saveAsTable("spelt", overwriteSchema=True)
    assert registered.table("spelt").columns == ["id", "name"]
    root = Path(SparkTable.forName(registered, "spelt").core.table_uri)
    registered.sql("DROP TABLE spelt")
    assert not registered.catalog.tableExists("spelt")
    assert not list(root.rglob("*.parquet"))


def test_a_table_may_have_a_location_of_its_own(
    registered: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "it's here"
    frame.write.format("delta").option("path", str(path)).saveAsTable("spelt_external")
    assert rows(registered.table("spelt_external")) == ROWS
    assert DeltaTable(path).count() == 2
    with pytest.raises(InvalidInputError, match="the location in Spark's catalog is"):
        frame.write.mode("append").saveAsTable("spelt_external", "delta", path=str(tmp_path / "x"))
    registered.sql("DROP TABLE spelt_external")
    assert DeltaTable(path).count() == 2


def test_rows_are_inserted_by_their_places(registered: SparkSession, frame: DataFrame) -> None:
    frame.write.format("delta").saveAsTable("spelt")
    more = registered.createDataFrame([("c", 3)], "name STRING, id INT").select("id", "name")
    more.toDF("x", "y").write.insertInto("spelt")
    assert rows(registered.table("spelt")) == [*ROWS, (3, "c")]
    more.write.insertInto("spelt", overwrite=True)
    assert rows(registered.table("spelt")) == [(3, "c")]
    with pytest.raises(SchemaMismatchError, match="expected 2 columns"):
        registered.range(1).write.insertInto("spelt")
    frame.write.mode("overwrite").insertInto("spelt")
    assert rows(registered.table("spelt")) == ROWS


def test_statements_of_spark_sql(registered: SparkSession, tmp_path: Path) -> None:
    run: Callable[[str], DataFrame] = registered.sql
    where = tmp_path / "t"
    run(f"CREATE TABLE spelt (id LONG, day DATE) USING delta LOCATION '{where}'")
    with pytest.raises(TableExistsError, match=r"spelt.*already exists"):
        run("CREATE TABLE spelt (id LONG) USING delta")
    run("CREATE TABLE IF NOT EXISTS spelt (other STRING) USING deltalog")
    run("INSERT INTO spelt VALUES (1, DATE'2024-01-01'), (2, NULL)")
    assert run("SELECT id FROM spelt WHERE day IS NULL").head() == (2,)
    assert rows(registered.sql("SELECT id FROM spelt WHERE id = ?", args=[1])) == [(1,)]
    run("UPDATE spelt SET day = DATE'2024-02-02' WHERE id = 2")
    run(
        "MERGE INTO spelt AS t USING (SELECT 2L AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    assert DeltaTable(where).count() == 1
    run("ALTER TABLE spelt ADD COLUMNS (x DOUBLE)")
    assert registered.table("spelt").columns == ["id", "day", "x"]
    assert [one.name for one in registered.catalog.listColumns("spelt")] == ["id", "day", "x"]
    assert run("DESCRIBE HISTORY spelt").count() == DeltaTable(where).version() + 1
    run("ALTER TABLE spelt RENAME TO spelt_2")
    assert run("SELECT * FROM spelt_2").count() == 1
    run("OPTIMIZE spelt_2")
    run(f"DELETE FROM delta.`{where}`")
    assert run(f"SELECT * FROM delta.`{where}`").count() == 0
    run("CREATE OR REPLACE TABLE spelt_2 (only STRING) USING delta")
    assert registered.table("spelt_2").columns == ["only"]
    run("CREATE TABLE spelt USING delta AS SELECT 7 AS n")
    assert rows(registered.table("spelt")) == [(7,)]


def test_vacuum_follows_the_session(registered: SparkSession, tmp_path: Path) -> None:
    registered.range(3).write.format("delta").save(str(tmp_path / "t"))
    registered.range(1).write.format("delta").mode("overwrite").save(str(tmp_path / "t"))
    with pytest.raises(InvalidInputError, match="retention"):
        registered.sql(f"VACUUM delta.`{tmp_path / 't'}` RETAIN 0 HOURS")
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    registered.conf.set(check, "false")
    try:
        registered.sql(f"VACUUM delta.`{tmp_path / 't'}` RETAIN 0 HOURS")
    finally:
        registered.conf.unset(check)
    kept = {Path(uri).name for uri in DeltaTable(tmp_path / "t").file_uris()}
    assert {one.name for one in (tmp_path / "t").glob("*.parquet")} == kept


def test_parquet_becomes_a_table(
    registered: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    frame.write.partitionBy("id").parquet(str(tmp_path / "p"))
    registered.sql(f"CONVERT TO DELTA parquet.`{tmp_path / 'p'}` PARTITIONED BY (id LONG)")
    found = registered.read.format("delta").load(str(tmp_path / "p"))
    assert rows(found.select("id", "name")) == ROWS


def test_what_is_not_ours_is_spark_s(registered: SparkSession, frame: DataFrame) -> None:
    frame.createOrReplaceTempView("spelt_view")
    assert rows(registered.sql("SELECT * FROM spelt_view")) == ROWS
    assert registered.sql("SELECT 1 AS delta").head() == (1,)
    assert registered.sql("SELECT * FROM {some}", some=frame).count() == 2
    registered.sql("CREATE TABLE spelt_parquet USING parquet AS SELECT * FROM spelt_view")
    assert registered.sql("SELECT * FROM spelt_parquet").count() == 2
    registered.sql("SET spark.sql.shuffle.partitions = 2")
    with pytest.raises(AnalysisException, match="nobody_knows"):
        registered.sql("SELECT * FROM nobody_knows")
    with pytest.raises(AnalysisException, match="nobody_knows"):
        registered.table("nobody_knows")
    with pytest.raises(AnalysisException):
        registered.sql("SELEC 1")


def test_a_view_comes_before_a_table(registered: SparkSession, frame: DataFrame) -> None:
    frame.write.format("delta").saveAsTable("spelt")
    registered.range(5).createOrReplaceTempView("spelt")
    assert registered.table("spelt").count() == 5
    assert registered.sql("SELECT * FROM spelt").count() == 5
    registered.catalog.dropTempView("spelt")
    assert registered.table("spelt").count() == 2


def test_the_catalog_s_own_methods(
    registered: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    frame.write.format("delta").save(path)
    found = registered.catalog.createTable("spelt_external", path=path, source="delta")
    assert rows(found) == ROWS
    assert rows(SparkTable.forName(registered, "spelt_external").toDF()) == ROWS
    with pytest.raises(InvalidInputError, match="schema="):
        registered.catalog.createTable("spelt", source="delta")
    made = registered.catalog.createTable("spelt", source="deltalog", schema=frame.schema)
    assert made.count() == 0
    frame.write.insertInto("spelt")
    assert rows(registered.table("spelt")) == ROWS


def test_the_builder_gives_names(registered: SparkSession) -> None:
    def built(begin: Callable[..., Any], column: str) -> SparkTable:
        table: SparkTable = begin(registered).tableName("spelt").addColumn(column, "INT").execute()
        return table

    with pytest.raises(TableNotFoundError, match=r"spelt.*cannot be found") as caught:
        built(SparkTable.replace, "a")
    assert isinstance(caught.value, AnalysisException)
    assert built(SparkTable.create, "a").toDF().columns == ["a"]
    with pytest.raises(TableExistsError, match=r"spelt.*already exists"):
        built(SparkTable.create, "b")
    assert built(SparkTable.createIfNotExists, "b").toDF().columns == ["a"]
    assert built(SparkTable.replace, "c").toDF().columns == ["c"]
    assert registered.table("spelt").columns == ["c"]


# --- streams


def test_streams_go_to_names_and_partitions(
    registered: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    source, target = str(tmp_path / "s"), str(tmp_path / "p")
    frame.write.format("delta").save(source)

    def stream() -> Any:
        read = registered.readStream.format("delta").load(source).writeStream.format("delta")
        return read.trigger(availableNow=True)

    kept = {"checkpointLocation": str(tmp_path / "c1")}
    stream().partitionBy("name").options(**kept).start(target).awaitTermination()
    assert list(DeltaTable(target).metadata().partition_columns) == ["name"]
    named = stream().option("checkpointLocation", str(tmp_path / "c2"))
    named.toTable("spelt").awaitTermination()
    assert rows(registered.table("spelt")) == ROWS
    onwards = registered.readStream.table("spelt").writeStream.format("delta")
    onwards = onwards.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "c3"))
    onwards.start(str(tmp_path / "o")).awaitTermination()
    assert DeltaTable(tmp_path / "o").count() == 2


# --- what Spark knows of NULL


def test_not_null_partitions_are_not_null(registered: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    registered.sql(
        f"CREATE TABLE delta.`{path}` (day STRING NOT NULL COMMENT 'c', id INT NOT NULL, n INT) "
        "USING delta PARTITIONED BY (day)"
    )

    def read() -> DataFrame:
        return registered.read.format("delta").load(path)

    assert [one.nullable for one in read().schema] == [False, True, True]
    registered.sql(f"INSERT INTO delta.`{path}` VALUES ('a', 1, 1), ('b', 2, NULL)")
    found = read()
    assert [one.nullable for one in found.schema] == [False, True, True]
    assert found.schema["day"].metadata == {"comment": "c"}
    assert "PartitionFilters: [(coalesce(day" in plan(found.where("day = 'b'"))
    assert rows(found.where("day = 'b'")) == [("b", 2, None)]
    registered.conf.set("spark.deltalog.keepNotNull", "true")
    try:
        assert [one.nullable for one in read().schema] == [False, False, True]
        assert rows(read().where("id > 1")) == [("b", 2, None)]
    finally:
        registered.conf.unset("spark.deltalog.keepNotNull")


def test_a_null_where_none_may_be_ends_the_query(registered: SparkSession, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq  # as another writer would

    path = tmp_path / "t"
    registered.sql(f"CREATE TABLE delta.`{path}` (id LONG NOT NULL) USING delta")
    registered.sql(f"INSERT INTO delta.`{path}` VALUES (1)")
    (file,) = DeltaTable(path).file_uris()
    pq.write_table(pa.table({"id": pa.array([None], pa.int64())}), file)
    read = registered.read.format("delta")
    assert read.load(str(path)).collect()[0][0] is None
    registered.conf.set("spark.deltalog.keepNotNull", "true")
    try:
        with pytest.raises(Exception, match="it is NOT NULL, and a file has NULL"):
            registered.read.format("delta").load(str(path)).collect()
    finally:
        registered.conf.unset("spark.deltalog.keepNotNull")


# --- what is in the way


def test_the_catalog_of_a_jar_that_is_not_there_is_named(spark: SparkSession) -> None:
    name = "spark.sql.catalog.spark_catalog"
    before = spark.conf.get(name, None)
    spark.conf.set(name, "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    try:
        calls: list[Callable[[], object]] = [
            lambda: deltalog.spark.register(spark),
            lambda: deltalog.spark.write(spark.range(1), "memory://nowhere"),
            lambda: check_catalog(spark, spark.conf.getAll),
        ]
        for call in calls:
            with pytest.raises(
                InvalidInputError, match=f"{name}.*remove the setting.*spark.sql.extensions"
            ):
                call()
    finally:
        spark.conf.set(name, before or "builtin")


def test_a_name_in_a_session_that_is_not_registered(spark: SparkSession, frame: DataFrame) -> None:
    with pytest.raises(Exception, match=r"deltalog.spark.register"):
        frame.write.format("deltalog").mode("append").saveAsTable("spelt_unregistered")
    spark.sql("DROP TABLE IF EXISTS spelt_unregistered")
    with pytest.raises(InvalidInputError, match=r"deltalog.spark.register"):
        SparkTable.create(spark).tableName("nowhere").addColumn("a", "INT").execute()


def test_hadoop_s_settings_of_other_stores_are_passed_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    deltalog.spark.write(spark.range(2), tmp_path / "t")
    path = str(tmp_path / "t")
    given = {"fs.s3a.access.key": "k", "spark.hadoop.fs.fake.impl": "x.Y"}
    assert SparkTable.forPath(spark, path, given).toDF().count() == 2
    for wrong in ({"fs.file.impl": "x"}, {"parquet.block.size": "1"}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            SparkTable.forPath(spark, path, wrong)
    with pytest.raises(InvalidInputError, match=r"fs\.s3a\.secret\.key") as caught:
        SparkTable.forPath(spark, "s3a://b/t", {"fs.s3a.secret.key": "hidden"})
    assert "hidden" not in str(caught.value)
    with pytest.raises(TypeError, match="hadoopConf"):
        SparkTable.forPath(spark, path, "x")  # type: ignore[arg-type]


def test_optimize_tells_which_columns_partition(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    data = spark.createDataFrame([(1, 1), (2, 2), (3, 2)], "p LONG, v LONG")
    deltalog.spark.write(data, path, partition_by="p")
    table = SparkTable.forPath(spark, path)
    with pytest.raises(InvalidInputError, match=r"non-partition column 'v'.*\[p\]"):
        table.optimize().where("v = 1").executeCompaction()
    with pytest.raises(InvalidInputError, match="p is a partition column"):
        table.optimize().executeZOrderBy("p")
    (row,) = table.optimize().executeZOrderBy("v").select("metrics.*").collect()
    stats = row.zOrderStats
    assert (stats.strategyName, stats.numOutputCubes) == ("all", 3)
    assert stats.mergedFiles.num == row.numFilesRemoved


def test_every_error_is_deltalog_s(registered: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DeltaError):
        registered.range(1).write.format("delta").save(f"{tmp_path}/t@v3")
    with pytest.raises(InvalidInputError, match="expected its location"):
        registered.range(1).write.format("delta").save()
    both = registered.range(1).write.format("delta").option("path", "a")
    with pytest.raises(InvalidInputError, match="both 'b' and 'a'"):
        both.save("b")


def test_a_stream_that_cannot_be_read_is_refused_by_load(
    registered: SparkSession, tmp_path: Path
) -> None:
    write_deltalake(tmp_path / "t", {"id": [1]})
    stream: Any = registered.readStream.format("delta")
    with pytest.raises(TableNotFoundError, match="found nothing there") as caught:
        stream.load(str(tmp_path / "none"))
    assert isinstance(caught.value, AnalysisException)
    for option, value, message in (
        ("versionAsOf", 0, "use startingVersion for a stream"),
        ("maxFilesPerTrigger", "x", "expected a whole number"),
        ("foo", 1, "cannot use the option 'foo'"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            registered.readStream.format("delta").option(option, value).load(str(tmp_path / "t"))


def test_an_existing_table_gets_a_name_of_the_catalog(
    registered: SparkSession, tmp_path: Path
) -> None:
    where = tmp_path / "t"
    write_deltalake(where, {"id": [1, 2]})
    with pytest.raises(InvalidInputError, match="the columns of the existing table differ"):
        registered.sql(f"CREATE TABLE spelt (other INT) USING delta LOCATION '{where}'")
    registered.sql(f"CREATE TABLE spelt USING delta LOCATION '{where}'")
    assert registered.table("spelt").count() == 2
    registered.sql("DROP TABLE spelt")
    assert DeltaTable(where).version() == 0


def test_statements_about_locations_are_answered(registered: SparkSession, tmp_path: Path) -> None:
    where = tmp_path / "t"
    write_deltalake(where, {"id": [1, 2]})
    with pytest.raises(InvalidInputError, match="deltalog does not support this form"):
        registered.sql(f"ANALYZE TABLE delta.`{where}` COMPUTE STATISTICS")
    with pytest.raises(TableNotFoundError, match="found nothing there; check the location"):
        registered.sql(f"DELETE FROM delta.`{tmp_path / 'none'}` WHERE id = 1")
