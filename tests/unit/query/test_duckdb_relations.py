"""`to_duckdb`: relations on the user's own connection, whose files DuckDB reads itself."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.query.duckdb_files import native_rows
from tests.support.raw_tables import DataTable
from tests.unit.query.test_duckdb_files import SHAPES, on_disk, sorted_rows


def registered(connection: Any) -> list[str]:
    """The names of the tables and views of a connection."""
    return [name for (name,) in connection.sql("SHOW TABLES").fetchall()]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_relation_has_the_rows_of_the_table(tmp_path: Path, shape: str) -> None:
    table = SHAPES[shape](tmp_path)
    found = table.to_duckdb().to_arrow_table()
    assert found.column_names == list(table.schema().names)
    assert sorted_rows(found) == sorted_rows(table.to_pyarrow_table())


def test_relations_of_one_connection_are_independent(tmp_path: Path) -> None:
    connection = duckdb.connect()
    table = SHAPES["deletion vectors"](tmp_path)
    newest, num_left = table.to_duckdb(connection), table.to_pyarrow_table().num_rows
    table.load_as_version(0)
    oldest = table.to_duckdb(connection)
    assert oldest.aggregate("count(*)").fetchall() == [(10,)]
    assert newest.aggregate("count(*)").fetchall() == [(num_left,)]
    assert newest.filter("id IN (0, 1, 9)").select("id").fetchall() == [(1,)]
    assert oldest.union(newest).aggregate("count(*)").fetchall() == [(10 + num_left,)]
    assert all(name.startswith("deltalog_rows_") for name in registered(connection))


def test_an_open_result_of_the_connection_stays_open(tmp_path: Path) -> None:
    connection = duckdb.connect()
    result = connection.execute("FROM range(3)")
    assert result.fetchone() == (0,)
    SHAPES["one file"](tmp_path).to_duckdb(connection.cursor())
    assert result.fetchall() == [(1,), (2,)]


def test_a_connection_without_access_to_files_reads_through_deltalog(tmp_path: Path) -> None:
    connection = duckdb.connect(config={"enable_external_access": "false"})
    table = SHAPES["deletion vectors"](tmp_path)
    relation = table.to_duckdb(connection)
    assert relation.filter("id IN (0, 1, 9)").select("id").fetchall() == [(1,)]
    assert registered(connection) == []


def test_timestamps_are_moments_in_any_time_zone(tmp_path: Path) -> None:
    """INT96 has no zone, and DuckDB would read it in the zone of the session."""
    moment = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
    rows = pa.table({"t": pa.array([moment], pa.timestamp("us", "UTC"))})
    table = DataTable([("t", "timestamp")])
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, use_deprecated_int96_timestamps=True)
    content = sink.getvalue().to_pybytes()
    added = table.add(rows)
    table.store.files[added["add"]["path"]] = content
    added["add"]["size"] = len(content)
    table.commit(added)
    read = on_disk(table, tmp_path)
    assert native_rows(read.scan()) is not None
    connection = duckdb.connect()
    relation = read.to_duckdb(connection)
    connection.execute("SET TimeZone = 'America/New_York'")
    assert relation.aggregate("epoch_us(max(t))").fetchall() == [(int(moment.timestamp()) * 10**6,)]


def test_partition_values_are_joined(tmp_path: Path) -> None:
    rows = pa.table({"n": list(range(6)), "p": ["a", "b", "it's", None, "a", "b"]})
    write_deltalake(tmp_path, rows, partition_by=["p"])
    relation = DeltaTable(tmp_path).to_duckdb()
    assert relation.filter("p = 'it''s'").fetchall() == [(2, "it's")]
    assert sorted_rows(relation.to_arrow_table()) == sorted_rows(rows)
