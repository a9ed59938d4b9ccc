"""Statements of registered sessions that hold others: views, EXECUTE IMMEDIATE and CACHE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog.errors import InvalidInputError, TableNotFoundError


@pytest.fixture
def lake(spark: SparkSession) -> Iterator[SparkSession]:
    """A table `k` of the rows 1 a, 2 b."""
    deltalog.spark.register(spark, name="delta")
    spark.sql("CREATE TABLE k USING delta AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t (id, v)")
    yield spark
    deltalog.spark.register(spark, name="delta")
    spark.sql("DROP TABLE k")
    for view in ("shown", "of_spark"):
        spark.catalog.dropTempView(view)


def test_a_temporary_view_shows_a_table(lake: SparkSession) -> None:
    lake.sql("CREATE TEMP VIEW shown AS SELECT /*+ COALESCE(1) */ default.k.id FROM k")
    assert sorted(lake.sql("SELECT id FROM shown").collect()) == [(1,), (2,)]
    lake.sql("CREATE OR REPLACE TEMPORARY VIEW shown AS (SELECT v FROM k WHERE id = 1)")
    assert lake.table("shown").collect() == [("a",)]
    lake.sql("CREATE TEMP VIEW of_spark AS SELECT 1 AS one")
    assert lake.table("of_spark").collect() == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM shown WHERE id = 1",
        "UPDATE shown SET id = 1",
        "INSERT INTO shown SELECT id, v FROM k",
        "INSERT OVERWRITE shown VALUES (1, 'a')",
        "MERGE INTO shown USING k ON shown.id = k.id WHEN MATCHED THEN DELETE",
        "FROM k INSERT INTO shown SELECT id, v",
    ],
)
def test_rows_are_not_changed_through_views(lake: SparkSession, statement: str) -> None:
    lake.sql("CREATE TEMP VIEW shown AS SELECT * FROM k")
    with pytest.raises(InvalidInputError, match="through the view shown"):
        lake.sql(statement)
    assert lake.table("k").count() == 2


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("CREATE VIEW kept AS SELECT * FROM k", "CREATE TEMPORARY VIEW"),
        ("CACHE TABLE k", "cache a dataframe"),
        ("CACHE LAZY TABLE c OPTIONS ('a' = 'b') AS SELECT * FROM k", "cache a dataframe"),
        ("EXECUTE IMMEDIATE 'SELECT id FROM k' INTO found", "set the variables"),
    ],
)
def test_what_only_spark_s_tables_can_be_in(
    lake: SparkSession, statement: str, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        lake.sql(statement)


def test_texts_are_executed(lake: SparkSession) -> None:
    count = "EXECUTE IMMEDIATE 'SELECT count(*) FROM k WHERE id > ?' USING 1"
    assert lake.sql(count).collect() == [(1,)]
    lake.sql("EXECUTE IMMEDIATE 'INSERT INTO k SELECT 3, :x' USING ('c' AS x)")
    lake.sql("DECLARE OR REPLACE VARIABLE change STRING DEFAULT 'DELETE FROM k WHERE id < 3'")
    assert lake.sql("EXECUTE IMMEDIATE change").collect() == [(2,)]
    assert lake.sql("EXECUTE IMMEDIATE concat('TABLE ', 'k')").collect() == [(3, "c")]
    assert lake.sql("EXECUTE IMMEDIATE 'SELECT ?' USING 7").collect() == [(7,)]
    with pytest.raises(ParseException):
        lake.sql("EXECUTE IMMEDIATE 'SELEC 1'")
    lake.sql("DROP TEMPORARY VARIABLE change")


def test_tables_of_other_formats_get_our_rows(lake: SparkSession, tmp_path: Path) -> None:
    try:
        lake.sql("CREATE TABLE other USING parquet AS SELECT id, v FROM default.k")
        lake.sql("INSERT INTO other (v, id) SELECT /*+ COALESCE(1) */ v, id + :n FROM k", {"n": 10})
        lake.sql("WITH c AS (SELECT * FROM k) INSERT INTO TABLE other SELECT id + 20, v FROM c")
        lake.sql("FROM k INSERT INTO other SELECT id + 30, v WHERE id = 1")
        lake.sql("INSERT INTO other VALUES (50, 'own')")
        assert [row.id for row in lake.table("other").sort("id").collect()] == [
            1, 2, 11, 12, 21, 22, 31, 50,
        ]  # fmt: skip
        lake.sql("INSERT OVERWRITE TABLE other SELECT id, 'v' FROM {k} k", k=lake.table("k"))
        lake.sql("INSERT OVERWRITE TABLE other TABLE k")
        assert sorted(lake.table("other").collect()) == [(1, "a"), (2, "b")]
    finally:
        lake.sql("DROP TABLE IF EXISTS other")
    place = str(tmp_path / "rows")
    lake.sql(f"INSERT OVERWRITE DIRECTORY '{place}' USING parquet SELECT id FROM k")
    assert sorted(lake.read.parquet(place).collect()) == [(1,), (2,)]
    assert lake.sql("SHOW VIEWS LIKE 'deltalog_rows*'").count() == 0
    with pytest.raises(TableNotFoundError):
        lake.sql("INSERT INTO absent SELECT * FROM k")
