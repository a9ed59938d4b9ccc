"""SQL that was accepted with another meaning, or refused by an error of another library."""

from __future__ import annotations

import copy
import pickle
from enum import Enum
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import DeltaError, InvalidInputError, TableExistsError

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"], "big": [2**63 - 1, 2**63 - 1]})


class Kind(Enum):
    """A value that no column has."""

    A = 1


def run(query: str, parameters: Any = None, rows: Any = ROWS) -> list[dict[str, Any]]:
    return deltalog.sql(query, parameters, t=rows).to_pylist()


@pytest.mark.parametrize(
    ("query", "parameters", "message"),
    [
        # DuckDB would name only the first columns, or return the columns that exist.
        ("WITH a(x, y) AS (SELECT 1) SELECT * FROM a", None, "names 2 .* its rows have 1"),
        ("WITH a(x) AS (SELECT 1, 2 UNION SELECT 3, 4) SELECT * FROM a", None, "rows have 2"),
        ("SELECT * FROM (SELECT 1, 2) a(x)", None, "character 29: the alias 'a' names 1"),
        ("SELECT * FROM VALUES (1, 2) a(x)", None, "rows have 2"),
        ("SELECT FROM t", None, "expected the columns or values to select, found FROM"),
        ("SELECT * FROM (SELECT FROM t)", None, "expected the columns or values to select"),
        ("SELECT group_concat(name) FROM t", None, "write listagg[(]value, ','[)]"),
        ("SELECT group_concat(name) OVER (ORDER BY id) FROM t", None, "write listagg"),
        # `t:a` is a column and an alias to sqlglot.
        ("SELECT name:a FROM t", {"a": 1}, "expected a name, found the parameter :a; a field"),
        ("SELECT id FROM t LIMIT ?", ["2"], "'SELECT id FROM t LIMIT [?]': LIMIT .* found '2'$"),
        ("SELECT id FROM t LIMIT :n", {"n": 1.5}, "LIMIT expects a number of rows, found 1.5$"),
        ("SELECT id FROM t OFFSET ?", [-1], "OFFSET expects a number of rows, found -1$"),
        ("SELECT id FROM t LIMIT ?", [True], "LIMIT expects a number of rows, found True$"),
        ("SELECT id FROM t LIMIT 99999999999999999999", None, "character 24: LIMIT expects"),
        ("SELECT id FROM t ORDER BY ?", ["id"], "BY [?]': ORDER BY cannot contain a parameter"),
        ("SELECT count(*) FROM t GROUP BY ?", ["id"], "GROUP BY cannot contain a parameter"),
        ("SELECT id FROM t ORDER BY 'id'", None, "write the column without quotes$"),
        ("SELECT sum(big) AS s FROM t", None, "18446744073709551614 is out of range for BIGINT"),
        (
            "SELECT sum(id) OVER (ORDER BY name RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
            None,
            "RANGE with a number needs a number or a date in ORDER BY, found .* of type STRING",
        ),
        ("SELECT ? AS x", [Kind.A], "SELECT [?] AS x': a parameter is a Kind"),
        (
            "SELECT id FROM t WHERE id = ?1",
            [1],
            "= [?]1' at line 1, character 30: expected the end",
        ),
    ],
)
def test_a_query_is_refused(query: str, parameters: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(query, parameters)


@pytest.mark.parametrize(
    ("query", "parameters", "expected"),
    [
        ("WITH a(x, y) AS (SELECT 1, 2) SELECT * FROM a", None, [{"x": 1, "y": 2}]),
        ("SELECT * FROM (SELECT posexplode(array(7))) a(p, x)", None, [{"p": 0, "x": 7}]),
        ("SELECT * FROM (SELECT * FROM t) a(x, y, z) LIMIT 0", None, []),
        ("SELECT listagg(name, '-') AS x FROM t", None, [{"x": "a-b"}]),
        ("SELECT id FROM t ORDER BY id LIMIT ? OFFSET ?", [1, 1], [{"id": 2}]),
        # The name of a parameter is in the name of the column, because the value is not part of
        # the query.
        ("SELECT ?, ? + 1", ["a", 1], [{"?": "a", "(? + 1)": 2}]),
        ("SELECT :v + 1", {"v": 1}, [{"(:v + 1)": 2}]),
    ],
)
def test_a_query_is_accepted(query: str, parameters: Any, expected: list[dict[str, Any]]) -> None:
    assert run(query, parameters) == expected


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["id", "id"]), "same name, ignoring case: 'id', 'id'"),
        (pa.table({"id": [1], "ID": [2]}), "same name, ignoring case: 'id', 'ID'"),
        ([], "one of its tables has no columns"),
        (pd.DataFrame({"id": [1j]}), "a column of the dtype 'complex128'"),
        (pa.table({"id": pa.array([None], pa.float16())}), "an Arrow type that SQL does not have"),
    ],
)
def test_rows_are_refused(rows: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run("SELECT * FROM t", rows=rows)


def test_a_relation_of_a_closed_connection() -> None:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS id")
    connection.close()
    with pytest.raises(InvalidInputError, match="cannot read t, a DuckDB relation, in SQL: "):
        run("SELECT * FROM t", rows=relation)


@pytest.mark.parametrize("send", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_result_cannot_be_pickled(send: Any) -> None:
    with pytest.raises(TypeError, match="cannot be pickled or copied: use its to_arrow"):
        send(deltalog.sql("SELECT 1 AS id"))


def test_a_table_has_one_location(tmp_path: Path) -> None:
    name, place = f"delta.`{tmp_path / 'a'}`", tmp_path / "b"
    with pytest.raises(InvalidInputError, match="its name is a location, so LOCATION"):
        deltalog.sql(f"CREATE TABLE {name} (id INT) USING DELTA LOCATION '{place}'")
    assert not DeltaTable.is_deltatable(str(place))


def test_a_location_that_has_a_table(tmp_path: Path) -> None:
    statement = f"CREATE TABLE a (id INT) USING DELTA LOCATION '{tmp_path}'"
    deltalog.sql(statement)
    deltalog.sql(statement)  # names the table, as in Spark
    with pytest.raises(InvalidInputError, match="id"):
        deltalog.sql(statement.replace("INT", "STRING"))
    with pytest.raises(TableExistsError, match=r"it already exists, at .*CREATE OR REPLACE TABLE"):
        deltalog.sql(f"CREATE TABLE a USING DELTA LOCATION '{tmp_path}' AS SELECT 1 AS id")
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize(
    "statement",
    [
        # A column in double quotes is a string, of which Spark's casts make TRUE.
        'DELETE FROM t WHERE "y"',
        "DELETE FROM t WHERE 'true'",
        "DELETE FROM t WHERE name",
        "UPDATE t SET id = 0 WHERE 't'",
        "UPDATE t SET id = CASE WHEN 'true' THEN 0 ELSE id END",
        "MERGE INTO t USING (SELECT 1 AS k) s ON 'true' WHEN MATCHED THEN DELETE",
    ],
)
def test_a_string_alone_is_not_a_condition(tmp_path: Path, statement: str) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "name": ["t", "y"]}))
    with pytest.raises(InvalidInputError, match="is of type string, but a condition is expected"):
        deltalog.sql(statement, t=tmp_path)
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # Spellings of Spark that DuckDB does not have
        ("SELECT count(*) FROM t CROSS JOIN t u ON t.id = u.id", [2]),
        ("SELECT x FROM t, LATERAL explode(array(id, 9)) AS y(x) WHERE id = 1 ORDER BY x", [1, 9]),
        ("SELECT p FROM t JOIN LATERAL posexplode(array(7)) y(p, x) ON id = 2", [0]),
        (
            "SELECT id FROM t LEFT JOIN LATERAL explode(array()) y(x) ON true ORDER BY id",
            [1, 2],
        ),
        ("SELECT count(*) AS n FROM t GROUP BY id, name WITH ROLLUP ORDER BY n", [1, 1, 1, 1, 2]),
        ("SELECT count(*) AS n FROM t GROUP BY id, name WITH CUBE ORDER BY n", [1] * 6 + [2]),
        ("SELECT count(*) AS n FROM t GROUP BY id + 1 WITH ROLLUP HAVING n > 1", [2]),
    ],
)
def test_spellings_of_spark(query: str, expected: list[int]) -> None:
    assert [value for row in run(query) for value in row.values()] == expected


def test_an_empty_map_has_types() -> None:
    with pytest.raises(InvalidInputError, match=r"types of map\(\) are unknown; write ") as caught:
        run("SELECT map() AS m")
    written = str(caught.value).rpartition("write ")[2]
    assert run(f"SELECT {written} AS m") == [{"m": []}]


@pytest.mark.parametrize("kind", ["parquet", "ICEBERG", "csv", "json", "orc"])
@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM {}", "DELETE FROM {}", "DESCRIBE HISTORY {}", "INSERT INTO {} VALUES (1)"],
)
def test_files_of_other_formats_are_not_read_as_delta(tmp_path: Path, kind: str, sql: str) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    with pytest.raises(DeltaError, match=rf"write delta.`{tmp_path}/t`; read other files with"):
        deltalog.sql(sql.format(f"{kind}.`{tmp_path}/t`")).to_pylist()
    copy = f"CREATE TABLE delta.`{tmp_path}/{kind}` SHALLOW CLONE parquet.`{tmp_path}/t`"
    deltalog.sql(copy)
    assert DeltaTable(tmp_path / kind).count() == 1
