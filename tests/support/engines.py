"""What the tests of Dask, Ray and Daft share: a table with everything, and rows to compare."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from deltalog.storage import open_store

FILES = 6
DAY = dt.datetime(2024, 1, 1, 12, 30, 15, 123456, tzinfo=dt.UTC)


def rows_of_file(file: int) -> pa.Table:
    """Four rows of every type: numbers that grow, NULL, NaN, and values that floats would spoil."""
    numbers: list[Any] = [10 * file, 10 * file + 1, None, 10 * file + 3]
    days = [None if n is None else DAY + dt.timedelta(days=n) for n in numbers]
    walls = [day and day.replace(tzinfo=None) for day in days]
    return pa.table(
        {
            "i": pa.array(numbers, pa.int64()),
            "big": pa.array([n and 2**62 + n for n in numbers], pa.int64()),
            "tiny": pa.array([n and n % 100 for n in numbers], pa.int8()),
            "f": pa.array([math.nan, None, -0.0, 0.5 * file], pa.float64()),
            "g": pa.array([n and n / 3 for n in numbers], pa.float32()),
            "s": pa.array([None if n is None else f"t{n:02}ü" for n in numbers]),
            "y": pa.array([None if n is None else f"t{n:02}".encode() for n in numbers]),
            "b": pa.array([None if n is None else n % 3 == 0 for n in numbers]),
            "d": pa.array([day and day.date() for day in days]),
            "t": pa.array(days, pa.timestamp("us", "UTC")),
            "n": pa.array(walls, pa.timestamp("us")),
            "x": pa.array([n and Decimal(n) / 4 for n in numbers], pa.decimal128(20, 2)),
            "st": pa.array([None if n is None else {"a": n, "c": {"d": f"{n}"}} for n in numbers]),
            "li": pa.array([[n, None] if n else None for n in numbers], pa.list_(pa.int64())),
            "p": pa.array([file % 3] * 4, pa.int32()),
        }
    )


def make_table(path: str) -> DeltaTable:
    """A table of six files: partitions, mapped columns and deletion vectors, 22 rows."""
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    for file in range(FILES):
        write_deltalake(
            path, rows_of_file(file), mode="append", partition_by=["p"], configuration=properties
        )
    table = DeltaTable(path)
    table.delete("i in (11, 30)")
    return table


def bag(rows: pa.Table) -> list[str]:
    """Rows in no order; NaN is equal to itself."""
    return sorted(repr(list(row.values())) for row in rows.to_pylist())


def files_of(path: str) -> set[str]:
    """The Parquet files below a table, whether a version names them or not."""
    found = open_store(path).list_all("")
    return {file.path for file in found if file.path.endswith(".parquet")}


def ids_of(table: DeltaTable) -> list[Any]:
    """The values of a table's column `id`, sorted."""
    found: list[Any] = table.to_pyarrow_table()["id"].to_pylist()
    return sorted(found)
