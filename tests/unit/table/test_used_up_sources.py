"""Readers that somebody else has read: they look like readers without rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from tests.support.facade import make

ON = "s.id = t.id"


def reader() -> pa.RecordBatchReader:
    return pa.table({"id": [1, 2]}).to_reader()


def used_up() -> pa.RecordBatchReader:
    found = reader()
    found.read_all()
    return found


def appended(table: DeltaTable) -> None:
    with table.appender() as appender:
        appender.append(used_up()).result()


@pytest.mark.parametrize(
    "call",
    [
        lambda t: write_deltalake(t, used_up(), mode="append"),
        lambda t: write_deltalake(t, used_up(), mode="overwrite"),
        lambda t: write_deltalake(t, used_up(), mode="overwrite", predicate="id = 1"),
        lambda t: t.upsert(used_up(), "id"),
        lambda t: t.merge(used_up(), ON, "s", "t").when_not_matched_insert_all().execute(),
        appended,
        lambda _: write_deltalake("memory://used-up", used_up()),
    ],
    ids=["append", "overwrite", "where", "upsert", "merge", "appender", "new"],
)
def test_a_reader_that_was_read_before_warns(call: Callable[[DeltaTable], object]) -> None:
    table = make({"id": [1, 2, 3]})
    with pytest.raises(UserWarning, match="has no rows; one that was read before has none left"):
        call(table)
    table.update_incremental()
    assert (table.version(), table.count()) == (0, 3)


def test_a_reader_of_a_scan_warns_too() -> None:
    table = make({"id": [1, 2, 3]})
    found = table.scan().to_reader()
    found.read_all()
    with pytest.raises(UserWarning, match="one that was read before has none left"):
        write_deltalake(table, found, mode="overwrite")


def test_a_reader_that_an_earlier_write_has_read_is_refused() -> None:
    table, found = make({"id": [1]}), reader()
    write_deltalake(table, found, mode="append")
    with pytest.raises(InvalidInputError, match="an earlier call has read it"):
        write_deltalake(table, found, mode="append")


def test_empty_queries_and_tables_do_not_warn(tmp_path: Path) -> None:
    table = make({"id": [1, 2, 3]})
    none = pa.table({"id": pa.array([], pa.int64())})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_deltalake(table, none, mode="append")
        relation: Any = duckdb.sql("SELECT 1::BIGINT AS id WHERE false")
        write_deltalake(table, relation, mode="append")
        table.upsert(none, "id")
        deltalog.sql("INSERT INTO t SELECT * FROM t WHERE false", t=table)
        deltalog.sql(
            "MERGE INTO t USING (SELECT * FROM t WHERE false) s ON s.id = t.id "
            "WHEN NOT MATCHED THEN INSERT *",
            t=table,
        )
        write_deltalake(tmp_path, deltalog.sql("SELECT * FROM t WHERE false", t=table))
    assert table.count() == 3
