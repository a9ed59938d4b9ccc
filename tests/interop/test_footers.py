"""Engines that read our data files as plain Parquet get every row, NaN too."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake

ROWS = pa.table(
    {
        "n": [1, 2, 3, 4],
        "x": [0.0, math.nan, 0.5, None],
        "s": [{"y": value} for value in (0.0, math.nan, 0.5, None)],
    }
)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("x > 1", [2]),
        ("isnan(x)", [2]),
        ("s.y > 1", [2]),
        ("x <= 0.5", [1, 3]),
        ("x IS NULL", [4]),
        ("n = 3", [3]),
    ],
)
def test_duckdb_finds_nan(tmp_path: Path, where: str, found: list[int]) -> None:
    write_deltalake(tmp_path, ROWS)
    (file,) = DeltaTable(tmp_path).file_uris()
    query = f"SELECT n FROM read_parquet('{file}') WHERE {where} ORDER BY n"  # noqa: S608
    assert [row[0] for row in duckdb.connect().execute(query).fetchall()] == found
