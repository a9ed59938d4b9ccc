"""INSERT in registered sessions: WITH and FROM before it, and columns that it adds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog.errors import SchemaMismatchError

AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"


@pytest.fixture
def lake(spark: SparkSession) -> Iterator[SparkSession]:
    """A table `k` of the row 1 a, and an empty one, `e`."""
    deltalog.spark.register(spark, name="delta")
    spark.sql("CREATE TABLE k USING delta AS SELECT 1 AS id, 'a' AS v")
    spark.sql("CREATE TABLE e (id INT, v STRING) USING delta")
    yield spark
    deltalog.spark.register(spark, name="delta")
    spark.conf.unset(AUTO_MERGE)
    for name in ("k", "e"):
        spark.sql(f"DROP TABLE {name}")


def _rows(spark: SparkSession, name: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, spark.table(name).collect()), key=str)


AHEAD = "WITH s AS (SELECT /*+ BROADCAST(k) */ k.id + 1 AS id, 'b' AS v FROM k) "
LED: dict[str, tuple[str, list[tuple[int, str]]]] = {
    "merge": (
        "MERGE INTO {k} USING s ON {t}.id = s.id WHEN NOT MATCHED THEN INSERT *",
        [(1, "a"), (2, "b")],
    ),
    "insert": ("INSERT INTO {k} SELECT * FROM s", [(1, "a"), (2, "b")]),
    "overwrite": ("INSERT OVERWRITE {k} SELECT * FROM s", [(2, "b")]),
    "from": ("FROM s INSERT INTO {k} SELECT id, v", [(1, "a"), (2, "b")]),
    "several": (
        "FROM s INSERT INTO {k} SELECT id, v INSERT INTO {k} SELECT id + 1, 'c' WHERE id = 2",
        [(1, "a"), (2, "b"), (3, "c")],
    ),
    "update": ("UPDATE {k} SET v = 'u' WHERE id + 1 IN (SELECT id FROM s)", [(1, "u")]),
    "delete": ("DELETE FROM {k} WHERE id + 1 IN (SELECT id FROM s)", []),
}


@pytest.mark.parametrize("how", LED)
@pytest.mark.parametrize("is_path", [False, True], ids=["name", "path"])
def test_a_query_stands_before_a_change(lake: SparkSession, how: str, *, is_path: bool) -> None:
    text, rows = LED[how]
    where = Path(lake.sql("DESCRIBE DETAIL k").collect()[0]["location"])
    if is_path and how == "merge":
        text = text.replace("{k}", "{k} t").replace("{t}", "t")
    name = f"delta.`{where}`" if is_path else "k"
    lake.sql(AHEAD + text.format(k=name, t="k"))
    assert _rows(lake, "k") == rows


def test_all_inserts_read_what_was_there_before(lake: SparkSession) -> None:
    lake.sql("FROM k INSERT INTO e SELECT * INSERT OVERWRITE k SELECT id + 1, v")
    lake.sql("FROM k INSERT INTO k SELECT id + 1, v INSERT INTO k SELECT id + 2, v")
    assert _rows(lake, "e") == [(1, "a")]
    assert _rows(lake, "k") == [(2, "a"), (3, "a"), (4, "a")]


ADDING = {
    "by place": "INSERT {} INTO k SELECT 2 AS id, 'b' AS v, 3 AS more",
    "by name": "INSERT {} INTO k BY NAME SELECT 3 AS more, 2 AS id, 'b' AS v",
    "replace where": "INSERT {} INTO k REPLACE WHERE id = 2 SELECT 2 AS id, 'b' AS v, 3 AS more",
    "by spark": "INSERT {} INTO k REPLACE WHERE regexp_count(v, 'b') = 1 SELECT 2, 'b', 3 AS more",
}


@pytest.mark.parametrize("how", ADDING)
@pytest.mark.parametrize("is_said", [True, False], ids=["said", "set"])
def test_columns_are_added(lake: SparkSession, how: str, *, is_said: bool) -> None:
    if not is_said:
        with pytest.raises(SchemaMismatchError):
            lake.sql(ADDING[how].format(""))
        lake.conf.set(AUTO_MERGE, "true")
    lake.sql(ADDING[how].format("WITH SCHEMA EVOLUTION" if is_said else ""))
    assert lake.table("k").columns == ["id", "v", "more"]
    assert _rows(lake, "k") == [(1, "a", None), (2, "b", 3)]


def test_the_session_lets_all_changes_add_columns(lake: SparkSession) -> None:
    lake.conf.set(AUTO_MERGE, "true")
    lake.sql("INSERT OVERWRITE k SELECT 2 AS id, 'b' AS v, 3 AS more")
    lake.sql(
        "MERGE INTO k USING (SELECT 2 AS id, 'c' AS v, 4 AS more, 5 AS most) s ON k.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    assert _rows(lake, "k") == [(2, "c", 4, 5)]
    for wrong in (
        "INSERT INTO k SELECT 1, 'x'",  # fewer, as in Delta Spark
        "INSERT INTO k (id, v) SELECT 1, 'x', 3 AS z",
        "INSERT INTO k SELECT *, 1 AS ID FROM k",
    ):
        with pytest.raises(SchemaMismatchError):
            lake.sql(wrong)
    assert lake.table("k").columns == ["id", "v", "more", "most"]
