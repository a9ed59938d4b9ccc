"""Statements of registered sessions that our grammar lacks: they are done, or one sentence ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, Row, SparkSession, functions

import deltalog.spark
from deltalog.errors import InvalidInputError

Run = Callable[..., DataFrame]
ROWS = "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t (id, v)"


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    """Tables `m` and `n` of the rows 1 a, 2 b, and a table `p` of Spark's with the row 7 p."""
    deltalog.spark.register(spark, name="delta")
    for name in ("m", "n"):
        spark.sql(f"CREATE TABLE {name} USING delta AS {ROWS}")
    spark.sql("CREATE TABLE p USING parquet AS SELECT 7 AS id, 'p' AS v")
    spark.sql("DECLARE OR REPLACE VARIABLE most INT")
    yield spark
    deltalog.spark.register(spark, name="delta")
    for name in ("m", "n", "p"):
        spark.sql(f"DROP TABLE {name}")
    spark.sql("DROP TEMPORARY VARIABLE most")
    deltalog.spark.unregister(spark, name="delta")


@pytest.fixture
def lake(tables: SparkSession) -> Iterator[SparkSession]:
    deltalog.spark.register(tables, name="delta")  # every test ends without
    yield tables
    deltalog.spark.register(tables, name="delta")
    for view in ("shown", "kept"):
        tables.catalog.dropTempView(view)
    for name in ("filled", "made"):
        tables.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture(params=["spark.sql", "deltalog.spark.sql"])
def run(request: pytest.FixtureRequest, lake: SparkSession) -> Run:
    if request.param == "spark.sql":
        return lake.sql
    return lambda text, given=None: deltalog.spark.sql(lake, text, given)


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


@pytest.mark.parametrize(
    ("query", "given", "expected"),
    [
        ("SELECT * FROM IDENTIFIER('m')", None, [(1, "a"), (2, "b")]),
        ("SELECT x.id FROM IDENTIFIER('default.' || :t) AS x", {"t": "m"}, [(1,), (2,)]),
        ("SELECT IDENTIFIER('m.id') FROM m WHERE IDENTIFIER(:c) = 'a'", {"c": "v"}, [(1,)]),
        ("SELECT id FROM IDENTIFIER(?) WHERE id > ?", ["m", 1], [(2,)]),
        ("SELECT id + ? FROM IDENTIFIER(concat(?, '')) WHERE id > ?", [1, "m", 1], [(3,)]),
        ("TABLE identifier ( 'm' )", None, [(1, "a"), (2, "b")]),
        ("SELECT IDENTIFIER('upper')(v) FROM m", None, [("A",), ("B",)]),
        ("SELECT * FROM IDENTIFIER('p')", None, [(7, "p")]),
    ],
)
def test_names_are_values(
    run: Run, query: str, given: object, expected: list[tuple[Any, ...]]
) -> None:
    assert _rows(run(query, given)) == expected


def test_tables_by_values_are_changed(run: Run, lake: SparkSession) -> None:
    run(f"CREATE TABLE IDENTIFIER('filled') USING delta AS {ROWS}")
    run("INSERT INTO IDENTIFIER(:t) VALUES (3, :v)", {"t": "filled", "v": "c"})
    run("DELETE FROM IDENTIFIER('filled') WHERE id = 1")
    run("UPDATE IDENTIFIER('filled') SET v = 'B' WHERE id = 2")
    run(
        "MERGE INTO IDENTIFIER('filled') t USING IDENTIFIER('n') s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert _rows(lake.table("filled")) == [(1, "a"), (2, "B"), (3, "c")]
    run("EXECUTE IMMEDIATE 'DELETE FROM IDENTIFIER(:t)' USING 'filled' AS t")
    assert lake.table("filled").count() == 0


def test_a_column_is_a_name(lake: SparkSession) -> None:
    assert _rows(lake.sql("SELECT id FROM IDENTIFIER(:t)", {"t": functions.lit("m")})) == [
        (1,),
        (2,),
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("TABLE m |> WHERE id = 1", [(1, "a")]),
        ("FROM m |> SET id = id + 1, v = concat(upper(v), id)", [(2, "A2"), (3, "B3")]),
        ("FROM m |> DROP v", [(1,), (2,)]),
        ("SELECT id AS x FROM m |> SET x = x * 10", [(10,), (20,)]),
        ("FROM m |> UNION ALL TABLE n |> WHERE id = 1", [(1, "a"), (1, "a")]),
        ("FROM m |> EXCEPT SELECT * FROM n WHERE id = 1", [(2, "b")]),
        ("FROM m |> INTERSECT (TABLE n) |> DROP v |> LIMIT 5", [(1,), (2,)]),
        ("VALUES (1, 'q') |> UNION ALL TABLE m", [(1, "a"), (1, "q"), (2, "b")]),
        ("VALUES (1) AS t(x) |> WHERE x = 1 |> JOIN m ON x = id |> DROP x", [(1, "a")]),
        ("FROM p |> UNION ALL FROM m |> DROP v", [(1,), (2,), (7,)]),
    ],
)
def test_pipes_read_tables(run: Run, query: str, expected: list[tuple[Any, ...]]) -> None:
    assert _rows(run(query)) == expected


def test_pipes_fill_tables(run: Run, lake: SparkSession) -> None:
    lake.sql("CREATE TABLE filled (id INT, v STRING) USING delta")
    run("INSERT INTO filled FROM n |> SET id = id + 10 |> UNION ALL TABLE p")
    assert _rows(lake.table("filled")) == [(7, "p"), (11, "a"), (12, "b")]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("BEGIN DELETE FROM m WHERE id = 1; END", "table m in a script: run the statements"),
        ("BEGIN DECLARE x INT; SET x = (SELECT max(id) FROM m); END", "one by one"),
        ("BEGIN INSERT INTO p TABLE IDENTIFIER('m'); END", "table m in a script"),
        ("CREATE TEMP VIEW shown (a, b) AS SELECT * FROM m", "expected CREATE"),
        ("CREATE FUNCTION f() RETURNS INT RETURN SELECT max(id) FROM m", "a function of Spark"),
        ("CREATE VIEW kept COMMENT 'x' AS SELECT * FROM m", "expected CREATE"),
        ("SET VAR most = (SELECT max(id) FROM m)", "use another form"),
        (
            "ANALYZE TABLE m COMPUTE STATISTICS",
            "'ANALYZE .*' about the Delta table m: deltalog does not support this form, and",
        ),
        ("SELECT * FROM p, (VALUES (1) |> SET col1 = 2), m", "line 1, char.*table.'m'"),
        ("CACHE TABLE m", "cache a dataframe"),
    ],
)
def test_one_sentence_says_what_to_do(
    run: Run, lake: SparkSession, statement: str, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem) as found:
        run(statement)
    assert "Traceback" not in str(found.value)
    assert lake.table("m").count() == 2
    assert _rows(lake.table("p")) == [(7, "p")]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("FROM p |> WHERE id IS DISTINCT FROM 8 |> SET id = 1", [(1, "p")]),
        ("WITH m AS (SELECT 5 AS x) SELECT x FROM m, (VALUES (1) |> SET col1 = 2)", [(5,)]),
        ("BEGIN SELECT id FROM p; END", [(7,)]),
    ],
)
def test_what_is_spark_s_is_left_to_it(
    run: Run, statement: str, expected: list[tuple[Any, ...]]
) -> None:
    assert _rows(run(statement)) == expected


@pytest.mark.parametrize("statement", ["SELEC * FROM m", "FROM m |> RENAME v AS w"])
def test_wrong_words_are_refused(lake: SparkSession, statement: str) -> None:
    with pytest.raises(ParseException):
        lake.sql(statement)


def test_sql_writes_tables_of_other_formats(lake: SparkSession) -> None:
    lake.sql("CREATE TABLE filled (id INT, v STRING) USING parquet")
    deltalog.spark.sql(lake, "INSERT INTO filled SELECT * FROM m WHERE id = ?", [1])
    deltalog.spark.sql(lake, "FROM m INSERT INTO filled SELECT id + 1, v WHERE id = 2")
    assert _rows(lake.table("filled")) == [(1, "a"), (3, "b")]
    deltalog.spark.sql(lake, "CREATE TABLE made USING parquet AS SELECT id FROM default.m")
    deltalog.spark.sql(lake, "CREATE TEMP VIEW shown AS SELECT id FROM m WHERE id = 2")
    assert _rows(lake.table("made")) == [(1,), (2,)]
    assert lake.table("shown").collect() == [Row(id=2)]
    with pytest.raises(InvalidInputError, match="through the view shown"):
        deltalog.spark.sql(lake, "INSERT INTO shown SELECT id FROM m")
