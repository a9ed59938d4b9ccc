"""Mistakes that users of other libraries make: each error says what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.operations import arguments


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """A table of two rows."""
    write_deltalake(tmp_path / "t", {"id": [1, 2], "name": ["n1", "n2"]})
    return DeltaTable(tmp_path / "t")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("filter", r": use scan\(predicate=…\)$"),
        ("write", r": use deltalog\.write_deltalake\(table, rows, mode=…\)$"),
        ("append", r": use deltalog\.write_deltalake\("),
        ("select", r": use scan\(columns, predicate=…\)$"),
        ("to_panda", r": did you mean 'to_pandas'\?$"),
        ("vacuums", r": did you mean 'vacuum'\?$"),
        ("zzz", r"no attribute 'zzz'$"),
        ("foo", r"no attribute 'foo'$"),
        ("_filter", r"no attribute '_filter'$"),
    ],
)
def test_a_missing_attribute_suggests_public_names(table: DeltaTable, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(table, name)


def test_suggestions_exist(table: DeltaTable) -> None:
    for name, meant in arguments._MEANT.items():
        assert not hasattr(type(table), name), name
        owner: Any = table
        for part in meant.removeprefix("deltalog.").partition("(")[0].split("."):
            owner = write_deltalake if part == "write_deltalake" else getattr(owner, part)


def test_attributes_of_parts(table: DeltaTable) -> None:
    with pytest.raises(AttributeError, match=r"did you mean 'set_table_properties'\?"):
        table.alter.set_properties  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(InvalidInputError, match=r"call optimize\.compact\(\)"):
        table.optimize()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("delta.nonsense", r"'delta\.nonsense'$"),
        ("delta.appendonly2", r"did you mean 'delta\.appendOnly'\?"),
        ("delta.enableChangeDataFed", r"did you mean 'delta\.enableChangeDataFeed'\?"),
    ],
)
def test_an_unknown_property(table: DeltaTable, key: str, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        table.alter.set_table_properties({key: "1"})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("engine", r"DeltaTable\(location, engine=…\)"),
        ("overwrite_schema", r"use schema_mode='overwrite'$"),
        ("mod", r"did you mean 'mode'\?$"),
        ("zzz", r"argument 'zzz'$"),
    ],
)
def test_an_unknown_argument_of_a_write(table: DeltaTable, name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        write_deltalake(table, {"id": [3]}, **{name: 1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("predicate", "hint"),
    [
        ("name = n1", r"the columns are 'id', 'name'.*; a string has quotes: 'n1'$"),
        ("names = 'n1'", r"did you mean 'name'\?$"),
        ("id = 1 && name = 'n1'", "write AND$"),
        ("id = 1 && (name = 'n1')", "write AND$"),
    ],
)
def test_a_predicate_that_is_no_spark_sql(table: DeltaTable, predicate: str, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        table.delete(predicate)
    with pytest.raises(InvalidInputError, match=hint):
        table.scan(predicate=predicate)
    assert table.count() == 2


def test_a_value_without_quotes(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="a string has quotes: 'bob'"):
        table.update({"name": "bob"})


@pytest.mark.parametrize(
    ("frame", "hint"),
    [
        (pd.DataFrame({"c": [1 + 2j]}), r"column c .*write \.real and \.imag"),
        (pd.DataFrame({"c": pd.arrays.SparseArray([0, 1])}), r"column c\) .*\.sparse\.to_dense"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "several columns have the name 'a'; rename"),
    ],
)
def test_a_frame_that_no_table_can_store(tmp_path: Path, frame: pd.DataFrame, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        write_deltalake(tmp_path / "t", frame)
    assert not (tmp_path / "t").exists()


def test_a_relation_whose_connection_is_closed(tmp_path: Path) -> None:
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS id")
    connection.close()
    with pytest.raises(InvalidInputError, match="keep the connection open"):
        write_deltalake(tmp_path / "t", relation)


@pytest.mark.parametrize(
    ("location", "hint"),
    [
        ("s3:/bucket/t", "two slashes, as in s3://bucket/table"),
        ("s3a:/bucket/t", "two slashes"),
        ("gs:/bucket/t", "two slashes"),
        ("r2://bucket/t", "aws_endpoint_url"),
        ("dbfs:/t", "need 'instance' and 'token'; or pass the location in the cloud"),
        ("az://container/t", "the storage account is unknown"),
    ],
)
def test_a_location_that_cannot_be_opened(
    monkeypatch: pytest.MonkeyPatch, location: str, hint: str
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)
    with pytest.raises(InvalidInputError, match=hint):
        DeltaTable(location)
