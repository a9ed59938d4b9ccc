"""Mistakes that users of other libraries make: each error says what to write instead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

import deltalog
from deltalog import DeltaTable, Field, convert_to_deltalake, write_deltalake
from deltalog.errors import (
    DataFileMissingError,
    DataFileUnreadableError,
    InvalidInputError,
    SchemaMismatchError,
    TableNotFoundError,
)
from deltalog.operations import names_elsewhere
from deltalog.table.catalog_branches import CatalogBranch
from deltalog.table.catalog_transaction import CatalogTransactions


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
        ("zzz", r"no attribute 'zzz'; help\(DeltaTable\) lists the methods, and t\.alter and"),
        ("foo", r"no attribute 'foo'; help\(DeltaTable\) lists"),
        ("_filter", r"no attribute '_filter'$"),
    ],
)
def test_a_missing_attribute_suggests_public_names(table: DeltaTable, name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(table, name)


def test_suggestions_exist(table: DeltaTable) -> None:
    for name, meant in names_elsewhere._MEANT.items():
        assert not hasattr(type(table), name), name
        owner: Any = table
        for part in meant.removeprefix("deltalog.").partition("(")[0].split("."):
            owner = getattr(deltalog if part in deltalog.__all__ else owner, part)


def test_attributes_of_parts(table: DeltaTable) -> None:
    with pytest.raises(AttributeError, match=r"use set_table_properties\({key: value}\)"):
        table.alter.set_properties  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(InvalidInputError, match=r"call optimize\.compact\(\)"):
        table.optimize()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("delta.nonsense", r"'delta\.nonsense'$"),
        ("delta.advanced", r"'delta\.advanced'$"),
        ("delta.logRetention", r"did you mean 'delta\.logRetentionDuration'\?"),
        ("delta.retention", r"did you mean 'delta\.deletedFileRetentionDuration'\?"),
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
        ("zzz", r"argument 'zzz'; the arguments are partition_by, mode, "),
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
        ("s3:/bucket/t", "two slashes, as in s3://bucket/t"),
        ("abfss:/c@a.dfs.core.windows.net/t", "as in abfss://c@a.dfs.core.windows.net/t"),
        ("s3://localhost:9000/b/t", r"expected s3://b/t, .*'http://localhost:9000'}"),
        ("s3://https://minio/b/t", r"expected s3://b/t, with .*'endpoint_url': 'https://minio'}"),
        ("gs://localhost:4443", r"expected gs://bucket/table, with .*'endpoint': 'http://local"),
        ("abfss://a.dfs.core.windows.net/c/t", "expected abfss://c@a.dfs.core.windows.net/t"),
        ("az://a.blob.core.windows.net", "abfss://container@a.dfs.core.windows.net/table"),
        ("https://a.blob.core.windows.net/c/t", "expected abfss://c@a.dfs.core.windows.net/t"),
        ("https://b.s3.eu-west-1.amazonaws.com/t", "expected s3://b/t"),
        ("https://s3.amazonaws.com/b/t", "expected s3://b/t"),
        ("https://storage.googleapis.com/b/t", "expected gs://b/t"),
        ("simplecache::s3://b/t", "chained URLs of fsspec are not supported"),
        ("minio://b/t", "API of S3 as s3://bucket/table"),
        pytest.param(
            *("D:\\data\\t", "the drive D: is /mnt/d"),
            marks=pytest.mark.skipif(os.name == "nt", reason="Windows has drives"),
        ),
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
    with pytest.raises(InvalidInputError, match=hint):
        write_deltalake(location, [{"id": 1}])


@pytest.mark.parametrize("rows", [[(1, "x")], [[1, "x"]]])
def test_rows_of_a_cursor_lack_names(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"dict\(zip\(names, row\)\) for row in rows"):
        write_deltalake(tmp_path / "t", rows)


def test_a_damaged_file_cannot_be_converted(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"x")
    with pytest.raises(DataFileUnreadableError) as caught:
        convert_to_deltalake(tmp_path)
    assert str(caught.value).endswith("8 bytes); restore it, or remove it first")


@pytest.mark.parametrize(
    ("location", "options", "hint"),
    [
        ("s3://b/t", {"aws_access_key": "x"}, "did you mean 'aws_access_key_id'"),
        ("s3://b/t", {"AWS_SECRET": "x"}, "did you mean 'AWS_SECRET_ACCESS_KEY'"),
        ("s3://b/t", lambda: None, "returns a dictionary of options, found a NoneType"),
        ("gs://b/t", {"token": "/none.json"}, "cannot read the credentials of Google in"),
    ],
)
def test_storage_options_that_would_have_no_effect(location: str, options: Any, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        DeltaTable(location, storage_options=options)


@pytest.mark.parametrize("value", [["x"], {"a": 1}, "bob smith"])
def test_updates_with_a_plain_value(table: DeltaTable, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="pass Python values as new_values"):
        table.update(updates={"name": value})


@pytest.mark.parametrize(
    "act",
    [
        lambda table: table.update({"id": "CAST(name AS INT)"}),
        lambda table: table.scan(predicate="CAST(name AS INT) = 1").to_table(),
        lambda table: deltalog.sql("SELECT CAST(name AS INT) FROM t", t=table).to_arrow(),
    ],
)
def test_a_cast_that_fails_names_its_column(table: DeltaTable, act: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot cast 'n1' .*, in CAST\(name AS INT\)"):
        act(table)


def test_a_cast_that_fails_names_no_column_that_users_do_not_know(table: DeltaTable) -> None:
    with pytest.raises(InvalidInputError, match="cannot cast 'x'") as caught:
        deltalog.sql("INSERT INTO t (id) SELECT 'x'", t=table)
    assert "CAST(c0" not in str(caught.value)
    assert caught.value.__notes__ == ["in the new value of column 'id'"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT nme FROM t", "there is no column 'nme'"),
        ("SELECT name FROM t ORDER BY nme", "there is no column 'nme'; did you mean 'name'"),
        (
            "SELECT id, name FROM t GROUP BY id",
            r"'name' is neither in GROUP BY .*any_value\(name\)",
        ),
        ("SELECT id FROM t a JOIN t b ON a.id = b.id", "in several tables; write 'a.id' or 'b.id'"),
        ("SELECT id FROM t WHERE count(*) > 1", "write HAVING"),
        ("SELECT id FROM t UNION SELECT id, name FROM t", "different numbers of columns"),
        ("SELECT sum(count(*)) FROM t", "cannot be inside of another"),
        ("SELECT (SELECT id FROM t) AS one", "a subquery that stands for one value has several"),
        ("SELECT id FROM t LIMIT 'x'", r"character 24: LIMIT expects a number of rows, found 'x'$"),
        ("SELECT id FROM t LIMIT id", "LIMIT expects a number of rows, found id$"),
        ("SELECT id FROM t LIMIT 1.5", r"LIMIT expects a number of rows, found 1\.5$"),
        ("SELECT id FROM t LIMIT 1 OFFSET -1", "OFFSET expects a number of rows, found -1$"),
        ("SELECT id FROM t LIMIT 0 - 1", "LIMIT and OFFSET expect a number of rows from 0 on$"),
        ("SELECT id FROM t ORDER BY 9", "a number in ORDER BY is the position of .*expected 1 to"),
        ("SELECT id FROM t GROUP BY 0", "a number in GROUP BY is the position of .*expected 1 to"),
        ("SELECT id FROM t WHERE row_number() OVER (ORDER BY id) = 1", "WHERE .*write QUALIFY"),
        ("SELECT id FROM t GROUP BY sum(id)", "GROUP BY cannot contain aggregate or window"),
        ("SELECT id FROM t QUALIFY id = 1", "the query has none; write WHERE$"),
        ("SELECT lag(id) FROM t", "a window function needs OVER"),
        ("SELECT rank(id) FROM t", "a window function needs OVER"),
        ("SELECT * FROM t JOIN t b USING (nope)", "no column 'nope' on the left side of JOIN"),
        ("SELECT id FROM t WHERE id IN (SELECT id, name FROM t)", "has 2 columns; expected 1$"),
        ("WITH a AS (SELECT 1) SELECT * FROM a, a", "several tables are called 'a'; give each"),
        ("SELECT sum(name) FROM t", "cannot cast 'n1' to DOUBLE in column 'name' .TRY_CAST"),
    ],
)
def test_a_query_that_means_nothing(table: DeltaTable, query: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        deltalog.sql(query, t=table).to_arrow()
    for word in ("Binder", "Candidate", "bindings", "FROM clause", "SET scalar", "Conversion"):
        assert word not in str(caught.value)


@pytest.mark.parametrize("limit", ["ALL", "1 + 1", ":n"])
def test_other_limits_are_numbers(table: DeltaTable, limit: str) -> None:
    query = f"SELECT id FROM t LIMIT {limit}"  # noqa: S608  # a list of the test
    found = deltalog.sql(query, {"n": 2} if ":n" in query else None, t=table)
    assert found.to_arrow().num_rows == 2


def test_a_table_that_was_not_passed() -> None:
    with pytest.raises(TableNotFoundError, match=r"pass it, as in sql\(query, t=table\)"):
        deltalog.sql("SELECT * FROM t")
    with pytest.raises(TableNotFoundError, match=r"tables \(none\); to use a table without"):
        deltalog.sql("SELECT * FROM '/data/t'")


@pytest.mark.parametrize("name", ["fetchall", "df", "to_arrow_table", "to_panda", "columns"])
def test_results_of_sql(table: DeltaTable, name: str) -> None:
    result = deltalog.sql("SELECT id FROM t", t=table)
    with pytest.raises(AttributeError, match=r": (use|did you mean) ") as caught:
        getattr(result, name)
    meant = str(caught.value).rpartition(" ")[2].partition("(")[0].strip("'?")
    assert hasattr(result, meant)


def read_by_rows(table: DeltaTable) -> object:
    return table.to_pyarrow_table()


def read_by_dataset(table: DeltaTable) -> object:
    return table.to_pyarrow_dataset().to_table()


def read_by_polars(table: DeltaTable) -> object:
    frame = table.to_polars(lazy=True)
    assert isinstance(frame, pl.LazyFrame)
    return frame.collect()


@pytest.mark.parametrize("read", [read_by_rows, read_by_dataset, read_by_polars])
def test_a_file_that_a_vacuum_deleted(table: DeltaTable, read: Any) -> None:
    write_deltalake(table, {"id": [3], "name": ["n3"]}, mode="overwrite")
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    old = DeltaTable(table.table_uri, version=0)
    with pytest.raises(
        DataFileMissingError, match=r"vacuum .*deletedFileRetentionDuration.*doctor"
    ) as caught:
        read(old)
    assert "since the last vacuum, versions from 1 on are complete" in caught.value.__notes__
    read(DeltaTable(table.table_uri, version=1))
    assert DeltaTable(table.table_uri).count() == 1  # as the advice says


NO_CATALOG: Any = None  # the arguments are refused before it is used
NO_TRANSACTIONS: Any = CatalogTransactions.__new__(CatalogTransactions)
CATALOG_BRANCH: Any = CatalogBranch(NO_CATALOG, "n", {("s", "t"): NO_CATALOG})


def convert_one_file(table: DeltaTable) -> None:
    [uri] = table.file_uris()
    deltalog.convert_to_deltalake(uri)


@pytest.mark.parametrize(
    ("act", "hint"),
    [
        (
            lambda table: table.alter.set_table_properties("delta.appendOnly"),
            "expected a dictionary of strings",
        ),
        (lambda table: deltalog.connect(table.table_uri), "a dictionary, name to table"),
        (lambda _: DeltaTable.create("x", 5), r"Field\('id', 'long'\)"),
        (lambda _: DeltaTable.create("x", 5), "CREATE TABLE"),
        (lambda _: Field("name", "varchar(20)"), r"did you mean 'string'\?$"),
        (lambda table: table.scan(predicate=pl.col("id") > 1), r"to_polars\(lazy=True\)$"),
        (lambda table: table.scan(predicate=lambda row: row["id"] > 1), r"deltalog\.col\("),
        (lambda t: t.scan(predicate="if(id = 1, 'a') = 'a'"), r"if expects 3 .*, found 2"),
        (lambda t: t.scan(predicate="isnull(name, 'x')"), r"isnull expects 1 .*, found 2"),
        (lambda table: table.scan(predicate="DATE'2024-01-01' = 2024-1-1"), "DATE'2024-01-31'"),
        (lambda table: table.scan(predicate="DATE'2024-01-01' = 2024-01-02"), "DATE'2024-01-02'"),
        (lambda table: table.branch("b").publish({"n": "id > 0"}), "a list of checks"),
        (lambda table: table.branch("b").publish([True]), "a list of checks"),
        (lambda _: deltalog.sql("SELECT * FROM t@nightly"), "`table@nightly`"),
        (
            lambda _: NO_TRANSACTIONS.branch("s.orders", "n"),
            "expected a list of names",
        ),
        (lambda _: CATALOG_BRANCH.publish(["id > 0"]), r"\{'schema.table': \['id > 0'\]\}"),
        (convert_one_file, "pass the directory that contains it"),
        (lambda t: t.upsert({"id": [1], "x": [1]}, "id"), r"upsert\(…, merge_schema=True\)"),
    ],
)
def test_an_argument_of_another_kind(table: DeltaTable, act: Any, hint: str) -> None:
    with pytest.raises((InvalidInputError, SchemaMismatchError), match=hint):
        act(table)


def test_a_transaction_that_is_ended_by_a_call(table: DeltaTable) -> None:
    with pytest.raises(AttributeError, match="commits at its end"):
        table.transaction().commit()  # type: ignore[attr-defined]


def test_names_that_need_column_mapping(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        write_deltalake(tmp_path / "t", {"a b": [1]})
    advice = str(caught.value).partition("enable column mapping")[2]
    assert "(delta.columnMapping.mode = name); then deltalake 1.6 (to_pandas, " in advice
    duckdb = "DuckDB's delta extension (of DuckDB 1.5.5)"
    assert f"Polars 2.1 cannot read it, and {duckdb} would write wrong rows" in advice
