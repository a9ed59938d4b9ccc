"""Errors on Spark advise Spark's methods, options and statements, not those of deltalog's API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, ParseException

import deltalog.spark
from deltalog import write_deltalake
from deltalog.errors import DeltaError, InvalidInputError, TableNotFoundError
from deltalog.spark import DeltaTable
from deltalog.spark.session.words import in_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


def _changes(spark: SparkSession, place: str) -> object:
    options = {"readChangeFeed": "true", "startingVersion": "0"}
    return spark.read.format("delta").options(**options).load(place)


def _merge(spark: SparkSession, place: str) -> object:
    table = DeltaTable.forPath(spark, place).alias("t")
    return table.merge(spark.range(1).alias("s"), "t.id = s.id").execute()


def _of_python(spark: SparkSession, place: str) -> object:
    source: Any = {"id": [1]}
    return DeltaTable.forPath(spark, place).merge(source, "true")


@pytest.mark.parametrize(
    ("act", "advice"),
    [
        (
            lambda spark, place: spark.read.format("delta").load(f"{place}/none"),
            "df.write.format('delta').save(location) makes one",
        ),
        (_merge, "such as whenMatchedUpdateAll() or whenNotMatchedInsertAll()"),
        (
            lambda spark, place: (
                spark.range(1)
                .selectExpr("id", "1 AS extra")
                .write.format("delta")
                .mode("append")
                .save(place)
            ),
            "option('mergeSchema', 'true') adds new columns",
        ),
        (_changes, "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') switches it on"),
        (
            lambda spark, place: DeltaTable.forPath(spark, place).vacuum(0),
            "; in a Spark session, set spark.databricks.delta.retentionDurationCheck.enabled",
        ),
        (_of_python, "found {'id': [1]}, a dict; spark.createDataFrame makes one of rows"),
        (
            lambda spark, place: spark.read.format("delta").load([place, place]),
            "load takes the location of one table; unite the frames of several by union",
        ),
    ],
)
def test_advice(
    spark: SparkSession,
    tmp_path: Path,
    act: Callable[[SparkSession, str], object],
    advice: str,
) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1]})
    deltalog.spark.register(spark, "delta")
    try:
        with pytest.raises(DeltaError) as error:
            act(spark, place)
    finally:
        deltalog.spark.unregister(spark, "delta")
    assert advice in str(error.value)


@pytest.mark.parametrize(
    ("python", "spark_text"),
    [
        ("run optimize.purge() first", "run REORG TABLE … APPLY (PURGE) first"),
        ("its rows from the table with repair()", "from the table with FSCK REPAIR TABLE …"),
        ("cannot read mode='append' = 1", "cannot read mode='append' = 1"),
        ("cannot read repair() = 1", "cannot read repair() = 1"),
        ("call table.repair()", "call table.repair()"),
        (
            "alter.add_feature('checkConstraints', allow_protocol_versions_increase=True) adds it",
            "addFeatureSupport('checkConstraints') adds it",
        ),
        ("use mode='append' or mode='overwrite'", "use mode('append') or mode('overwrite')"),
        ("nothing to advise", "nothing to advise"),
    ],
)
def test_words(python: str, spark_text: str) -> None:
    assert in_spark(python).endswith(spark_text)


def test_a_new_table_has_known_properties_only(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(place).addColumn("id", "bigint")
    with pytest.raises(InvalidInputError, match=r"did you mean 'delta\.appendOnly'"):
        builder.property("delta.appendOnyl", "true").execute()
    deltalog.spark.register(spark, "delta")
    try:
        made = spark.range(1).writeTo(f"delta.`{place}`").using("delta")
        with pytest.raises(InvalidInputError, match=r"did you mean 'delta\.appendOnly'"):
            made.tableProperty("delta.appendOnyl", "true").create()
    finally:
        deltalog.spark.unregister(spark, "delta")
    assert not Path(place, "_delta_log").exists()


@pytest.mark.parametrize(
    "condition", ["id = 1 AND", "id = 1 x", "nullif(id, 2) = 1 x", "id = 99) OR (id = 1", "id, 1"]
)
def test_a_name_after_a_condition_is_an_error(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    """Spark takes it for the name of a column, and the rest of the condition would be lost."""
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1, 2]})
    table: Any = DeltaTable.forPath(spark, place)
    merge = table.alias("t").merge(spark.range(3).alias("s"), f"t.id = s.id AND t.{condition}")
    source = f"delta.`{place}`"
    acts: list[Callable[[], object]] = [
        lambda: table.delete(condition),
        lambda: table.update(condition, {"id": "3"}),
        lambda: table.update("id = 1", {"id": "3 x"}),
        merge.whenMatchedDelete().execute,
        lambda: deltalog.spark.sql(spark, f"DELETE FROM {source} WHERE {condition}"),  # noqa: S608  # a path of pytest
        lambda: deltalog.spark.sql(spark, f"UPDATE {source} SET id = 3 x"),  # noqa: S608  # as above
    ]
    for act in acts:
        with pytest.raises((ParseException, AnalysisException, InvalidInputError)):
            act()
    table.update("id = 2", {"id": "CAST(id AS BIGINT) AS id"})  # as Delta Spark accepts it
    table.delete("id = 1 -- a comment")
    assert [row.id for row in table.toDF().collect()] == [2]
    assert table.history(1).head().version == 2


@pytest.mark.parametrize(
    "statement",
    [
        "VACUUM nope",
        "OPTIMIZE nope",
        "DESCRIBE DETAIL nope",
        "describe history nope",
        "RESTORE nope TO VERSION AS OF 1",
        "GENERATE symlink_format_manifest FOR TABLE nope",
        "REORG TABLE nope APPLY (PURGE)",
        "FSCK REPAIR TABLE nope",
    ],
)
def test_delta_s_own_statements_name_a_table_that_is_missing(
    spark: SparkSession, statement: str
) -> None:
    expected = "cannot find the Delta table nope: expected a table in Spark's catalog"
    with pytest.raises(TableNotFoundError, match=expected):
        deltalog.spark.sql(spark, statement)
    deltalog.spark.register(spark, "delta")
    try:
        with pytest.raises(TableNotFoundError, match=expected):
            spark.sql(statement)
    finally:
        deltalog.spark.unregister(spark, "delta")


def test_the_format_of_the_official_sharing_connector(spark: SparkSession, tmp_path: Path) -> None:
    deltalog.spark.register(spark, "delta")
    try:
        reader = spark.read.format("deltaSharing")
        with pytest.raises(InvalidInputError, match=r"^cannot read the profile '.*': there is no"):
            reader.load(f"{tmp_path}/none.share#a.b.c")
    finally:
        deltalog.spark.unregister(spark, "delta")
