"""Z-order: files hold neighbours in several columns at once, however little memory there is."""

from __future__ import annotations

import random
from typing import Any

import pytest

from deltalog.errors import InvalidInputError, StorageError
from deltalog.rows.external_sort import SortLimits
from deltalog.verbs.optimize import ZOrder
from tests.support.optimizing import IDS, OptimizedTable, run_options
from tests.support.statements import FEED, ROW_IDS, VECTORS

COLUMNS = {"id": "long", "x": "long", "y": "string", "s": "struct<z:double>", "p": "string"}


def scattered(count: int) -> list[list[dict[str, Any]]]:
    draw = random.Random(7)
    rows: list[dict[str, Any]] = [
        {
            "id": number,
            "x": draw.randrange(1000),
            "y": f"{draw.randrange(1000):04}",
            "s": {"z": draw.random()},
            "p": "ab"[number % 2],
        }
        for number in range(count)
    ]
    return [rows[start : start + count // 4] for start in range(0, count, count // 4)]


def spread(table: OptimizedTable, column: str) -> float:
    """The mean share of the column's range that a file spans."""
    spans: list[int] = [
        stats["maxValues"][column] - stats["minValues"][column] for stats in table.stats()
    ]
    return sum(spans) / len(spans) / 1000


def test_files_become_narrow_in_every_column() -> None:
    table = OptimizedTable(COLUMNS, *scattered(4000), properties={**ROW_IDS, **FEED})
    before = table.rows("id", "x", *IDS)
    assert spread(table, "x") > 0.9
    done = table.optimize(ZOrder, ["X", "y"], options=run_options(8000))
    assert len(done.added_sizes) > 8
    assert spread(table, "x") < 0.6
    ranges = [(s["minValues"]["y"], s["maxValues"]["y"]) for s in table.stats()]
    assert sum(int(high) - int(low) for low, high in ranges) / len(ranges) < 600
    assert table.rows("id", "x", *IDS) == before
    assert table.changes() == []
    assert table.info()["operationParameters"]["zOrderBy"] == '["x","y"]'


@pytest.mark.parametrize("column", ["x", "y", "s.z"])
def test_one_column_is_plainly_sorted(column: str) -> None:
    table = OptimizedTable(COLUMNS, *scattered(400))
    table.optimize(ZOrder, [column])
    (file,) = table.physical_rows(column.partition(".")[0])
    assert file == sorted(file, key=lambda row: row[0]["z"] if column == "s.z" else row[0])


def test_null_comes_first() -> None:
    rows = [{"id": 1, "x": 5}, {"id": 2}, {"id": 3, "x": -9}, {"id": 4}]
    table = OptimizedTable(COLUMNS, rows)
    table.optimize(ZOrder, ["x"])
    (file,) = table.physical_rows("id")
    assert file == [(2,), (4,), (3,), (1,)]


@pytest.mark.parametrize("memory_bytes", [1, 20_000, 1 << 30])
def test_little_memory_gives_the_same_order(memory_bytes: int) -> None:
    table = OptimizedTable(
        COLUMNS, *scattered(2000), partition_by=["p"], properties={**VECTORS, **ROW_IDS}
    )
    table.delete("x < 100")
    before = table.rows("id", *IDS)
    done = table.optimize(ZOrder, ["x"], limits=SortLimits(memory_bytes=memory_bytes))
    assert done.result()["partitionsOptimized"] == 2
    assert table.rows("id", *IDS) == before
    assert all(file == sorted(file) for file in table.physical_rows("x"))


def test_temporary_files_may_be_limited() -> None:
    table = OptimizedTable(COLUMNS, *scattered(400))
    files = table.files().num_rows
    with pytest.raises(StorageError, match="max_temp_directory_size"):
        table.optimize(ZOrder, ["x"], limits=SortLimits(memory_bytes=5000, disk_bytes=6000))
    assert table.files().num_rows == files


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ([], "name one"),
        (["x", "X"], "twice"),
        (["p"], "partition column"),
        (["s"], "no order"),
        (["nope"], "nope"),
    ],
)
def test_what_cannot_be_sorted_by_is_refused(columns: list[str], named: str) -> None:
    table = OptimizedTable(COLUMNS, *scattered(8), partition_by=["p"])
    with pytest.raises(InvalidInputError, match=named):
        table.optimize(ZOrder, columns)


def test_a_clustered_table_has_its_own_order() -> None:
    table = OptimizedTable(COLUMNS, *scattered(8))
    table.cluster_by("x")
    with pytest.raises(InvalidInputError, match=r"optimize\.cluster"):
        table.optimize(ZOrder, ["y"])


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
