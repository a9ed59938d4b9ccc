"""`spark.sql(text, args, name=…)` about tables of ours: values, columns and frames of PySpark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import array, col, lit

import deltalog.spark


@pytest.fixture
def lake(spark: SparkSession) -> Iterator[SparkSession]:
    """A table `k` of the rows 1 a, 2 b."""
    deltalog.spark.register(spark, name="delta")
    spark.sql("CREATE TABLE k USING delta AS SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t (id, v)")
    yield spark
    deltalog.spark.register(spark, name="delta")
    spark.sql("DROP TABLE k")


@pytest.fixture
def frame(lake: SparkSession) -> DataFrame:
    return lake.createDataFrame([(2, "B"), (3, "C")], "id INT, v STRING")


QUERIES: dict[str, tuple[str, Any, dict[str, Any], list[tuple[Any, ...]]]] = {
    "a value": ("SELECT id FROM k WHERE id > {x}", None, {"x": 1}, [(2,)]),
    "a text": ("SELECT {s} FROM k WHERE v = {v}", None, {"s": "{it's}", "v": "a"}, [("{it's}",)]),
    "braces": ("SELECT '{{x}}' FROM k WHERE id = {x}", None, {"x": 1}, [("{x}",)]),
    "args": ("SELECT id FROM k WHERE id > :a", {"a": 1}, {}, [(2,)]),
    "args by place": ("SELECT id FROM k WHERE id > ? AND v = ?", [1, "b"], {}, [(2,)]),
    "both": ("SELECT id FROM k WHERE id > :a AND v <> {v}", {"a": 0}, {"v": "b"}, [(1,)]),
}


@pytest.mark.parametrize("how", QUERIES)
def test_queries_have_values(lake: SparkSession, how: str) -> None:
    text, args, named, rows = QUERIES[how]
    assert lake.sql(text, args, **named).collect() == rows


def test_queries_have_columns(lake: SparkSession) -> None:
    text = "SELECT {c} FROM k WHERE {c} > {x}"
    assert lake.sql(text, c=col("id"), x=1).collect() == [(2,)]
    text = "SELECT id FROM k WHERE array_contains(:l, id)"
    assert lake.sql(text, {"l": array(lit(2))}).collect() == [(2,)]


def test_queries_name_frames(lake: SparkSession, frame: DataFrame) -> None:
    joined = "SELECT k.v, {f}.v FROM k JOIN {f} ON k.id = {f}.id"
    assert lake.sql(joined, f=frame).collect() == [("b", "B")]
    older = "SELECT v FROM k VERSION AS OF 0 WHERE id IN (SELECT id FROM {f})"
    assert lake.sql(older, f=frame).collect() == [("b",)]
    assert lake.sql("SELECT count(*) FROM {f}", f=frame).collect() == [(2,)]
    views = [row["viewName"] for row in lake.sql("SHOW VIEWS").collect()]
    assert not any("deltalog_" in name or "_pyspark_" in name for name in views)


Change = Callable[[SparkSession, DataFrame], DataFrame]
CHANGES: dict[str, tuple[Change, list[tuple[int, str]]]] = {
    "insert": (
        lambda spark, f: spark.sql("INSERT INTO k SELECT * FROM {f} WHERE id > {x}", f=f, x=2),
        [(1, "a"), (2, "b"), (3, "C")],
    ),
    "overwrite": (
        lambda spark, f: spark.sql("INSERT OVERWRITE k SELECT * FROM {f}", f=f),
        [(2, "B"), (3, "C")],
    ),
    "replace where": (
        lambda spark, f: spark.sql("INSERT INTO k REPLACE WHERE id >= {x} TABLE {f}", f=f, x=2),
        [(1, "a"), (2, "B"), (3, "C")],
    ),
    "merge": (
        lambda spark, f: spark.sql(
            "MERGE INTO k USING {f} s ON k.id = s.id AND s.id > {x} WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *",
            f=f,
            x=0,
        ),
        [(1, "a"), (2, "B"), (3, "C")],
    ),
    "merge by its name": (
        lambda spark, f: spark.sql(
            "MERGE INTO k USING {f} ON k.id = {f}.id WHEN MATCHED THEN UPDATE SET v = {f}.v", f=f
        ),
        [(1, "a"), (2, "B")],
    ),
    "delete": (
        lambda spark, f: spark.sql("DELETE FROM k WHERE id IN (SELECT id FROM {f})", f=f),
        [(1, "a")],
    ),
    "update": (
        lambda spark, f: spark.sql(
            "UPDATE k SET v = {v} WHERE id = (SELECT min(id) FROM {f})", f=f, v="new"
        ),
        [(1, "a"), (2, "new")],
    ),
    "columns as args": (
        lambda spark, _: spark.sql("DELETE FROM k WHERE id IN (?, ?)", [lit(5), lit(2)]),
        [(1, "a")],
    ),
    "replaced": (
        lambda spark, f: spark.sql(
            "CREATE OR REPLACE TABLE k USING delta AS SELECT * FROM {f} WHERE v = {v}", f=f, v="C"
        ),
        [(3, "C")],
    ),
}


@pytest.mark.parametrize("how", CHANGES)
def test_changes_have_values_and_frames(lake: SparkSession, frame: DataFrame, how: str) -> None:
    change, rows = CHANGES[how]
    change(lake, frame)
    assert sorted(map(tuple, lake.table("k").collect())) == rows


def test_pyspark_says_what_is_missing(lake: SparkSession) -> None:
    with pytest.raises(KeyError, match="nope"):
        lake.sql("SELECT {nope} FROM k", x=1)
