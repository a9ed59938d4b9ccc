"""Months in queries: DuckDB has no such type, and must not take them for numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, QueryBuilder, Schema, sql, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.schema import StructType
from deltalog.schema.types import YEAR_TO_MONTH

Run = Callable[[str], Any]
TABLES = {
    "T": [Field("n", "long"), Field("m", "interval year to month")],
    "MONTHS": [Field("m", "interval year to month")],
    "NUMBERS": [Field("x", "integer")],
    "COUNTS": [Field("m", "integer")],
    "TEXTS": [Field("x", "string")],
    "INSIDE": [Field("n", "long"), Field("s", StructType([Field("m", "interval year to month")]))],
}
ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64()), "m": pa.array([14, None, -3], pa.int32())})


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DELTALOG_PREVIEWS", "intervalTypes")
    for name, fields in TABLES.items():
        DeltaTable.create(tmp_path / name, Schema(fields))
    write_deltalake(tmp_path / "T", ROWS, mode="append")
    inside = [{"n": 1, "s": {"m": 5}}]
    kind = pa.schema([("n", pa.int64()), ("s", pa.struct([("m", pa.int32())]))])
    write_deltalake(tmp_path / "INSIDE", pa.Table.from_pylist(inside, kind), mode="append")

    def run(statement: str) -> Any:
        def located(name: re.Match[str]) -> str:
            return f"delta.`{tmp_path / name[0]}`"

        return pa.table(sql(re.sub(rf"\b({'|'.join([*TABLES, 'NEW'])})\b", located, statement)))

    return run


def values(rows: Any) -> list[Any]:
    return [next(iter(row.values())) for row in rows.to_pylist()]


QUERIES = [
    ("SELECT m FROM T ORDER BY n", [14, None, -3]),
    ("SELECT m AS k FROM T WHERE n + 0 > 1 ORDER BY n", [None, -3]),
    ("SELECT x FROM (SELECT m AS x, n FROM T) WHERE n + 0 < 3 ORDER BY x DESC", [14, None]),
    ("WITH c AS (SELECT * FROM T), d AS (SELECT m FROM c) SELECT m FROM d ORDER BY m",
     [None, -3, 14]),
    ("SELECT min(m) AS m FROM T", [-3]),
    ("SELECT max(m) AS m FROM T", [14]),
    ("SELECT max_by(m, n) AS m FROM T", [-3]),
    ("SELECT lag(m) OVER (ORDER BY n) AS m FROM T ORDER BY n", [None, 14, None]),
    ("SELECT a.m FROM T a JOIN T b ON a.m = b.m ORDER BY a.m", [-3, 14]),
    ("SELECT m FROM T a JOIN T b USING (m) ORDER BY m", [-3, 14]),
    ("SELECT DISTINCT m FROM T ORDER BY m", [None, -3, 14]),
    ("SELECT m FROM T GROUP BY m ORDER BY m DESC", [14, -3, None]),
    ("SELECT m FROM T UNION SELECT NULL UNION SELECT INTERVAL '1' YEAR ORDER BY m",
     [None, -3, 12, 14]),
    ("SELECT coalesce(m, INTERVAL '1' MONTH) AS m FROM T ORDER BY n", [14, 1, -3]),
    ("SELECT CASE WHEN n > 1 THEN m END AS m FROM T ORDER BY n", [None, None, -3]),
    ("SELECT (SELECT max(m) FROM T) AS m", [14]),
    ("SELECT INTERVAL '1-2' YEAR TO MONTH AS m", [14]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_their_type_is_kept(run: Run, query: str, expected: list[Any]) -> None:
    found = run(query)
    assert values(found) == expected
    assert found.schema.types == [pa.int32()]
    run(f"CREATE TABLE NEW USING delta AS {query}")
    assert run("DESCRIBE NEW").column("data_type").to_pylist() == ["interval year to month"]
    run(f"INSERT INTO MONTHS {query}")
    assert sorted(map(str, values(run("SELECT m FROM MONTHS")))) == sorted(map(str, expected))
    for table in ("NUMBERS", "TEXTS"):
        with pytest.raises(InvalidInputError, match="cannot cast interval year to month"):
            run(f"INSERT INTO {table} {query}")


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("SELECT n FROM T WHERE m = INTERVAL '14' MONTH AND n + 0 = 1", [1]),
        ("SELECT count(*) FROM T WHERE m IN (SELECT m FROM T)", [2]),
        ("SELECT count(DISTINCT m) FROM T", [2]),
        ("SELECT n FROM T WHERE m IS NULL AND n + 0 = 2", [2]),
        ("SELECT n FROM INSIDE ORDER BY n + 1", [1]),
        ("SELECT s FROM INSIDE", [{"m": 5}]),
    ],
)
def test_queries_ask_for_them(run: Run, query: str, answer: list[Any]) -> None:
    assert values(run(query)) == answer


@pytest.mark.parametrize(
    "query",
    [
        "SELECT m + 1 FROM T", "SELECT x + 1 FROM (SELECT m AS x FROM T)", "SELECT -m FROM T",
        "SELECT m * 2 FROM T", "SELECT sum(m) FROM T", "SELECT avg(m) FROM T",
        "SELECT CAST(m AS INT) FROM T", "SELECT m FROM T UNION ALL SELECT 1",
        "SELECT n FROM T WHERE m = 14", "SELECT n FROM T WHERE n IN (SELECT m FROM T)",
        "SELECT if(n > 1, m, 5) FROM T", "SELECT collect_list(m) AS l FROM T",
        "SELECT struct(m) AS s FROM T", "SELECT s FROM INSIDE ORDER BY n",
        "SELECT listagg(m, ',') FROM T", "SELECT string_agg(DISTINCT m, ',') FROM T",
        "SELECT listagg(m, ',') WITHIN GROUP (ORDER BY n) FROM T", "SELECT stddev(m) FROM T",
        "SELECT median(m) FROM T", "SELECT n FROM T WHERE m", "SELECT bit_and(m) FROM T",
        "SELECT lag(m, 1, 5) OVER (ORDER BY n) FROM T",
        "SELECT a.m FROM T a JOIN (SELECT 5 AS m) b USING (m)",
    ],
)  # fmt: skip
def test_they_are_no_numbers(run: Run, query: str) -> None:
    with pytest.raises(InvalidInputError, match=r"(?i)interval") as refused:
        run(query)
    assert "STRUCT" not in str(refused.value)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO MONTHS SELECT 5",
        "INSERT INTO MONTHS SELECT n FROM T",
        "INSERT INTO MONTHS SELECT CAST(n AS INT) FROM T",
        "INSERT INTO NUMBERS SELECT max(m) FROM T",
        "UPDATE NUMBERS SET x = (SELECT max(m) FROM T)",
        "UPDATE MONTHS SET m = (SELECT 5)",
        "DELETE FROM NUMBERS WHERE x IN (SELECT m FROM T)",
        "DELETE FROM NUMBERS WHERE x = (SELECT max(m) FROM T)",
        "DELETE FROM MONTHS WHERE m = (SELECT 14)",
        "MERGE INTO MONTHS t USING (SELECT 8 AS m) s ON false WHEN NOT MATCHED THEN INSERT *",
        "MERGE INTO NUMBERS t USING (SELECT m FROM T) s ON t.x = s.m WHEN MATCHED THEN DELETE",
        "MERGE INTO NUMBERS t USING T s ON t.x = s.m WHEN MATCHED THEN DELETE",
        "MERGE INTO MONTHS t USING COUNTS s ON t.m = s.m WHEN MATCHED THEN DELETE",
        "MERGE INTO MONTHS t USING COUNTS s ON false WHEN NOT MATCHED THEN INSERT *",
    ],
)
def test_statements_tell_them_from_numbers(run: Run, statement: str) -> None:
    with pytest.raises(InvalidInputError, match=r"interval|no common type"):
        run(statement)


def test_statements_compare_them_with_those_of_queries(run: Run) -> None:
    run("INSERT INTO MONTHS SELECT m FROM T")
    run("UPDATE MONTHS SET m = INTERVAL '7' MONTH WHERE m = (SELECT max(m) FROM T)")
    assert set(values(run("SELECT m FROM MONTHS"))) == {7, None, -3}
    run("DELETE FROM MONTHS WHERE m IN (SELECT m FROM T)")
    run("MERGE INTO MONTHS t USING (SELECT m AS k FROM T WHERE n + 0 = 1) s ON t.m = s.k "
        "WHEN NOT MATCHED THEN INSERT (m) VALUES (s.k)")  # fmt: skip
    assert set(values(run("SELECT m FROM MONTHS"))) == {7, None, 14}


def test_the_change_feed_has_them(run: Run, tmp_path: Path) -> None:
    run("CREATE TABLE NEW (m INTERVAL YEAR TO MONTH) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)")  # fmt: skip
    run("INSERT INTO NEW VALUES (INTERVAL '3' MONTH), (NULL)")
    (tmp_path / "NEW").rename(tmp_path / "fed")
    feed = f"table_changes_by_path('{tmp_path / 'fed'}', 1)"
    found = run(f"SELECT max(m) AS m FROM {feed}")
    assert values(found) == [3]
    with pytest.raises(InvalidInputError, match="cannot cast interval year to month"):
        run(f"INSERT INTO NUMBERS SELECT m FROM {feed}")


def test_structs_of_them_are_told(run: Run) -> None:
    run("CREATE TABLE NEW USING delta AS SELECT s FROM INSIDE")
    told = run("DESCRIBE NEW").column("data_type").to_pylist()
    assert told == ["struct<m:interval year to month>"]


def test_in_duckdbs_own_dialect_they_are_the_numbers_of_arrow(run: Run, tmp_path: Path) -> None:
    del run
    builder = QueryBuilder().register("t", DeltaTable(tmp_path / "T"))
    found: Any = pa.table(builder.execute("SELECT m, m + 1 AS k FROM t ORDER BY n"))
    assert [tuple(row.values()) for row in found.to_pylist()] == [(14, 15), (None, None), (-3, -2)]


def test_data_that_was_cast_is_what_it_is_now(run: Run, tmp_path: Path) -> None:
    rows = run("SELECT m FROM T")
    for place, kind in enumerate([pa.int64(), pa.int32()]):
        field = rows.schema.field(0).with_type(kind)
        path = tmp_path / f"written{place}"
        write_deltalake(path, rows.cast(pa.schema([field])))
        assert (DeltaTable(path).schema().fields[0].type == YEAR_TO_MONTH) is bool(place)


def test_a_row_that_a_table_stands_for_has_them_inside(run: Run) -> None:
    with pytest.raises(InvalidInputError, match="interval"):
        run("SELECT x FROM INSIDE x")


def test_a_struct_of_a_table_is_never_taken_for_them(tmp_path: Path) -> None:
    rows = pa.table({"s": [{"deltalog months": 5}], "n": [1]})
    write_deltalake(tmp_path, rows, configuration={"delta.columnMapping.mode": "name"})
    found = sql("SELECT s FROM t ORDER BY n + 1", t=DeltaTable(tmp_path)).to_pylist()
    assert found == [{"s": {"deltalog months": 5}}]


@pytest.mark.parametrize("told", [b"\xff", b"garbage", b'"nosuch"', b"{}"])
def test_metadata_of_a_caller_tells_nothing(tmp_path: Path, told: bytes) -> None:
    field = pa.field("x", pa.int32(), metadata={"deltalog:type": told, "deltalog:type2": "y"})
    write_deltalake(tmp_path, pa.table([pa.array([1], pa.int32())], schema=pa.schema([field])))
    (stored,) = DeltaTable(tmp_path).schema().fields
    assert str(stored.type).find("interval") < 0
    assert stored.metadata["deltalog:type2"] == "y"
    assert "deltalog:type" in stored.metadata
