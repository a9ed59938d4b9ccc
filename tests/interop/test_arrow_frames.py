"""Ibis and narwhals get a table's rows through Arrow, DuckDB and Polars, and give theirs back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ibis
import narwhals as nw
import polars as pl
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.storage import open_store
from deltalog.testing import CountingStore
from tests.support.engines import bag, make_table

NAMES = ["i", "s", "p"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("table"))
    make_table(path)
    return path


@pytest.fixture
def duckdb() -> Iterator[Any]:
    connection = ibis.duckdb.connect()
    yield connection
    connection.disconnect()


def test_ibis_reads_only_what_its_query_needs(path: str, duckdb: Any) -> None:
    store = CountingStore(open_store(path))
    rows = ibis.memtable(DeltaTable(store).to_pyarrow_dataset())
    store.reset()
    found = duckdb.to_pyarrow(rows.filter(rows.i > 45).select(NAMES))
    assert bag(found) == bag(DeltaTable(path).to_pyarrow_table(columns=NAMES, filters="i > 45"))
    assert store.footers_opened == 1


def test_ibis_takes_rows_in_memory_and_gives_them_back(
    path: str, duckdb: Any, tmp_path: Path
) -> None:
    rows = DeltaTable(path).to_pyarrow_table(columns=NAMES)
    expression = ibis.memtable(rows).filter(ibis._.p == 1)
    write_deltalake(tmp_path / "copy", duckdb.to_pyarrow(expression))
    expected = DeltaTable(path).to_pyarrow_table(columns=NAMES, filters="p = 1")
    assert bag(DeltaTable(tmp_path / "copy").to_pyarrow_table()) == bag(expected)


@pytest.mark.parametrize("is_lazy", [True, False])
def test_narwhals_works_on_frames_of_a_table(path: str, *, is_lazy: bool) -> None:
    store = CountingStore(open_store(path))
    table = DeltaTable(store)
    store.reset()
    rows: Any = table.to_polars(lazy=True) if is_lazy else table.to_pyarrow_table()
    frame: Any = nw.from_native(rows)
    found = frame.filter(nw.col("i") > 45).select(NAMES)
    found = found.collect("pyarrow") if is_lazy else found
    expected = DeltaTable(path).to_pyarrow_table(columns=NAMES, filters="i > 45")
    assert bag(found.to_native().cast(expected.schema)) == bag(expected)
    if is_lazy:
        assert store.footers_opened == 1


def test_frames_of_narwhals_are_written(path: str, tmp_path: Path) -> None:
    rows = DeltaTable(path).to_pyarrow_table(columns=NAMES)
    frames: list[Any] = [nw.from_native(rows), nw.from_native(pl.DataFrame(rows))]
    for number, frame in enumerate(frames):
        write_deltalake(tmp_path / str(number), frame)
        assert bag(DeltaTable(tmp_path / str(number)).to_pyarrow_table()) == bag(rows)


def test_narwhals_takes_a_stream(path: str) -> None:
    scan: Any = DeltaTable(path).scan(columns=NAMES)
    assert nw.from_arrow(scan, backend="pyarrow").shape == (22, 3)
    assert pa.table(nw.from_arrow(scan, backend="polars")).num_rows == 22
