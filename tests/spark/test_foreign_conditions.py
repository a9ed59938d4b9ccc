"""Conditions of DELETE, UPDATE, MERGE and REPLACE WHERE with what only Spark knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

import deltalog.spark
from deltalog import write_deltalake
from deltalog.errors import ConstraintViolationError, InvalidInputError
from tests.support.reference_scenarios import FULL


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """A table `c` of six rows, a function of Python, one of SQL, and a variable."""
    given = pa.table(
        {"id": pa.array(range(1, 7), pa.int32()), "v": list("abcdef"), "p": list("101010")}
    )
    write_deltalake(tmp_path / "c", given, partition_by="p")
    deltalog.spark.register(spark, name="delta")
    spark.sql(f"CREATE TABLE IF NOT EXISTS c USING delta LOCATION '{tmp_path / 'c'}'")
    spark.udf.register("marked", lambda text: f"{text}!")
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION twice(x INT) RETURNS INT RETURN x * 2")
    spark.sql("DECLARE OR REPLACE VARIABLE six INT DEFAULT 6")
    yield spark
    deltalog.spark.register(spark, name="delta")
    spark.sql("DROP TABLE c")
    spark.sql("DROP TEMPORARY FUNCTION twice")
    spark.sql("DROP TEMPORARY VARIABLE six")


# Which rows they are true for, by `id`.
CONDITIONS = {
    "marked(v) = 'a!'": {1},
    "marked(v) = 'b!' AND p = '0'": {2},
    "regexp_count(v, 'c') > 0": {3},
    "v = current_user()": set(),
    "twice(id) = 8": {4},
    "id = six": {6},
    "id = session.six AND marked(c.v) = 'f!'": {6},
    "mask(v, lowerChar => 'q') = 'q' AND id = 5": {5},
    "system.builtin.abs(default.c.id) = 1": {1},
    "system.builtin.abs(spark_catalog.default.c.id) = 2": {2},
    "spark_catalog.default.c.id = twice(1)": {2},
    "mask(v, lowerChar => 'q') IN ('q') AND id IN (SELECT max(id) FROM c)": {6},
    "mask(v, lowerChar => 'q') = 'q' AND id IN (SELECT id FROM c WHERE false)": set(),
    "mask(v, lowerChar => 'q') = 'q' AND id NOT IN (SELECT id FROM c WHERE id > 1)": {1},
    "mask(v, lowerChar => 'q') = 'q' AND EXISTS (SELECT 1 FROM c) AND id < 3": {1, 2},
    "mask(v, lowerChar => 'q') = 'q' AND id = (SELECT min(id) FROM c)": {1},
    "mask(v, lowerChar => 'q') = :q AND id = :i": {5},
    "try_to_number(string(id), '9') = 3": {3},
    "exists(array(id), x -> x = 4)": {4},
}
GIVEN = {"q": "q", "i": 5}


def _rows(spark: SparkSession) -> list[tuple[int, str]]:
    return sorted((row["id"], row["v"]) for row in spark.table("c").collect())


@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_are_those_that_spark_finds(lake: SparkSession, condition: str) -> None:
    args = GIVEN if ":" in condition else None
    every, rows = dict(_rows(lake)), CONDITIONS[condition]
    # All three find rows in one way, so most conditions need one of them: they take turns.
    is_odd = list(CONDITIONS).index(condition) % 2
    if is_odd or FULL:
        changed = lake.sql(f"UPDATE c SET v = concat(default.c.v, '+') WHERE {condition}", args)
        assert changed.collect() == [(len(rows),)]
        every |= {one: f"{every[one]}+" for one in rows}
        assert dict(_rows(lake)) == every
    if is_odd and not FULL:
        return
    if "SELECT" in condition or len(rows) == 2:
        replaced = f"INSERT INTO c REPLACE WHERE {condition} SELECT * FROM c WHERE {condition}"
        assert lake.sql(replaced, args).collect()[0]["num_inserted_rows"] == len(rows)
        assert dict(_rows(lake)) == every
    assert lake.sql(f"DELETE FROM c WHERE {condition}", args).collect() == [(len(rows),)]
    assert {one for one, _ in _rows(lake)} == every.keys() - rows


def test_merges_know_the_same(lake: SparkSession) -> None:
    lake.sql(
        "MERGE INTO c USING (SELECT 3 AS id, 'x' AS v UNION ALL SELECT 30, 'y') s "
        "ON spark_catalog.default.c.id = s.id AND mask(c.v, lowerChar => 'q') = 'q' "
        "WHEN MATCHED AND mask(default.c.v, lowerChar => 'k') = 'k' AND c.id <> six "
        "THEN UPDATE SET v = mask(s.v, lowerChar => 'z') "
        "WHEN NOT MATCHED AND regexp_count(s.v, 'y') = 1 "
        "THEN INSERT (id, v) VALUES (s.id, mask(s.v, lowerChar => 'w'))"
    ).collect()
    assert _rows(lake)[2] == (3, "z")
    assert _rows(lake)[-1] == (30, "w")


def test_columns_of_a_source_by_long_names(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE other USING delta AS SELECT 2 AS id, 'o' AS q")
    lake.sql(
        "MERGE INTO c USING other ON default.c.id = spark_catalog.default.other.id "
        "WHEN MATCHED THEN UPDATE SET v = default.other.q"
    )
    assert _rows(lake)[1] == (2, "o")
    lake.sql("MERGE INTO c USING other o ON c.id = o.id WHEN MATCHED THEN UPDATE SET v = DEFAULT")
    assert lake.sql("SELECT v FROM c WHERE id = 2").collect() == [(None,)]
    lake.sql("DROP TABLE other")


@pytest.mark.parametrize("condition", ["marked(v) = 'z!'", "mask(v, lowerChar => 'z') = v"])
def test_new_rows_must_match(lake: SparkSession, condition: str) -> None:
    before = _rows(lake)
    with pytest.raises(ConstraintViolationError, match="does not match"):
        lake.sql(f"INSERT INTO c REPLACE WHERE {condition} SELECT 26, 'y', '0'").collect()
    assert _rows(lake) == before
    lake.sql(f"INSERT INTO c REPLACE WHERE {condition} SELECT 26, 'z', '0'").collect()
    assert _rows(lake) == [*before, (26, "z")]


def test_files_are_pruned_by_what_is_known(lake: SparkSession) -> None:
    (told,) = lake.sql("EXPLAIN DELETE FROM c WHERE marked(v) = 'x!' AND p = '1'").collect()[0]
    assert "read if partition values: p = '1'" in told
    assert "rows where: marked(v) = 'x!' AND p = '1'" in told


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("unheard_of(v) = 1", AnalysisException),
        ("unheard_of = 1", AnalysisException),
        ("id = = 1", ParseException),
    ],
)
def test_what_spark_does_not_know_is_refused(
    lake: SparkSession, condition: str, error: type[Exception]
) -> None:
    before = _rows(lake)
    for statement in ("DELETE FROM c", "UPDATE c SET v = 'x'"):
        with pytest.raises(error):
            lake.sql(f"{statement} WHERE {condition}").collect()
    assert _rows(lake) == before


def test_maintenance_knows_our_words(lake: SparkSession) -> None:
    with pytest.raises(InvalidInputError):
        lake.sql("OPTIMIZE c WHERE mask(p, lowerChar => 'q') = 'q'")
