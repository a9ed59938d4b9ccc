"""Words that are functions without brackets, or columns: CURRENT_DATE, LOCALTIMESTAMP, USER."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError

WORDS = ("current_date", "current_timestamp", "localtimestamp")
# DuckDB has functions of these names, even in quotes.
ONLY_COLUMNS = (
    "user", "current_user", "session_user", "current_role", "current_schema", "current_catalog",
    "current_time", "localtime",
)  # fmt: skip


@pytest.fixture(scope="module", params=["table", "rows"])
def named(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A Delta table, or rows, with a column for each word."""
    rows = {word: [f"{word} 1", f"{word} 2"] for word in (*WORDS, *ONLY_COLUMNS)}
    if request.param == "rows":
        return [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    path = tmp_path_factory.mktemp("named")
    write_deltalake(path, rows)
    return DeltaTable(path)


@pytest.mark.parametrize("word", [*WORDS, *ONLY_COLUMNS])
def test_a_column_precedes_the_function(named: Any, word: str) -> None:
    for query in (
        f"SELECT {word} FROM t WHERE {word} = '{word} 2'",
        f"SELECT t.{word} FROM t ORDER BY {word} DESC LIMIT 1",
        f"SELECT upper({word.upper()}) AS x, {word} FROM t WHERE {word} LIKE '%2'",
    ):
        assert deltalog.sql(query, t=named).to_pylist()[0][word] == f"{word} 2"


@pytest.mark.parametrize("word", WORDS)
def test_without_the_column_it_is_the_function(word: str) -> None:
    (row,) = deltalog.sql(f"SELECT {word} FROM t", t=[{"id": 1}]).to_pylist()
    assert list(row) == [f"{word}()"]
    assert deltalog.sql(f"SELECT {word} IS NOT NULL AS x").to_pylist() == [{"x": True}]


def test_localtimestamp_is_computed_in_utc_at_the_time_of_the_query() -> None:
    query = "SELECT localtimestamp AS x, localtimestamp() AS y FROM t"
    (row,) = deltalog.sql(query, t=[{"id": 1}]).to_pylist()
    assert row["x"] == row["y"]
    assert isinstance(row["x"], datetime)


@pytest.mark.parametrize("word", ONLY_COLUMNS)
@pytest.mark.parametrize("query", ["SELECT {} FROM t", "SELECT 1 FROM t WHERE {} = 'a'"])
def test_a_function_of_duckdb_is_none_of_deltalog(query: str, word: str) -> None:
    with pytest.raises(InvalidInputError, match=f"there is no column '{word}', and no function"):
        deltalog.sql(query.format(word), t=[{"id": 1}])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id AS user FROM t ORDER BY user",
        "SELECT user FROM (SELECT id AS user FROM t)",
        "SELECT user FROM (VALUES (1)) v(user)",
        "WITH user AS (SELECT id AS user FROM t) SELECT user.user FROM user",
    ],
)
def test_a_query_may_use_such_a_word_as_a_name(query: str) -> None:
    assert deltalog.sql(query, t=[{"id": 1}]).to_pylist() == [{"user": 1}]


def test_names_in_an_update_are_columns(tmp_path: Path) -> None:
    write_deltalake(tmp_path, {"user": ["a", "b"], "current_date": ["x", "y"]})
    db = deltalog.connect({"t": tmp_path})
    db.sql("DELETE FROM t WHERE user = 'a' AND current_date = 'x'")
    assert db.sql("SELECT user, current_date FROM t").to_pylist() == [
        {"user": "b", "current_date": "y"}
    ]
