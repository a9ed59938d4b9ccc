# names and locations of tables are in the statements
"""`df.writeTo`, `df.mergeInto`, CHAR and VARCHAR, rows per file: PySpark's spellings of tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # what was written
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world
from pyspark.sql import types as spark_types

import deltalog.spark
from deltalog import DeltaTable
from deltalog.errors import (
    ConstraintViolationError,
    InvalidInputError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
)
from deltalog.spark import DeltaTable as SparkTable
from tests.spark.test_spellings import frame, operations, registered, rows

__all__ = ["frame", "registered"]

KEY = "__CHAR_VARCHAR_TYPE_STRING"


# --- df.writeTo


def test_tables_are_created_replaced_and_appended_to(
    registered: SparkSession, frame: DataFrame
) -> None:
    (
        frame.writeTo("spelt").using("delta").tableProperty("delta.appendOnly", "false")
        .tableProperty("mine", "x").tableProperty("comment", "what").partitionedBy("name").create()
    )  # fmt: skip
    made = SparkTable.forName(registered, "spelt").core
    assert rows(registered.table("spelt")) == [(1, "a"), (2, "b")]
    assert list(made.metadata().partition_columns) == ["name"]
    assert made.metadata().description == "what"
    assert made.metadata().configuration == {"delta.appendOnly": "false", "mine": "x"}
    with pytest.raises(
        AnalysisException, match=r"spelt.*already exists.*createOrReplace"
    ) as caught:
        frame.writeTo("spelt").using("delta").create()
    assert isinstance(caught.value, TableExistsError)
    frame.select("name", "id").writeTo("spelt").append()  # by names, not by places
    assert registered.table("spelt").where("id = 1").count() == 2
    wider = frame.withColumn("x", F.lit(1.5))
    with pytest.raises(SchemaMismatchError):
        wider.writeTo("spelt").append()
    wider.writeTo("spelt").option("mergeSchema", "true").append()
    assert registered.table("spelt").columns == ["id", "name", "x"]
    registered.range(3).writeTo("spelt").using("delta").replace()
    assert registered.table("spelt").columns == ["id"]
    assert not made.metadata().configuration.get("none")
    assert not SparkTable.forName(registered, "spelt").core.metadata().partition_columns
    frame.writeTo("spelt").using("deltalog").clusterBy("id").createOrReplace()
    assert rows(registered.table("spelt")) == [(1, "a"), (2, "b")]
    described = SparkTable.forName(registered, "spelt").detail().head()
    assert described is not None
    assert described.clusteringColumns == ["id"]
    assert operations(SparkTable.forName(registered, "spelt").core.table_uri)[:2] == [
        "CREATE OR REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE AS SELECT",
    ]


def test_a_table_of_a_location_is_written_to(
    registered: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    with pytest.raises(TableNotFoundError, match=r"cannot be found.*createOrReplace"):
        frame.writeTo(name).replace()
    with pytest.raises(TableNotFoundError, match="create"):
        frame.writeTo(name).append()
    frame.writeTo(name).option("compression", "gzip").option("userMetadata", "why").create()
    assert rows(registered.table(name)) == [(1, "a"), (2, "b")]
    file = DeltaTable(tmp_path / "t").file_uris()[0]
    assert pq.read_metadata(file).row_group(0).column(0).compression == "GZIP"
    assert DeltaTable(tmp_path / "t").history(1)[0]["userMetadata"] == "why"
    where = tmp_path / "elsewhere"
    frame.writeTo("spelt_external").using("delta").option("path", str(where)).create()
    assert DeltaTable(where).count() == 2
    frame.writeTo("spelt_external").append()
    assert DeltaTable(where).count() == 4


def test_rows_are_overwritten(registered: SparkSession, frame: DataFrame) -> None:
    frame.writeTo("spelt").using("delta").partitionedBy(F.col("name")).create()
    other = registered.createDataFrame([(9, "b")], frame.schema)
    other.writeTo("spelt").overwrite(F.col("name") == "b")
    assert rows(registered.table("spelt")) == [(1, "a"), (9, "b")]
    with pytest.raises(ConstraintViolationError, match="does not match the condition"):
        other.writeTo("spelt").overwrite(F.col("name") == "a")
    assert rows(registered.table("spelt")) == [(1, "a"), (9, "b")]
    registered.createDataFrame([(7, "a")], frame.schema).writeTo("spelt").overwritePartitions()
    assert rows(registered.table("spelt")) == [(7, "a"), (9, "b")]
    frame.writeTo("spelt").overwrite(F.lit(True))  # Spark's
    assert rows(registered.table("spelt")) == [(1, "a"), (2, "b")]
    with pytest.raises(InvalidInputError, match="overwriteSchema"):
        frame.writeTo("spelt").option("overwriteSchema", "true").overwrite(F.lit(True))
    with pytest.raises(InvalidInputError, match="partition by it"):
        frame.writeTo("spelt_2").using("delta").partitionedBy(F.bucket(2, "id"))


def test_changes_of_an_overwrite_are_told(registered: SparkSession, frame: DataFrame) -> None:
    feed = "delta.enableChangeDataFeed"
    frame.writeTo("spelt").using("delta").tableProperty(feed, "true").create()
    other = registered.createDataFrame([(2, "c")], frame.schema)
    other.writeTo("spelt").overwrite(F.col("id") == 2)
    table = SparkTable.forName(registered, "spelt").core
    found = table.load_cdf(1, columns=["id", "name", "_change_type"]).to_table().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(2, "b", "delete"), (2, "c", "insert")]


def test_tables_of_others_are_written_by_spark(registered: SparkSession, frame: DataFrame) -> None:
    frame.writeTo("spelt_parquet").using("parquet").create()
    assert "parquet" in str(registered.sql("SHOW CREATE TABLE spelt_parquet").head()).lower()
    with pytest.raises(AnalysisException):
        frame.writeTo("nobody_knows").append()
    deltalog.spark.unregister(registered)
    deltalog.spark.unregister(registered, name="delta")
    assert type(frame.writeTo("x")).__module__.startswith("pyspark.")
    assert "_asked" not in vars(frame.writeTo("x"))


# --- df.mergeInto


def test_a_frame_is_merged_into_a_table(registered: SparkSession, frame: DataFrame) -> None:
    frame.writeTo("spelt").using("delta").create()
    source = registered.createDataFrame(
        [(2, "B", 1.5), (3, "C", 2.5)], "id LONG, name STRING, x DOUBLE"
    )
    matches = F.expr("s.id = spelt.id")
    (
        source.alias("s").mergeInto("spelt", matches)
        .whenMatched(F.expr("s.name = 'nobody'")).delete()
        .whenMatched().update({"name": F.col("s.name")})
        .whenNotMatched(F.expr("s.id > 100")).insert({"id": F.col("s.id")})
        .whenNotMatchedBySource().update({"name": F.lit("gone")})
        .merge()
    )  # fmt: skip
    assert rows(registered.table("spelt")) == [(1, "gone"), (2, "B")]
    (
        source.alias("s").mergeInto("spelt", matches).withSchemaEvolution()
        .whenMatched().updateAll().whenNotMatched().insertAll().merge()
    )  # fmt: skip
    assert rows(registered.table("spelt").na.fill(0.0)) == [
        (1, "gone", 0.0),
        (2, "B", 1.5),
        (3, "C", 2.5),
    ]
    assert [one.name for one in registered.catalog.listColumns("spelt")] == ["id", "name", "x"]
    source.alias("s").mergeInto("spelt", matches).whenNotMatchedBySource().delete().merge()
    assert registered.table("spelt").count() == 2
    with pytest.raises(InvalidInputError, match="there are no source values"):
        source.mergeInto("spelt", matches).whenNotMatchedBySource().updateAll()
    with pytest.raises(InvalidInputError):
        source.alias("s").mergeInto("spelt", matches).merge()
    with pytest.raises(TypeError, match="condition"):
        source.mergeInto("spelt", 5)  # type: ignore[arg-type]


def test_a_merge_into_a_location(
    registered: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    frame.write.format("delta").save(str(tmp_path / "t"))
    more = registered.createDataFrame([(2, "x"), (5, "y")], "key LONG, name STRING")
    (
        more.mergeInto(f"delta.`{tmp_path / 't'}`", F.col("id") == F.col("key"))
        .whenMatched().delete().merge()
    )  # fmt: skip
    assert DeltaTable(tmp_path / "t").count() == 1
    with pytest.raises(AnalysisException):
        frame.mergeInto("nobody_knows", F.lit(True)).whenMatched().delete().merge()


# --- maxRecordsPerFile


def _counts(path: Path) -> list[int]:
    found: list[Any] = DeltaTable(path).get_add_actions()["num_records"].to_pylist()
    return sorted(found, reverse=True)


def test_files_have_so_many_rows_at_most(registered: SparkSession, tmp_path: Path) -> None:
    data = registered.range(25).coalesce(1)
    data.write.format("delta").option("maxRecordsPerFile", 10).save(str(tmp_path / "o"))
    assert _counts(tmp_path / "o") == [10, 10, 5]
    deltalog.spark.write(data, tmp_path / "w", max_records_per_file=20)
    assert _counts(tmp_path / "w") == [20, 5]
    registered.conf.set("spark.sql.files.maxRecordsPerFile", "12")
    try:
        data.write.format("delta").save(str(tmp_path / "s"))
        assert _counts(tmp_path / "s") == [12, 12, 1]
        data.write.format("delta").option("maxRecordsPerFile", 0).save(str(tmp_path / "n"))
        assert _counts(tmp_path / "n") == [25]
        deltalog.spark.unregister(registered)
        deltalog.spark.unregister(registered, name="delta")
        data.write.format("deltalog").mode("append").save(str(tmp_path / "f"))
        assert _counts(tmp_path / "f") == [12, 12, 1]
    finally:
        registered.conf.unset("spark.sql.files.maxRecordsPerFile")


# --- CHAR and VARCHAR


def test_columns_of_limited_length(registered: SparkSession, tmp_path: Path) -> None:
    registered.sql("CREATE TABLE spelt (code CHAR(2), name VARCHAR(3), n INT) USING delta")
    fields = spark_types.StructType(
        [
            spark_types.StructField("code", spark_types.CharType(2)),
            spark_types.StructField("name", spark_types.VarcharType(3)),
            spark_types.StructField("n", spark_types.IntegerType()),
        ]
    )
    registered.catalog.createTable("spelt_2", source="delta", schema=fields)
    built = SparkTable.create(registered).location(str(tmp_path / "b"))
    built = built.addColumn("code", "CHAR(2)").addColumn("name", spark_types.VarcharType(3))
    built.addColumns([fields.fields[2]]).execute()
    for name in ("spelt", "spelt_2", f"delta.`{tmp_path / 'b'}`"):
        table = SparkTable.forName(registered, name).core
        told: list[Any] = [field.metadata.get(KEY) for field in table.schema()]
        assert told == ["char(2)", "varchar(3)", None]
        assert [str(field.type) for field in table.schema()] == ["string", "string", "integer"]
        good = registered.createDataFrame([("a", "xyz", 1)], "code STRING, name STRING, n INT")
        good.writeTo(name).append()
        assert registered.table(name).count() == 1
        for wrong in (("abc", "x", 1), ("a", "wxyz", 1)):
            with pytest.raises(ConstraintViolationError, match=r"char\(\d\)"):
                registered.createDataFrame([wrong], good.schema).writeTo(name).append()
        assert registered.table(name).count() == 1


def test_limits_inside_of_columns(registered: SparkSession, tmp_path: Path) -> None:
    fields = "tags ARRAY<VARCHAR(2)>, s STRUCT<a: CHAR(1), b: INT>, m MAP<STRING, VARCHAR(1)>"
    schema: Any = spark_types.StructType.fromDDL(fields)
    built = SparkTable.create(registered).location(str(tmp_path / "t"))
    table = built.addColumns(schema).execute().core
    assert [field.metadata[KEY] for field in table.schema()] == [
        "array<varchar(2)>",
        "struct<a:char(1),b:int>",
        "map<string,varchar(1)>",
    ]
    wrong = registered.sql(
        "SELECT array('abc') AS tags, named_struct('a', 'x', 'b', 1) AS s, map('k', 'v') AS m"
    )
    with pytest.raises(ConstraintViolationError, match=r"varchar\(2\)"):
        wrong.write.format("delta").mode("append").save(str(tmp_path / "t"))


# --- names are looked up once


def test_names_of_views_cost_no_description(
    registered: SparkSession, frame: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame.createOrReplaceTempView("spelt_view")
    frame.writeTo("spelt").using("delta").create()
    asked: list[str] = []
    real = type(registered).sql

    def noting(session: SparkSession, text: str, *args: Any, **more: Any) -> DataFrame:
        asked.append(text)
        return real(session, text, *args, **more)

    monkeypatch.setattr(type(registered), "sql", noting)
    assert registered.sql("SELECT * FROM spelt_view").count() == 2
    assert [text.split()[0] for text in asked] == ["SELECT"]
    asked.clear()
    assert registered.sql("SELECT * FROM spelt JOIN spelt AS other USING (id)").count() == 2
    assert sum(text.startswith("SHOW TABLE EXTENDED") for text in asked) == 1
    assert not any(text.startswith("DESCRIBE") for text in asked)
