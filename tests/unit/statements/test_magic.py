"""The notebook magic, in the smallest shell that has what IPython's has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog
from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.statements import SqlResult
from tests.support.sql_tables import SqlTables


class Shell:
    """Keeps magics and variables, by the names and signatures of IPython's shell."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magics: dict[tuple[str, str], Callable[..., Any]] = {}

    def register_magic_function(
        self, func: Callable[..., Any], magic_kind: str = "line", magic_name: str | None = None
    ) -> None:
        """As IPython's."""
        self.magics[magic_kind, str(magic_name)] = func

    def line(self, text: str) -> Any:
        """Run `%sql text`."""
        return self.magics["line", "sql"](text)

    def cell(self, line: str, text: str) -> Any:
        """Run a cell that begins with `%%sql line`."""
        return self.magics["cell", "sql"](line, text)


@pytest.fixture
def shell() -> Shell:
    """A shell that has loaded the extension."""
    made = Shell()
    deltalog.load_ipython_extension(made)
    return made


def test_variables_are_tables_and_parameters(shell: Shell, db: SqlTables) -> None:
    shell.user_ns |= {
        "arrow": pa.table({"x": [1]}),
        "frame": pd.DataFrame({"x": [2]}),
        "polar": pl.DataFrame({"x": [3]}),
        "delta": db.create("t", "AS SELECT 4 AS x"),
        "least": 2,
        "_hidden": pa.table({"x": [9]}),
        "pa": pa,
        "DataFrame": pd.DataFrame,
    }
    union = " UNION ALL ".join(
        f"SELECT x FROM {name}" for name in ("arrow", "frame", "polar", "delta")
    )
    result = shell.line(f"SELECT sum(x) AS n FROM ({union}) WHERE x >= :least")
    assert isinstance(result, SqlResult)
    assert result.to_pylist() == [{"n": 9}]
    with pytest.raises(TableNotFoundError):
        shell.line("SELECT * FROM _hidden")
    message = "the parameter :most has no value: define the variable most"
    for statement in ("SELECT :most", "DELETE FROM delta WHERE x = :most"):
        with pytest.raises(InvalidInputError, match=message):
            shell.line(statement)
        with pytest.raises(InvalidInputError, match=message):
            shell.cell("", statement)
    with pytest.raises(InvalidInputError, match="write :name, with the value in the variable name"):
        shell.line("SELECT ?")


def test_a_variable_that_changes_is_the_new_table(shell: Shell) -> None:
    shell.user_ns["t"] = pa.table({"x": [1]})
    assert shell.line("SELECT x FROM t").to_pylist() == [{"x": 1}]
    shell.user_ns["t"] = pa.table({"x": [2]})
    assert shell.line("SELECT x FROM t").to_pylist() == [{"x": 2}]


def test_a_cell_runs_statements_and_gives_the_last_result(shell: Shell, db: SqlTables) -> None:
    text = (
        f"CREATE TABLE made LOCATION '{db.root}/made' AS SELECT 1 AS id;\n"
        "INSERT INTO made VALUES (2);\nSELECT count(*) AS n FROM made"
    )
    assert shell.cell("", text).to_pylist() == [{"n": 2}]
    assert shell.cell("kept", "SELECT id FROM made ORDER BY id") is None
    assert shell.user_ns["kept"].to_pylist() == [{"id": 1}, {"id": 2}]
    assert shell.cell("", "-- nothing") is None


def test_a_result_needs_a_name_of_python_before_anything_runs(shell: Shell, db: SqlTables) -> None:
    db.create("t", "AS SELECT 1 AS id")
    shell.user_ns["t"] = db.table("t")
    with pytest.raises(InvalidInputError, match="expected a name for the result, found 'a b'"):
        shell.cell("a b", "DELETE FROM t")
    with pytest.raises(InvalidInputError, match="SELEC"):
        shell.cell("", "DELETE FROM t; SELEC")
    assert db.values("SELECT id FROM t") == [1]
