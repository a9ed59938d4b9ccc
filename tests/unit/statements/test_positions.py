"""Errors of rows that go to columns by position, and of parameters that are not used."""

from __future__ import annotations

import re

import pytest

from deltalog.errors import InvalidInputError
from tests.support.sql_tables import SqlTables


@pytest.fixture
def db() -> SqlTables:
    tables = SqlTables()
    tables.create("t", "(id INT, name STRING, d DATE)")
    tables.create("s", "(name STRING, id INT, d DATE)")
    tables.run("INSERT INTO s VALUES ('a', 1, DATE'2024-01-01')")
    return tables


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t SELECT * FROM s",
        "INSERT INTO t TABLE s",
        "INSERT OVERWRITE t SELECT name, id, d FROM s",
        "INSERT INTO t (id, name, d) SELECT * FROM s",
        "INSERT INTO t REPLACE WHERE id = 1 SELECT * FROM s",
    ],
)
def test_columns_of_a_query_in_another_order_are_named(db: SqlTables, statement: str) -> None:
    answer = (
        "the columns are matched by position, so 'name' of the query is stored in 'id': INSERT "
        "INTO t BY NAME SELECT"
    )
    with pytest.raises(InvalidInputError, match=re.escape(answer)):
        db.run(statement)
    db.run("INSERT INTO t BY NAME SELECT * FROM s")
    assert db.values("SELECT id FROM t") == [1]


def test_columns_with_other_names_say_nothing_of_positions(db: SqlTables) -> None:
    with pytest.raises(InvalidInputError) as info:
        db.run("INSERT INTO t SELECT name AS x, id AS y, d FROM s")
    assert "position" not in str(info.value)


def test_names_in_advice_are_quoted(db: SqlTables) -> None:
    db.create(
        "q",
        "(`a b` INT, c INT, n BIGINT GENERATED ALWAYS AS IDENTITY) -- "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    )
    for statement in ("INSERT INTO q VALUES (1, 2)", "INSERT INTO q VALUES (1, 2, 3)"):
        with pytest.raises(Exception, match=re.escape("INSERT INTO t (`a b`, c) …")):
            db.run(statement)


@pytest.mark.parametrize(
    ("parameters", "answer"),
    [
        ({"id": 1, "nme": "a"}, "did you mean :name?"),
        ({"id": 1, "name": "a", "other": 2}, "; leave it out"),
    ],
)
def test_a_parameter_that_is_not_used_is_told_its_name(
    db: SqlTables, parameters: dict[str, object], answer: str
) -> None:
    condition, table = "id = :id AND name = :name", db.table("t")
    for call in (
        lambda: table.scan(predicate=condition, parameters=parameters),
        lambda: table.delete(condition, parameters=parameters),
    ):
        with pytest.raises(InvalidInputError, match=re.escape(answer)):
            call()


def test_a_parameter_in_quotes_has_none(db: SqlTables) -> None:
    with pytest.raises(InvalidInputError, match="a parameter has no quotes"):
        db.table("t").scan(predicate="name = ':name'", parameters={"name": "a"})


def test_a_misspelled_parameter_of_a_statement(db: SqlTables) -> None:
    for statement in ("SELECT * FROM t WHERE name = :name", "DELETE FROM t WHERE name = :name"):
        with pytest.raises(InvalidInputError, match="; did you mean 'nme'"):
            db.run(statement, {"nme": "a"})


def test_a_column_that_is_not_described(db: SqlTables) -> None:
    with pytest.raises(InvalidInputError, match="cannot describe a column of t: there is no"):
        db.run("DESCRIBE t nope")
    with pytest.raises(Exception, match="cannot restore version 9 of"):
        db.run("RESTORE TABLE t TO VERSION AS OF 9")


def test_a_query_that_uses_the_changed_table_is_answered_with_merge(db: SqlTables) -> None:
    db.run("INSERT INTO t VALUES (1, 'b', NULL)")
    for statement in (
        "UPDATE t SET name = (SELECT max(name) FROM s WHERE s.id = t.id)",
        "DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id)",
    ):
        with pytest.raises(InvalidInputError, match=r"write MERGE INTO t USING s ON t\.id"):
            db.run(statement)
    db.run("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name")
    assert db.values("SELECT name FROM t") == ["a"]
