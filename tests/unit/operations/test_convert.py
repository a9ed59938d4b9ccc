"""Convert: Parquet files become a table, with what they hold and where they lie."""

from __future__ import annotations

import contextlib
from decimal import Decimal

import pyarrow as pa
import pytest

from deltalog.data.scan import plan_scan
from deltalog.errors import (
    DeltaError,
    InvalidInputError,
)
from deltalog.testing import CountingStore, FaultyStore, Harm, InjectedFault
from tests.support.aging import AgingTable
from tests.support.converting import convert, parquet, put, stats


def test_files_become_a_table_and_stay_as_they_are() -> None:
    table = parquet("a.parquet", "d/b c.parquet", id=[1, 2], s=["x", None])
    before = dict(table.kept.files)
    convert(table)
    assert table.rows() == [(1, "x"), (1, "x"), (2, None), (2, None)]
    assert before.items() <= table.kept.files.items()
    assert table.data_files() == sorted(before)
    (entry,) = table.snapshot().history()
    assert (entry["operation"], entry["operationParameters"], entry["operationMetrics"]) == (
        "CONVERT",
        {"numFiles": 2, "partitionedBy": "[]", "collectStats": True, "sourceFormat": "parquet"},
        {"numConvertedFiles": "2"},
    )


@pytest.mark.protocol("D-16")
def test_statistics_come_from_the_data() -> None:
    table = AgingTable()
    long = "x" * 5000
    rows = {
        "i": [3, 1, None],
        "s": [long, "b", "c"],
        "d": [Decimal("1.50"), None, Decimal("-2.00")],
        "f": [float("nan"), 1.0, 2.0],
        "b": [True, False, None],
    }
    put(table, "a.parquet", rows, write_statistics=False)
    convert(table)
    (found,) = stats(table)
    assert found["numRecords"] == 3
    assert found["minValues"] == {"i": 1, "s": "b", "d": -2.0, "f": 1.0}
    assert found["maxValues"] == {"i": 3, "s": "x" * 32 + "\x7f", "d": 1.5, "f": "NaN"}
    assert found["nullCount"] == {"i": 1, "s": 0, "d": 1, "f": 0, "b": 1}


@pytest.mark.protocol("D-16")
def test_without_statistics_only_footers_are_read() -> None:
    table = AgingTable()
    put(table, "a.parquet", pa.table({"id": range(100_000)}), compression="none")
    table.store = counted = CountingStore(table.kept)
    convert(table, collect_stats=False)
    assert stats(table) == [{"numRecords": 100_000}]
    assert counted.footers_opened == 1
    assert counted.bytes_read < 100_000


def test_column_mapping_leaves_names_in_files_alone() -> None:
    table = parquet("p=1/a.parquet", id=[1, 2], s=[{"x": 1}, {"x": 2}])
    convert(table, properties={"delta.columnMapping.mode": "name"})
    assert table.rows(columns=["id", "p"]) == [(1, 1), (2, 1)]
    found = plan_scan(table.snapshot(), columns=["s.x"]).to_table()
    assert found.column("s").to_pylist() == [{"x": 1}, {"x": 2}]
    with pytest.raises(InvalidInputError, match="field ids"):
        convert(parquet("a.parquet"), properties={"delta.columnMapping.mode": "id"})


def test_features_of_writers_hold_from_the_start() -> None:
    table = parquet("a.parquet", "b.parquet")
    convert(
        table,
        collect_stats=False,
        properties={"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
    )
    assert table.rows(columns=["_metadata.row_id"]) == [(0,), (1,), (2,), (3,)]
    table.delete("id = 1")
    assert table.rows() == [(2,), (2,)]


def test_rows_are_not_checked() -> None:
    with pytest.raises(InvalidInputError, match="add the constraints"):
        convert(parquet("a.parquet"), properties={"delta.constraints.positive": "id > 0"})


def test_a_crash_anywhere_leaves_no_table_or_the_whole_one() -> None:
    for number in range(1, 100):
        table = parquet("p=1/a.parquet", "p=2/b.parquet")
        before = dict(table.kept.files)
        table.store = faulty = FaultyStore(table.kept, InjectedFault(call=number, harm=Harm.CRASH))
        with contextlib.suppress(DeltaError):
            convert(table)
        assert before.items() <= table.kept.files.items()
        table.store = table.kept
        if not any(path.startswith("_delta_log/") for path in table.kept.files):
            convert(table)
        assert table.rows() == [(1, 1), (1, 2), (2, 1), (2, 2)]
        if not faulty.crashed:
            break
    assert number > 4
