"""Datasets of pyarrow over the files of a table: the rows of deltalog's reader, or none."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, convert_to_deltalake, write_deltalake
from deltalog.data.scan.dataset import arrow_files


def dataset_of(path: Path, columns: list[str] | None = None) -> ds.Dataset | None:
    """The files of a table as a dataset; None if deltalog must read some of them."""
    found = arrow_files(DeltaTable(path).scan(columns), is_filtered=False)
    return None if found is None else found.dataset


def rows_of(path: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows that pyarrow reads itself."""
    found = dataset_of(path)
    assert found is not None
    return found.to_table(**options).to_pylist()


@pytest.mark.parametrize("filter_", [ds.field("x") != 1.0, ~(ds.field("x") <= 50.0)])
def test_nan_is_found_beside_bounds_that_do_not_count_it(
    tmp_path: Path, filter_: ds.Expression
) -> None:
    write_deltalake(tmp_path, pa.table({"x": [1.0, 1.0, math.nan], "n": [1, 2, 3]}))
    assert [row["n"] for row in rows_of(tmp_path, filter=filter_)] == [3]


def test_partition_values_and_late_columns(tmp_path: Path) -> None:
    price = pa.array([Decimal("1.50"), Decimal("2.00"), None], pa.decimal128(9, 2))
    write_deltalake(tmp_path, pa.table({"n": [1, 2, 3], "p": price}), partition_by=["p"])
    more = pa.table({"n": [4], "p": price.slice(0, 1), "late": [40]})
    write_deltalake(tmp_path, more, mode="append", schema_mode="merge")
    found = sorted(rows_of(tmp_path), key=lambda row: row["n"])
    assert found == [
        {"n": 1, "p": Decimal("1.50"), "late": None},
        {"n": 2, "p": Decimal("2.00"), "late": None},
        {"n": 3, "p": None, "late": None},
        {"n": 4, "p": Decimal("1.50"), "late": 40},
    ]
    assert rows_of(tmp_path, filter=ds.field("p").is_null()) == [found[2]]


def test_deleted_rows_and_other_names_are_read_by_deltalog(tmp_path: Path) -> None:
    rows = pa.table({"n": [1, 2], "s": ["a", "b"]})
    vectors = {"delta.enableDeletionVectors": "true"}
    write_deltalake(tmp_path / "v", rows, configuration=vectors)
    assert dataset_of(tmp_path / "v") is not None
    DeltaTable(tmp_path / "v").delete("n = 1")
    assert dataset_of(tmp_path / "v") is None
    mapped = {"delta.columnMapping.mode": "name"}
    write_deltalake(tmp_path / "m", rows.select(["n"]), configuration=mapped)
    assert dataset_of(tmp_path / "m") is None


@pytest.mark.parametrize(("length", "most_rows"), [(10, 2**21), (10_000, 2_000), (20_000, 0)])
def test_long_strings_limit_the_rows_of_a_batch(
    tmp_path: Path, length: int, most_rows: int
) -> None:
    """A small file may have gigabytes of strings, all of which are one entry of a dictionary."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 300_000), pa.array(["a" * length]))
    rows = pa.table({"s": texts, "n": list(range(300_000))})
    pq.write_table(rows, tmp_path / "rows.parquet", store_schema=False)
    convert_to_deltalake(tmp_path)
    found = arrow_files(DeltaTable(tmp_path).scan(), is_filtered=False)
    assert (0 if found is None else found.batch_rows) <= most_rows
    assert (found is None) == (most_rows == 0)
    assert dataset_of(tmp_path, ["n"]) is not None
