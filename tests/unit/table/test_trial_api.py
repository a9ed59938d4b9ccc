"""Python calls of a reader who tried the library, and what they are answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import deltalake
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deltalog.dask
import deltalog.ray
from deltalog import DeltaTable, Field, col, write_deltalake
from deltalog.catalogs import FileCatalog, NamedTable
from deltalog.errors import InvalidInputError
from deltalog.sharing import SharedTable

ONE, TWO = UUID(int=1), UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")


def _any(value: Any) -> Any:
    """Hide the type of a value, so that type checkers accept a wrong call."""
    return value


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", {"id": [1, 2, 3], "name": ["a", "b", "c"]})
    return DeltaTable(tmp_path / "t")


def test_properties_with_brackets(table: DeltaTable) -> None:
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    assert table.properties().append_only is table.properties.append_only is True
    assert dict(table.properties().items()) == {"delta.appendOnly": "true"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("versions", r"use history\(\)$"),
        ("log", r"use history\(\)$"),
        ("cdf", r"use load_cdf\(starting_version\)$"),
        ("enable_cdf", r"use alter\.set_table_properties\("),
        ("delete_where", r"use delete\(predicate\)$"),
        ("explain", r"use scan\(predicate=…\)\.explain\(\)$"),
        ("partition_columns", r"use metadata\(\)\.partition_columns$"),
        ("name", r"use metadata\(\)\.name$"),
        ("is_empty", r"use count\(\) == 0$"),
        ("to_csv", r"use to_pandas\(\)"),
        ("close", "holds no connection"),
        ("isDeltatable", r"did you mean 'is_deltatable'\?$"),
    ],
)
def test_attributes_of_other_libraries(table: DeltaTable, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(table, name)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda t: t.head(limit=1), r"DeltaTable\.head\(\) .*did you mean 'num_rows'\?$"),
        (lambda t: t.to_pandas(limit=1), r"use scan\(limit=…\)$"),
        (lambda t: t.to_polars(n=1), r"use scan\(limit=…\)$"),
        (
            lambda t: t.alter.set_table_properties(appendOnly=True),
            r"pass a dictionary, \{'delta\.appendOnly': 'true'\}$",
        ),
        (lambda _: _any(Field)("a", dtype="int"), r"Field\(\) .*did you mean 'type'\?$"),
        (lambda t: t.count("id = ?", params=[1]), "did you mean 'parameters'"),
        (lambda t: t.follow().available()[0], r"use next\(steps, None\)"),
        (lambda t: t.__enter__(), r"`with table\.transaction\(\) as tx:`"),
    ],
)
def test_arguments_of_other_libraries(
    table: DeltaTable, call: Callable[[Any], Any], hint: str
) -> None:
    with pytest.raises(TypeError, match=hint):
        call(table)


def test_a_table_is_no_context_manager(table: DeltaTable) -> None:
    opened: Any = table
    with pytest.raises(TypeError, match="a DeltaTable is not a context manager"), opened:
        pass
    with table.scan(limit=1) as rows:  # scans remain context managers
        assert rows.count() == 1


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda t: t.follow(str(next(t.follow().available()).offset)), r"store offset\.to_json"),
        (lambda _: Field("x", "int64"), "cannot make a type of 'int64': did you mean 'long'"),
        (lambda _: _any(Field)("x", 5), "5, an int: expected a type"),
        (lambda _: _any(FileCatalog("/tmp")).list_tables("s"), r"here \('s',\)"),  # noqa: S108  # not read
        (
            lambda _: _any(NamedTable)(catalog=FileCatalog("/tmp"), name="s.t"),  # noqa: S108  # not read
            r"here \('s', 't'\)",
        ),
        (
            lambda t: t.merge({"x": [1]}, "source.id = target.id").when_matched_delete().execute(),
            r"no column 'source\.id': the columns are 'source\.x'",
        ),
    ],
)
def test_values_that_are_refused(table: DeltaTable, call: Callable[[Any], Any], hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        call(table)


def test_modules_of_engines_name_their_functions() -> None:
    for module, name, hint in (
        (deltalog.dask, "read_delta", r"use read\("),
        (deltalog.ray, "read_deltalake", r"use read\("),
        (deltalog.ray, "writes", "did you mean 'write'"),
    ):
        with pytest.raises(AttributeError, match=hint):
            getattr(module, name)


def test_shares_have_no_history() -> None:
    with pytest.raises(AttributeError, match="latest_version"):
        getattr(SharedTable, "__getattr__")(SharedTable.__new__(SharedTable), "history")  # noqa: B009


# --- parameters


def test_positional_parameters_of_an_update(table: DeltaTable) -> None:
    table.update({"name": "?"}, predicate="id = ?", parameters=["x", 1])
    table.update({"name": "concat(?, '?', ?)", "id": "id * ?"}, predicate="id > ?",
                 parameters=["p", "q", 10, 2])  # fmt: skip
    assert sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "name": "x"},
        {"id": 2, "name": "b"},
        {"id": 30, "name": "p?q"},
    ]
    with table.transaction() as transaction:
        transaction.update({"name": "?"}, predicate="id = ?", parameters=["y", 2])
    assert table.count("name = 'y'") == 1


@pytest.mark.parametrize(
    ("updates", "predicate", "parameters", "problem"),
    [
        ({"name": "?"}, "id = ?", ["x"], "found only 0 values for parameters"),
        ({"name": "?"}, None, ["x", 1], "there is no predicate for them"),
        (
            {"name": "?"},
            "id = 1",
            ["x", 1],
            "found 1 value for parameters, but 'id = 1' has 0 parameters",
        ),
        ({"name": "?"}, "id = 1", None, r"a parameter \? needs a list"),
        ({"name": "?"}, "id = 1", {"x": 1}, r"a parameter \? needs a list"),
    ],
)
def test_wrong_numbers_of_parameters(
    table: DeltaTable, updates: Any, predicate: Any, parameters: Any, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        table.update(updates, predicate=predicate, parameters=parameters)
    assert table.version() == 0


def test_parameters_of_every_read(table: DeltaTable) -> None:
    given: Any = {"parameters": [2]}
    assert table.count("id >= ?", **given) == 2
    assert table.head(predicate="id >= ?", **given).num_rows == 2
    assert table.to_pyarrow_table(filters="id >= ?", **given).num_rows == 2
    assert len(table.to_pandas(filters="id >= ?", **given)) == 2
    assert len(table.to_polars(filters="id >= ?", **given)) == 2
    assert len(table.to_polars(filters="id >= ?", lazy=True, **given).collect()) == 2
    assert len(table.to_duckdb(filters="id >= ?", **given).fetchall()) == 2
    assert table.to_pyarrow_dataset(file_pruning_predicate="id >= ?", **given).count_rows() == 2
    assert table.file_uris(file_pruning_predicate="id > ?", parameters=[5]) == []
    assert table.partitions(file_pruning_predicate="id > ?", parameters=[5]) == []


# --- UUIDs


@pytest.mark.parametrize(
    "make",
    [
        lambda ids: [{"u": one} for one in ids],
        lambda ids: {"u": ids},
        lambda ids: pd.DataFrame({"u": ids}),
        lambda ids: pd.DataFrame({"u": ids}, dtype=object),
        lambda ids: pl.DataFrame({"u": pl.Series(ids, dtype=pl.Object)}),
    ],
)
def test_uuids_become_strings(tmp_path: Path, make: Callable[[Any], Any]) -> None:
    write_deltalake(tmp_path / "t", make([ONE, None, TWO]))
    table = DeltaTable(tmp_path / "t")
    assert str(table.schema().fields[0].type) == "string"
    assert table.to_pyarrow_table()["u"].to_pylist() == [str(ONE), None, str(TWO)]
    assert table.count(col("u") == TWO) == table.count([("u", "=", TWO)]) == 1
    assert table.count(col("u").is_in([ONE, TWO])) == 2
    assert table.count("u = ?", parameters=[ONE]) == 1
    assert deltalog.sql("SELECT u FROM t WHERE u = ?", [ONE], t=table).to_pylist() == [
        {"u": str(ONE)}
    ]
    table.update(new_values={"u": ONE}, predicate=col("u") == TWO)
    assert table.count(col("u") == ONE) == 2


def test_nested_uuids(tmp_path: Path) -> None:
    rows: Any = [{"a": [ONE], "s": {"u": TWO}}, {"a": None, "s": {"u": None}}]
    write_deltalake(tmp_path / "t", rows)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist() == [
        {"a": [str(ONE)], "s": {"u": str(TWO)}},
        {"a": None, "s": {"u": None}},
    ]


@pytest.mark.parametrize("make", [lambda ids: [{"u": one} for one in ids],
                                  lambda ids: {"u": ids},
                                  lambda ids: pd.DataFrame({"u": ids})])  # fmt: skip
def test_binary_columns_store_the_bytes_of_uuids(
    tmp_path: Path, make: Callable[[Any], Any]
) -> None:
    table = DeltaTable.create(tmp_path / "t", pa.schema([("u", pa.binary())]))
    write_deltalake(table, make([ONE, None]), mode="append")
    assert table.to_pyarrow_table()["u"].to_pylist() == [ONE.bytes, None]


def test_a_field_of_deltalake_is_a_field(table: DeltaTable) -> None:
    field = _any(deltalake.Field)("x", "string")
    table.alter.add_columns(field)
    table.alter.add_columns([_any(deltalake.Field)("y", "long")])
    assert table.schema().names == ("id", "name", "x", "y")
