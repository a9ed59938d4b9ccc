"""DuckDB's connections: what queries can reach, and errors as they were."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, QueryBuilder, sql, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.query.duckdb import (
    connect_duckdb,
    has_spans,
    is_of_table,
    query_duckdb,
    shared_duckdb,
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('{file}')",
        "COPY (SELECT 1) TO '{file}'",
        "ATTACH '{file}' AS other",
        "INSTALL httpfs",
        "SET threads = 1",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "RESET lock_configuration",
        "CREATE SECRET s (TYPE s3)",
    ],
)
def test_a_connection_reaches_neither_files_nor_settings(tmp_path: Path, sql: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("secret", "utf-8")
    with pytest.raises(InvalidInputError):
        query_duckdb(connect_duckdb(), sql.format(file=file), {}).read_all()
    assert file.read_text("utf-8") == "secret"


def test_users_may_open_the_door(tmp_path: Path) -> None:
    file = tmp_path / "open.txt"
    file.write_text("open", "utf-8")
    database = connect_duckdb({"enable_external_access": "true"})
    found = query_duckdb(database, f"SELECT content FROM read_text('{file}')", {})
    assert found.read_all().to_pydict() == {"content": ["open"]}


def test_a_query_builder_has_duckdbs_own_settings() -> None:
    found = QueryBuilder({"threads": "1"}).execute(
        "SELECT current_setting('enable_external_access') AS files"
    )
    assert found.read_all().to_pydict() == {"files": [True]}


def test_moments_are_in_utc() -> None:
    found = query_duckdb(connect_duckdb(), "SELECT TIMESTAMPTZ '2025-01-01 00:00:00' AS t", {})
    assert found.schema.field("t").type == pa.timestamp("us", "UTC")


def test_an_unknown_setting_is_named_without_its_value() -> None:
    with pytest.raises(InvalidInputError, match="nonsense") as error:
        connect_duckdb({"nonsense": "a secret"})
    assert "a secret" not in str(error.value)


def test_a_table_answers_queries_about_itself_and_nothing_else(tmp_path: Path) -> None:
    from deltalog import write_deltalake

    write_deltalake(
        tmp_path / "t", pa.table({"x": [1]}), configuration={"delta.enableChangeDataFeed": "true"}
    )
    write_deltalake(tmp_path / "t", pa.table({"x": [2]}), mode="append")
    table = DeltaTable(tmp_path / "t")
    assert table.sql("SELECT sum(x) AS s FROM this").read_all()["s"].to_pylist() == [3]
    assert table.sql("SELECT x FROM this@v0").read_all()["x"].to_pylist() == [1]
    at_start = table.sql("SELECT x FROM this VERSION AS OF :v WHERE x < :most", {"v": 0, "most": 9})
    assert at_start.read_all()["x"].to_pylist() == [1]
    changes = table.sql("SELECT x, _change_type AS c FROM table_changes('this', 1)").read_all()
    assert changes.to_pydict() == {"x": [2], "c": ["insert"]}
    assert table.version() == 1
    with pytest.raises(InvalidInputError, match="this table is called `this` here"):
        table.sql("SELECT * FROM other")
    with pytest.raises(InvalidInputError, match="expected a table"):
        table.sql(f"SELECT * FROM read_text('{tmp_path}')")


def test_queries_without_settings_share_a_database_and_nothing_else() -> None:
    assert shared_duckdb() is shared_duckdb()
    assert connect_duckdb() is not shared_duckdb()

    def total(number: int) -> list[Any]:
        t = pa.table({"x": pa.array([number, number], pa.int64())})
        found = deltalog.sql("SELECT sum(pmod(x, 1000)) AS s FROM t", t=t)
        answer: list[Any] = found.to_arrow()["s"].to_pylist()
        return answer

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(total, range(100))) == [[2 * one] for one in range(100)]
    with pytest.raises(InvalidInputError, match="t"):
        query_duckdb(shared_duckdb(), "SELECT * FROM t", {})


_FORKED = """
import os, sys
import pyarrow as pa
import deltalog

def asked():
    rows = pa.table({"x": [1, 2]})
    return deltalog.sql("SELECT sum(pmod(x, 2)) AS s FROM t", t=rows).to_arrow()

print(asked()["s"].to_pylist(), flush=True)
if os.fork() == 0:
    print(asked()["s"].to_pylist(), flush=True)
    sys.exit(0)
_, status = os.wait()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.slow("forks processes")
@pytest.mark.skipif(sys.platform == "win32", reason="no forks")
def test_a_fork_has_a_database_of_its_own() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _FORKED], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "[1]\n[1]\n"), ended.stderr


def test_rows_of_a_table_know_its_schema(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"a": [1]}))
    table = DeltaTable(tmp_path)
    assert is_of_table(table.to_pyarrow_dataset())
    write_deltalake(tmp_path, pa.table({"a": [2]}), mode="append")
    assert is_of_table(table.scan())
    assert is_of_table(DeltaTable(tmp_path).diff(0))
    assert is_of_table(table.follow().poll())

    class Rows:
        schema = pa.schema([("a", pa.duration("us"))])

    Rows.__module__ = "deltalog.of_a_caller"
    assert not is_of_table(Rows())
    assert not has_spans(Rows())


def test_a_frame_with_a_tables_words_for_columns_is_a_frame() -> None:
    frame = pd.DataFrame({"schema": ["a"], "table_schema": ["b"]})
    query = "SELECT `schema` || 'x' AS q FROM info"
    assert sql(query, info=frame).to_pylist() == [{"q": "ax"}]
