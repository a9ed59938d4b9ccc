"""Rows of a bin in the order of a curve."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import StorageError
from deltalog.operations.changes.external_sort import SortLimits
from deltalog.operations.optimize import ZOrder
from tests.support.optimizing import IDS, SCATTERED, OptimizedTable, scattered
from tests.support.statements import ROW_IDS, VECTORS


def test_null_comes_first() -> None:
    rows = [{"id": 1, "x": 5}, {"id": 2}, {"id": 3, "x": -9}, {"id": 4}]
    table = OptimizedTable(SCATTERED, rows)
    table.optimize(ZOrder, ["x"])
    (file,) = table.physical_rows("id")
    assert file == [(2,), (4,), (3,), (1,)]


@pytest.mark.parametrize("memory_bytes", [1, 20_000, 1 << 30])
def test_little_memory_gives_the_same_order(memory_bytes: int) -> None:
    table = OptimizedTable(
        SCATTERED, *scattered(2000), partition_by=["p"], properties={**VECTORS, **ROW_IDS}
    )
    table.delete("x < 100")
    before = table.rows("id", *IDS)
    done = table.optimize(ZOrder, ["x"], limits=SortLimits(memory_bytes=memory_bytes))
    assert done.result()["partitionsOptimized"] == 2
    assert table.rows("id", *IDS) == before
    assert all(file == sorted(file) for file in table.physical_rows("x"))


def test_temporary_files_may_be_limited() -> None:
    table = OptimizedTable(SCATTERED, *scattered(400))
    files = table.files().num_rows
    with pytest.raises(StorageError, match="max_temp_directory_size"):
        table.optimize(ZOrder, ["x"], limits=SortLimits(memory_bytes=5000, disk_bytes=6000))
    assert table.files().num_rows == files


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("boolean", [True, None, False]),
        ("decimal(9,2)", ["3.10", None, "-4.00"]),
        ("double", [float("nan"), None, -1.5]),
        ("date", ["2024-01-01", None, "1999-01-01"]),
        ("timestamp", ["2024-01-01 00:00:00Z", None, "1999-01-01 00:00:00Z"]),
        ("binary", [b"b", None, b"a"]),
        ("byte", [3, None, -3]),
    ],
)
def test_values_of_any_type_are_sorted(kind: str, values: list[Any]) -> None:
    table = OptimizedTable({"id": "long", "v": kind})
    for number, value in enumerate(values):
        literal = {"id": str(number), "v": _literal(kind, value)}
        table.append([{"id": -1}])
        table.update(literal, "id = -1")
    table.optimize(ZOrder, ["v"])
    (file,) = table.physical_rows("id")
    assert file == [(1,), (2,), (0,)]


def _literal(kind: str, value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return f"CAST('{value}' AS {kind})"
