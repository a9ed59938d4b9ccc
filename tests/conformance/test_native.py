"""Tables of other writers read by engines' own readers: the same rows as by deltalog's reader."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from deltalog.data.scan import Scan, plan_scan, polars_rows
from deltalog.data.scan.dataset import arrow_files
from deltalog.data.scan.polars_files import PolarsDataset, frame_of_dataset
from deltalog.data.scan.polars_rows import read_large
from deltalog.data.scan.reader import read_tasks
from deltalog.errors import DeltaError
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.query.duckdb import duckdb_with_files, query_duckdb
from deltalog.query.duckdb_files import native_rows
from deltalog.storage import open_store
from tests.support.corpora import Entry, readable_entries

pytestmark = pytest.mark.corpus


def by_duckdb(scan: Scan) -> pa.Table | None:
    """The rows that DuckDB reads itself; None if deltalog's reader must read some of them."""
    rows = native_rows(scan)
    if rows is None:
        return None
    database = duckdb_with_files(frozenset([rows.directory]))
    return query_duckdb(database, "SELECT * FROM rows", {"rows": rows}).read_all()


def counted(table: pa.Table) -> Counter[str]:
    """How often each row occurs; NaN equals NaN."""
    columns: list[list[Any]] = [column.to_pylist() for column in table.columns]
    return Counter(map(repr, zip(*columns, strict=True)))


def by_pyarrow(scan: Scan) -> pa.Table | None:
    """The rows that Arrow's scanner reads itself; None if deltalog's reader must read some."""
    files = arrow_files(scan, is_filtered=False)
    return None if files is None else files.dataset.to_table()


def by_polars(scan: Scan) -> pa.Table | None:
    """The rows that Polars reads itself; None if deltalog's reader must read some of them."""
    try:
        frame, _ = PolarsDataset(scan.snapshot).to_dataset_scan()
    except pa.ArrowNotImplementedError:
        return None  # Polars has no type for variants
    if "Parquet SCAN" not in frame.explain():
        return None
    lazy = frame_of_dataset(scan.snapshot)
    assert lazy is not None
    kinds: Any = lazy.collect_schema()
    rows = lazy.collect()
    assert lazy.select(pl.len()).collect().item() == rows.height
    assert rows.schema == kinds
    expected: Any = pl.from_arrow(scan.to_table())
    assert rows.schema == expected.schema
    found: pa.Table = rows.to_arrow().cast(scan.schema)
    return found


ENGINES: dict[str, Callable[[Scan], pa.Table | None]] = {
    "duckdb": by_duckdb,
    "polars": by_polars,
    "pyarrow": by_pyarrow,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("entry", readable_entries(), ids=str)
def test_an_engine_reads_the_rows_of_a_table(entry: Entry, engine: str) -> None:
    scan = plan_scan(load_snapshot(utc_context(open_store(str(entry.path)))))
    try:
        expected = scan.to_table()
    except DeltaError:
        return  # what is refused, and how, is the subject of `test_corpus`
    found = ENGINES[engine](scan)
    if found is not None:
        assert found.column_names == expected.column_names
        assert counted(found) == counted(expected)


LIMITS = ("LEAST_BYTES", "_LEAST_BYTES_WITH_IMPORT", "_LEAST_FILE_BYTES")


def listed(table: pa.Table) -> list[str]:
    """The rows in their order; NaN equals NaN."""
    columns: list[list[Any]] = [column.to_pylist() for column in table.columns]
    return list(map(repr, zip(*columns, strict=True)))


def test_polars_reads_the_rows_of_scans_in_order(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As if all tables were large; `test_corpus` proves the rows of deltalog's reader."""
    for name in LIMITS:
        monkeypatch.setattr(polars_rows, name, 0)
    caplog.set_level(logging.INFO, polars_rows.__name__)
    entries, num_read = readable_entries(), 0
    for entry in entries:
        scan = plan_scan(load_snapshot(utc_context(open_store(str(entry.path)))))
        batches = read_large(scan)
        if batches is None:
            continue
        try:
            expected = pa.Table.from_batches(read_tasks(scan.tasks()), schema=scan.schema)
        except DeltaError as error:
            with pytest.raises(type(error)):
                list(batches)
            continue
        found = pa.Table.from_batches(batches, schema=scan.schema)
        found.validate(full=True)
        assert listed(found) == listed(expected), entry
        num_read += 1
    failed = [one.getMessage() for one in caplog.records if "with Polars after" in one.message]
    assert num_read > len(entries) // 3, (num_read, len(entries))
    assert len(failed) < num_read // 20, failed
