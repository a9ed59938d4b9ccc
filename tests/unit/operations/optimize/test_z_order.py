"""Z-order: files hold neighbours in several columns at once, however little memory there is."""

from __future__ import annotations

import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations.optimize import ZOrder
from tests.support.optimizing import (
    IDS,
    SCATTERED,
    OptimizedTable,
    run_options,
    scattered,
)
from tests.support.statements import FEED, ROW_IDS


def spread(table: OptimizedTable, column: str) -> float:
    """The mean share of the column's range that a file spans."""
    spans: list[int] = [
        stats["maxValues"][column] - stats["minValues"][column] for stats in table.stats()
    ]
    return sum(spans) / len(spans) / 1000


def test_files_become_narrow_in_every_column() -> None:
    table = OptimizedTable(SCATTERED, *scattered(4000), properties={**ROW_IDS, **FEED})
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
    table = OptimizedTable(SCATTERED, *scattered(400))
    table.optimize(ZOrder, [column])
    (file,) = table.physical_rows(column.partition(".")[0])
    assert file == sorted(file, key=lambda row: row[0]["z"] if column == "s.z" else row[0])


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ([], "name at least one"),
        (["x", "X"], "twice"),
        (["p"], "partition column"),
        (["s"], "no order"),
        (["nope"], "nope"),
    ],
)
def test_what_cannot_be_sorted_by_is_refused(columns: list[str], named: str) -> None:
    table = OptimizedTable(SCATTERED, *scattered(8), partition_by=["p"])
    with pytest.raises(InvalidInputError, match=named):
        table.optimize(ZOrder, columns)


def test_a_clustered_table_has_its_own_order() -> None:
    table = OptimizedTable(SCATTERED, *scattered(8))
    table.cluster_by("x")
    with pytest.raises(InvalidInputError, match=r"optimize\.cluster"):
        table.optimize(ZOrder, ["y"])
