"""DuckDB is told how many rows tables have, by which it orders joins."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import deltalog
from deltalog.query import duckdb as counted
from deltalog.testing import CountingStore
from tests.support.facade import make, store_of
from tests.support.raw_tables import DataTable

ROWS = pa.table({"id": pa.array(range(1234), pa.int64())})


def estimates(query: str, **tables: Any) -> set[int]:
    """The numbers of rows that the plan of a query expects."""
    plan = str(deltalog.sql(f"EXPLAIN {query}", **tables).to_arrow().to_pylist())
    return {int(found.replace(",", "")) for found in re.findall(r"~([\d,]+) row", plan)}


JOIN = "SELECT * FROM a JOIN b ON a.id = b.id"


def test_duckdb_expects_as_many_rows_as_joined_tables_have() -> None:
    """It reads the number in a way that DuckDB does not document: this fails where it changes."""
    small = make(ROWS.slice(0, 7))
    assert estimates(JOIN, a=make(ROWS), b=small) >= {1234, 7}


def test_deleted_rows_are_not_counted() -> None:
    table = make(ROWS, configuration={"delta.enableDeletionVectors": "true"})
    table.delete("id < 234")
    found = estimates(JOIN, a=table, b=table)
    assert 1000 in found
    assert 1234 not in found


def test_tables_without_numbers_are_joined_too() -> None:
    raw = DataTable([("id", "long")])
    raw.commit(raw.add(ROWS, stats={}))
    wrong = DataTable([("id", "long")])
    wrong.commit(wrong.add(ROWS, stats={"numRecords": -5}))
    other = ds.dataset(ROWS)
    for table in (raw, wrong):
        found = deltalog.sql(JOIN, a=deltalog.DeltaTable(table.store), b=other)
        assert found.to_arrow().num_rows == 1234


def test_rows_are_the_same_where_duckdb_takes_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As before 2.0."""
    monkeypatch.setattr(counted, "_counted", lambda: None)
    assert deltalog.sql(JOIN, a=make(ROWS), b=make(ROWS)).to_arrow().num_rows == 1234
    assert estimates(JOIN, a=make(ROWS), b=make(ROWS)).isdisjoint({1234})


def test_nothing_is_read_for_the_number() -> None:
    store = CountingStore(store_of(make(ROWS)))
    table = deltalog.DeltaTable(store)
    deltalog.sql("EXPLAIN SELECT a.id FROM a JOIN a AS b ON a.id = b.id", a=table).to_arrow()
    before = dict(store.counts)
    assert table.to_pyarrow_dataset().estimated_rows() == 1234
    assert dict(store.counts) == before
