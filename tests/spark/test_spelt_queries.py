"""Queries of registered sessions: whatever is around a name, rows are those of Spark's views."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import deltalog.spark
from deltalog.errors import InvalidInputError
from tests.spark.random_queries import TABLES, RandomQueries
from tests.support.reference_scenarios import FULL

QUERIES = int(os.environ.get("DELTALOG_RANDOM_QUERIES", "40" if FULL else "12"))
SEED = int(os.environ.get("DELTALOG_RANDOM_SEED", "0"))
OURS, THEIRS = "lake_queries", "view_queries"


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Iterator[SparkSession]:
    """Three tables of ours in one schema, and views of the same rows in another one."""
    deltalog.spark.register(spark, name="delta")
    for schema in (OURS, THEIRS):
        spark.sql(f"CREATE SCHEMA {schema}")
    for number, (name, (_, text)) in enumerate(TABLES.items()):
        rows = [(one, f"{name}{one}") for one in range(number, number + 4)]
        values = ", ".join(str(row) for row in rows)
        query = f"SELECT * FROM VALUES {values} AS t (id, `{text}`)"
        spark.sql(f"CREATE TABLE {OURS}.`{name}` USING delta AS {query} LIMIT 0")
        spark.sql(f"INSERT INTO {OURS}.`{name}` {query}")
        spark.sql(f"DELETE FROM {OURS}.`{name}` WHERE id = 3")
        spark.sql(f"CREATE VIEW {THEIRS}.`{name}` AS {query} WHERE id <> 3")
    yield spark
    deltalog.spark.register(spark, name="delta")
    for name in TABLES:
        spark.sql(f"DROP TABLE {OURS}.`{name}`")
    deltalog.spark.unregister(spark, name="delta")
    for schema in (OURS, THEIRS):
        spark.sql(f"DROP SCHEMA {schema} CASCADE")


def _answer(frame: DataFrame) -> tuple[list[str], list[str]]:
    return frame.columns, sorted(map(str, frame.collect()))


def _both(lake: SparkSession, text: str) -> tuple[object, object]:
    """The answers of the tables and of the views, or that there is none."""
    deltalog.spark.register(lake, name="delta")  # every test ends without
    found: list[object] = []
    for schema in (OURS, THEIRS):
        lake.sql(f"USE {schema}")
        try:
            found.append(_answer(lake.sql(text.format(schema=schema))))
        except Exception as error:  # noqa: BLE001  # whatever it is, both sides have it
            found.append(f"refused: {_class_of(error)}")
        finally:
            lake.sql("USE default")
    return found[0], found[1]


def _class_of(error: Exception) -> str:
    return str(getattr(error, "getCondition", lambda: None)() or error)


@pytest.mark.parametrize("seed", range(SEED, SEED + QUERIES))
def test_random_queries_are_answered_as_about_views(lake: SparkSession, seed: int) -> None:
    text = RandomQueries(seed).query()
    found, expected = _both(lake, text)
    assert found == expected, text


HINTED = "SELECT {} * FROM s WHERE id IN (SELECT {} w.id FROM w JOIN m ON w.id = m.id)"
STATEMENTS = {
    "insert": "INSERT INTO {out} {query}",
    "by name": "INSERT INTO {out} BY NAME {query}",
    "replace where": "INSERT INTO {out} REPLACE WHERE true {query}",
    "overwrite": "INSERT OVERWRITE {out} {query}",
    "create": "CREATE OR REPLACE TABLE {out} USING delta AS {query}",
    "replace": "REPLACE TABLE {out} USING delta AS {query}",
    "merge": "MERGE INTO {out} t USING ({query}) x ON t.id = x.id WHEN NOT MATCHED THEN INSERT *",
    "from path": "INSERT INTO {out} SELECT * FROM ({query}) WHERE id NOT IN "
    "(SELECT /*+ BROADCAST(p) */ id + 100 FROM delta.`{path}` p)",
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_hints_name_no_tables(lake: SparkSession, statement: str, tmp_path: Path) -> None:
    """Rows of the view `s` are stored, whichever table a hint names."""
    deltalog.spark.register(lake, name="delta")
    lake.sql(f"USE {OURS}")
    try:
        lake.sql("SELECT * FROM VALUES (1, 's1'), (2, 's2') AS t (id, v)").createTempView("s")
        out = f"delta.`{tmp_path / 'out'}`"
        lake.sql(f"CREATE TABLE {out} (id INT, v STRING) USING delta")
        query = HINTED.format("/*+ MERGE(s) */", "/*+ SHUFFLE_HASH(w), BROADCAST(m) */")
        lake.sql(STATEMENTS[statement].format(out=out, query=query, path=tmp_path / "out"))
        assert sorted(map(tuple, lake.table(out).collect())) == [(1, "s1"), (2, "s2")]
        lake.sql(f"DELETE FROM {out} WHERE id IN (SELECT /*+ MERGE(w) */ min(w.id) FROM w, m)")
        lake.sql(f"UPDATE {out} SET v = 'u' WHERE id = (SELECT /*+ MERGE(m) */ min(id) + 1 FROM w)")
        assert [tuple(row) for row in lake.table(out).collect()] == [(2, "u")]
    finally:
        lake.catalog.dropTempView("s")
        lake.sql("USE default")


NAMED = {
    "a version": "SELECT count(*) FROM {m} VERSION AS OF 1 TABLESAMPLE (100 PERCENT)",
    "options": "SELECT count(*) FROM {m} WITH (`versionAsOf` = 1) TABLESAMPLE (100 PERCENT)",
    "a path": "SELECT count({path}.id) FROM {path} VERSION AS OF 1",
    "its schema": f"SELECT count({OURS}.m.id) FROM {{m}} WITH (versionAsOf = '1') WHERE M.id > 0",
    "its catalog": f"SELECT count(spark_catalog.{OURS}.m.id) FROM {{m}}@v1",
}


@pytest.mark.parametrize("how", NAMED)
def test_versions_of_tables_with_long_names(lake: SparkSession, how: str) -> None:
    deltalog.spark.register(lake, name="delta")
    where = lake.sql(f"DESCRIBE DETAIL {OURS}.m").collect()[0]["location"]
    text = NAMED[how].format(m=f"{OURS}.m", path=f"delta.`{where}`")
    expected = 3 if "M.id" in how or "schema" in how else 4
    assert lake.sql(text).collect() == [(expected,)]


def test_options_that_are_unknown_are_refused(lake: SparkSession) -> None:
    deltalog.spark.register(lake, name="delta")
    with pytest.raises(InvalidInputError, match="nonsense"):
        lake.sql(f"SELECT * FROM {OURS}.m WITH (nonsense = 1)").collect()


def test_tables_with_one_last_name(lake: SparkSession) -> None:
    deltalog.spark.register(lake, name="delta")
    lake.sql("CREATE TABLE m USING delta AS SELECT 1 AS id, 'other' AS v")
    joined = f"FROM {OURS}.m JOIN default.m ON {OURS}.m.id = default.m.id"
    assert lake.sql(f"SELECT default.m.v, {OURS}.m.v {joined}").collect() == [("other", "m1")]
    with pytest.raises(InvalidInputError, match=r"several tables are called m"):
        lake.sql(f"SELECT m.v {joined}")
    lake.sql("DROP TABLE m")
