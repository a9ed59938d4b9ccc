"""COLLATE in definitions of columns, and in conditions of statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog import DeltaTable, sql
from deltalog.errors import InvalidInputError
from tests.support.sql_tables import SqlTables

LCASE = "spark.UTF8_LCASE"


def columns(db: SqlTables, table: str = "t") -> list[str]:
    return [f"{name} {kind}" for name, kind, _ in db.rows(f"DESCRIBE TABLE {table}")]


@pytest.fixture
def table(db: SqlTables) -> SqlTables:
    db.create("t", "(id INT, c STRING COLLATE UTF8_LCASE, p STRING)")
    db.run("INSERT INTO t VALUES (1, 'AB', 'x'), (2, 'ab', 'x'), (3, 'b', 'x')")
    return db


@pytest.mark.protocol("B-62")
@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        ("c STRING COLLATE utf8_lcase", "c string collate UTF8_LCASE"),
        ("c STRING COLLATE UTF8_BINARY", "c string"),
        ("c STRING COLLATE `de_ci` NOT NULL COMMENT 'x'", "c string collate de_CI"),
        ("c ARRAY<STRING COLLATE UTF8_LCASE>", "c array<string collate UTF8_LCASE>"),
        ("c MAP<STRING COLLATE UTF8_LCASE, ARRAY<STRING>>",
         "c map<string collate UTF8_LCASE,array<string>>"),
        ("c STRUCT<a: STRING COLLATE UTF8_LCASE_RTRIM, b: ARRAY<STRING COLLATE UNICODE>>",
         "c struct<a:string collate UTF8_LCASE_RTRIM,b:array<string collate UNICODE>>"),
    ],
)  # fmt: skip
def test_columns_with_collations(db: SqlTables, definition: str, shown: str) -> None:
    db.create("t", f"(id INT, {definition})")
    assert set(columns(db)) == {"id int", shown}
    (made,) = db.values("SHOW CREATE TABLE t")
    assert ("COLLATE" in made) is ("collate" in shown)
    again = made.split("(", 1)[1].split("USING", 1)[0].rsplit(")", 1)[0]
    db.create("u", f"({again})")
    assert columns(db, "u") == columns(db)


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("c STRING COLLATE UTF8_LCAS", "did you mean 'UTF8_LCASE'"),
        ("c STRING COLLATE", "expected the name of a collation"),
        ("c INT COLLATE UTF8_LCASE", "COLLATE"),
        ("c VARCHAR(3) COLLATE UTF8_LCASE", "COLLATE"),
    ],
)
def test_what_is_no_collation(db: SqlTables, definition: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        db.create("t", f"(id INT, {definition})")


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("ALTER COLUMN p TYPE STRING COLLATE UTF8_LCASE", "p string collate UTF8_LCASE"),
        ("ALTER COLUMN c TYPE STRING COLLATE UTF8_LCASE_RTRIM",
         "c string collate UTF8_LCASE_RTRIM"),
        ("CHANGE COLUMN p p STRING COLLATE UTF8_LCASE COMMENT 'x'", "p string collate UTF8_LCASE"),
        ("ALTER COLUMN c TYPE STRING COLLATE UTF8_BINARY", "c string"),
        ("CHANGE COLUMN c c STRING COLLATE UTF8_BINARY", "c string"),
        ("CHANGE COLUMN c c STRING COMMENT 'x'", "c string collate UTF8_LCASE"),
        ("ADD COLUMN d STRING COLLATE UTF8_LCASE", "d string collate UTF8_LCASE"),
        ("REPLACE COLUMNS (id INT, C STRING COLLATE UTF8_BINARY, p STRING)", "c string"),
        ("REPLACE COLUMNS (id INT, c STRING, p STRING COMMENT 'x')", "c string collate UTF8_LCASE"),
        ("REPLACE COLUMNS (id INT, c STRING COLLATE UTF8_LCASE, p STRING COLLATE UTF8_LCASE)",
         "p string collate UTF8_LCASE"),
    ],
)  # fmt: skip
def test_columns_get_collations(table: SqlTables, statement: str, shown: str) -> None:
    table.run(f"ALTER TABLE t {statement}")
    assert shown in columns(table)


@pytest.mark.parametrize(
    ("columns_now", "shown"),
    [
        ("a ARRAY<STRING COLLATE UTF8_BINARY>, s STRUCT<v: STRING>, m MAP<STRING, STRING>",
         ["array<string>", "struct<v:string collate UTF8_LCASE>",
          "map<string collate UTF8_LCASE,string collate UTF8_LCASE>"]),
        ("a ARRAY<STRING>, s STRUCT<V: STRING COLLATE UTF8_BINARY>, m MAP<STRING, {by_bytes}>",
         ["array<string collate UTF8_LCASE>", "struct<v:string>", "map<string,string>"]),
        ("a ARRAY<STRING>, s STRUCT<v: STRING>, m MAP<STRING COLLATE UTF8_LCASE, {by_bytes}>",
         ["array<string collate UTF8_LCASE>", "struct<v:string collate UTF8_LCASE>",
          "map<string collate UTF8_LCASE,string>"]),
    ],
)  # fmt: skip
def test_replaced_columns_lose_the_collations_that_they_say(
    db: SqlTables, columns_now: str, shown: list[str]
) -> None:
    text = "STRING COLLATE UTF8_LCASE"
    db.create("t", f"(a ARRAY<{text}>, s STRUCT<v: {text}>, m MAP<{text}, {text}>)")
    now = columns_now.format(by_bytes="STRING COLLATE UTF8_BINARY")
    db.run(f"ALTER TABLE t REPLACE COLUMNS ({now})")
    assert sorted(one.partition(" ")[2] for one in columns(db)) == sorted(shown)


def test_conditions_of_statements(table: SqlTables) -> None:
    table.run("UPDATE t SET p = 'y' WHERE c = 'aB'")
    table.run("DELETE FROM t WHERE c COLLATE UTF8_BINARY = 'ab' OR p COLLATE UTF8_LCASE = 'X'")
    assert table.rows("SELECT id, p FROM t") == [(1, "y")]


def test_merges_by_a_collation(table: SqlTables) -> None:
    table.create("s", "(c STRING)")
    table.run("INSERT INTO s VALUES ('B'), ('new')")
    table.run(
        "MERGE INTO t USING s ON t.c = s.c COLLATE UTF8_LCASE "
        "WHEN MATCHED THEN UPDATE SET p = 'm' WHEN NOT MATCHED THEN INSERT (c) VALUES (s.c)"
    )
    assert table.values("SELECT p FROM t WHERE id = 3") == ["m"]
    assert table.values("SELECT count(*) FROM t") == [4]


def test_queries_compare_where_deltalog_does(table: SqlTables) -> None:
    assert table.values("SELECT id FROM t WHERE c = 'Ab'") == [1, 2]
    assert table.values("SELECT count(*) FROM t WHERE p COLLATE UTF8_LCASE = 'X'") == [3]
    with pytest.raises(InvalidInputError, match="DuckDB compares by bytes"):
        table.rows("SELECT DISTINCT c FROM t")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(DISTINCT t) FROM a t",
        "SELECT t = u FROM a t, a u",
        "SELECT n FROM a t ORDER BY t",
    ],
)
def test_a_row_that_a_table_stands_for_is_not_compared_by_bytes(tmp_path: Path, query: str) -> None:
    sql(f"CREATE TABLE delta.`{tmp_path}` (c STRING COLLATE UTF8_LCASE, n INT) USING delta")
    sql(f"INSERT INTO delta.`{tmp_path}` VALUES ('x', 1), ('X', 2)")
    with pytest.raises(InvalidInputError, match="collation"):
        sql(query, a=DeltaTable(tmp_path))
    assert len(sql("SELECT t.n FROM a t", a=DeltaTable(tmp_path)).to_pylist()) == 2
