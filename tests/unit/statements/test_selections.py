"""A query that is a scan is answered by `scan`, as DuckDB would answer it."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, connect, write_deltalake
from deltalog.errors import InvalidInputError, TableNotFoundError
from tests.support.sql_tables import SqlTables

ROWS = """AS SELECT id, CAST(id AS STRING) AS Name, id % 3 = 0 AS third, CAST(id AS DOUBLE) AS d,
CAST(id AS DECIMAL(10, 2)) AS m, DATE'2025-01-01' + CAST(id AS INT) AS day,
TIMESTAMP'2025-01-01 00:00:00' AS at, TIMESTAMP_NTZ'2025-01-01 00:00:00' AS local,
CAST(CAST(id AS STRING) AS BINARY) AS b, named_struct('x', id, 'y', array(id)) AS s,
map('k', id) AS k, CASE WHEN id > 5 THEN id END AS `a-b` FROM range(10)"""


@pytest.fixture
def table(db: SqlTables) -> DeltaTable:
    """A table of most types."""
    return db.create("t", ROWS)


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("SELECT * FROM t", None),
        ("SELECT ID, NAME AS n, `a-b` FROM t", None),
        ("SELECT * FROM t WHERE id = 3", None),
        ("SELECT id AS name FROM t WHERE Name = '4'", None),
        ("SELECT id FROM t WHERE upper(name) LIKE '%5%' OR third", None),
        ("SELECT id FROM t WHERE s.x = 3", None),
        ("SELECT id FROM t WHERE `a-b` IS NULL AND id IN (?, ?)", [3, 9]),
        ("SELECT id, at, local FROM t WHERE at < current_timestamp() AND id > :id", {"id": 7}),
        ("SELECT id FROM t WHERE day BETWEEN '2025-01-03' AND '2025-01-05'", None),
        ("SELECT id FROM t WHERE d = 2 AND m = 2.00", None),
        ("SELECT id FROM t WHERE id IN (3, NULL)", None),
        ("SELECT id FROM t WHERE id NOT IN (3, NULL)", None),
        ("SELECT id FROM t LIMIT 0", None),
        ("SELECT id FROM t x WHERE id = 1 LIMIT 3", None),
    ],
)
@pytest.mark.usefixtures("table")
def test_both_ways_answer_alike(db: SqlTables, query: str, parameters: Any) -> None:
    own = db.run(query, parameters).to_arrow()
    other = db.run(f"WITH other AS (SELECT 1) {query}", parameters).to_arrow()
    assert own.column_names == other.column_names
    assert own.to_pylist() == other.to_pylist()
    plain = [kind for kind in own.schema.types if not pa.types.is_nested(kind)]
    assert plain == [kind for kind in other.schema.types if not pa.types.is_nested(kind)]


def test_a_scan_needs_no_duckdb(db: SqlTables, monkeypatch: pytest.MonkeyPatch) -> None:
    table = db.create("t", ROWS)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.setattr("deltalog.query.duckdb._SHARED", {})
    assert db.values("SELECT id FROM t WHERE id < 2") == [0, 1]
    assert table.sql("SELECT id FROM this WHERE id < 2").read_all().num_rows == 2
    with pytest.raises(InvalidInputError, match="DuckDB is not installed"):
        db.run("SELECT count(*) FROM t")


@pytest.mark.parametrize(
    ("query", "place", "words"),
    [
        ("SELECT id\nFROM t\nWHERE CAST(concat(name, 'x') AS INT) = 1", (3, 7), "0x"),
        ("SELECT id FROM t WHERE id / (id - 5) > 100", (1, 24), "zero"),
        ("SELECT id FROM t WHERE no_such_function(id)", (1, 24), "no_such_function"),
    ],
)
@pytest.mark.usefixtures("table")
def test_errors_have_their_place(
    db: SqlTables, query: str, place: tuple[int, int], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        db.run(query).to_arrow()
    assert "line {}, character {}".format(*place) in str(caught.value)


@pytest.mark.parametrize("query", ["SELECT other FROM t", "SELECT id FROM t WHERE other = 1"])
@pytest.mark.usefixtures("table")
def test_columns_that_are_not_there_are_refused(db: SqlTables, query: str) -> None:
    with pytest.raises(InvalidInputError, match="other"):
        db.run(query).to_arrow()


def test_versions_are_those_that_are_named(db: SqlTables) -> None:
    table = db.create("t", "AS SELECT * FROM range(3)")
    write_deltalake(table, pa.table({"id": [7]}), mode="append")
    assert db.values("SELECT id FROM t@v0") == [0, 1, 2]
    assert db.values("SELECT id FROM t VERSION AS OF 1 WHERE id > 1") == [2, 7]
    assert db.values(f"SELECT id FROM delta.`{table.table_uri}` WHERE id > 1") == [2, 7]
    assert table.sql("SELECT id FROM this@v0").read_all()["id"].to_pylist() == [0, 1, 2]
    with pytest.raises(TableNotFoundError, match="cannot find the table u"):
        db.run("SELECT id FROM u")


def test_rows_of_other_kinds_are_answered_by_duckdb() -> None:
    found = connect({"r": pa.table({"x": [1, 2]})}).sql("SELECT x FROM r WHERE x = 2")
    assert found.to_pylist() == [{"x": 2}]


def test_a_table_takes_its_own_rows(db: SqlTables) -> None:
    db.create("t", "AS SELECT * FROM range(3)")
    db.run("INSERT INTO t SELECT id FROM t WHERE id > 0")
    assert db.values("SELECT id FROM t") == [0, 1, 1, 2, 2]


def test_what_is_read_is_a_conflict_for_what_is_written(db: SqlTables) -> None:
    table = db.create("t", "AS SELECT * FROM range(3)")
    db.session.begin()
    assert not db.session.has_read(table)
    db.run("INSERT INTO t SELECT id FROM t WHERE id > 1")
    assert db.session.has_read(table)
