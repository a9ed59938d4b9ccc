"""Hints in errors that fit the wrong value: a type, an option, an alias, a missing table."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog import DeltaTable, Field, write_deltalake
from deltalog.errors import (
    DataFileMissingError,
    DataFileUnreadableError,
    DeltaError,
    InvalidInputError,
    TableNotFoundError,
)


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", {"id": [1, 2], "name": ["a", "b"]})
    return DeltaTable(tmp_path / "t")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"compression": "zstd"}, r"; write WriterProperties\(compression='zstd'\)$"),
        ("zstd", r"; write WriterProperties\(compression='zstd'\)$"),
        ({"n": 1}, "pass values for . or :name as parameters=…$"),
        ("name = 'a'", "join conditions with AND$"),
    ],
)
def test_wrong_writer_properties(table: DeltaTable, given: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        table.delete("id = 1", given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("decimal(50,2)", r"at most 38 digits, as in decimal\(38,2\)$"),
        ("list<int>", "write array<type>$"),
        ("struct<a: map<int>>", "write map<key type, value type>$"),
    ],
)
def test_wrong_types(given: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Field("a", given)


@pytest.mark.parametrize(
    ("sql", "parameters", "message"),
    [
        ("SELECT ':t' FROM :t", {"t": "t"}, "character 18: a parameter cannot be the name"),
        ("SELECT * FROM ?", ["t"], "character 15: a parameter cannot be the name of a table"),
        ("SELECT id, FROM t", None, "character 12: expected a column after the comma, found FROM"),
        ("SELECT id AS `x`,\nFROM t", None, "line 2, character 1: expected a column after"),
        ("SELECT * FROM (SELECT upper(name), FROM t)", None, "expected a column after the comma"),
        ("INSERT INTO t (id, nme) VALUES (1, 'a')", None, "column 'nme': did you mean 'name'[?]"),
        ("SHOW HISTORY t", None, "write DESCRIBE HISTORY t$"),
        ("SELECT list_agg(name) FROM t", None, r"write collect_list\(value\)$"),
        (
            "MERGE INTO t USING (SELECT 1 id) ON t.id = s.id WHEN MATCHED THEN DELETE",
            None,
            "in SQL, write AS s after the table or the source$",
        ),
    ],
)
def test_wrong_sql(table: DeltaTable, sql: str, parameters: Any, message: str) -> None:
    with pytest.raises(DeltaError, match=message):
        deltalog.sql(sql, parameters, t=table).to_pylist()


def test_a_column_named_from_is_no_end_of_the_list(table: DeltaTable) -> None:
    rows = deltalog.sql("SELECT id, `from` FROM (SELECT id, name AS `from` FROM t)", t=table)
    assert rows.to_pylist()[0] == {"id": 1, "from": "a"}


def test_a_table_among_the_parameters(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match=r"deltalog\.sql\(query, t=table\)$"):
        deltalog.sql("SELECT * FROM t", {"t": table})


def test_an_empty_file_is_not_nothing(tmp_path: Path) -> None:
    (tmp_path / "f.parquet").touch()
    with pytest.raises(TableNotFoundError, match="found a Parquet file; a table is a directory"):
        DeltaTable(tmp_path / "f.parquet")


@pytest.mark.parametrize("read", [DeltaTable.to_pandas, DeltaTable.to_pyarrow_table])
def test_a_table_whose_directory_is_gone(table: DeltaTable, read: Any) -> None:
    shutil.rmtree(table.table_uri)
    with pytest.raises(DataFileMissingError, match=r"t was deleted or moved") as caught:
        read(table)
    assert "vacuum" not in str(caught.value)


def test_advice_after_a_sentence_of_arrow(table: DeltaTable) -> None:
    for file in Path(table.table_uri).glob("*.parquet"):
        file.write_bytes(b"no Parquet file" * 100)
    with pytest.raises(DataFileUnreadableError) as caught:
        table.to_pandas()
    assert ".; " not in str(caught.value)


def test_the_article_of_a_type(tmp_path: Path) -> None:
    rows: Any = 5
    with pytest.raises(InvalidInputError, match="cannot write the data, an int: expected"):
        write_deltalake(tmp_path / "n", rows)


@pytest.mark.parametrize("kind", ["hive", "hms", "polaris", "Nessie_catalog"])
def test_a_kind_of_catalog_without_a_client(kind: str) -> None:
    with pytest.raises(InvalidInputError, match=r"no client .*connect\({'sales': location}\)"):
        deltalog.connect(catalog=kind)


def test_a_host_without_an_address() -> None:
    with pytest.raises(DeltaError, match=r"check the host in the location, and the network$"):
        DeltaTable("ftp://no-such-host.invalid/t")
