"""Overwriting the partitions that the new rows fall into, and no other."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from deltalog import DeltaTable, write_deltalake
from tests.support.facade import FEED, changes, fresh_rows, last, make
from tests.support.logs import DictStore
from tests.support.raw_tables import DataTable


def overwrite(made: DeltaTable, data: Any) -> None:
    write_deltalake(made, data, mode="overwrite", partition_overwrite="dynamic")


def test_other_partitions_stay() -> None:
    values = [(1, None, "a"), (2, 1, "a"), (3, 1, None), (4, None, None), (5, 2, "a")]
    data = [{"id": i, "p": p, "q": q} for i, p, q in values]
    made = make(data, partition_by=["p", "q"])
    overwrite(made, [{"id": 9, "p": None, "q": "a"}, {"id": 8, "p": 1, "q": None}])
    assert fresh_rows(made, "id") == [2, 4, 5, 8, 9]
    assert last(made)["operationMetrics"]["numRemovedFiles"] == "2"


def test_a_partition_is_all_of_its_values_together() -> None:
    """Each value of the partitions that stay is a value of one that is replaced."""
    pairs = [(p, q) for p in (1, 2, 3) for q in "abc"]
    made = make([{"id": 0, "p": p, "q": q} for p, q in pairs], partition_by=["p", "q"])
    new = [(1, "a"), (2, "c"), (3, "b")]
    overwrite(made, [{"id": 1, "p": p, "q": q} for p, q in new])
    assert fresh_rows(made) == sorted((int((p, q) in new), p, q) for p, q in pairs)


def test_no_rows_replace_nothing() -> None:
    made = make([{"id": 1, "p": 1}], partition_by=["p"])
    overwrite(made, [])
    assert fresh_rows(made, "id") == [1]


def test_a_partition_may_be_new() -> None:
    made = make([{"id": 1, "p": 1}], partition_by=["p"])
    overwrite(made, [{"id": 2, "p": 2}])
    assert fresh_rows(made, "id") == [1, 2]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("long", "007", 7),
        ("decimal(5,2)", "1.5", Decimal("1.50")),
        ("timestamp", "2024-01-01 01:02:03", datetime(2024, 1, 1, 1, 2, 3, tzinfo=UTC)),
        ("timestamp", "2024-01-01T01:02:03.000000Z", datetime(2024, 1, 1, 1, 2, 3, tzinfo=UTC)),
        ("date", "2024-01-01", date(2024, 1, 1)),
        ("boolean", "TRUE", True),
        ("string", "", None),
        ("double", "1", 1.0),
        ("binary", "\u0001", b"\x01"),
    ],
)
def test_values_count_however_they_are_spelt(kind: str, text: str, value: object) -> None:
    table = DataTable([("id", "long"), ("p", kind)], partition_by=["p"])
    table.commit(table.add({"id": [1]}, partitionValues={"p": text}))
    made = DeltaTable(table.store)
    overwrite(made, [{"id": 2, "p": value}])
    assert fresh_rows(made) == [(2, value)]


def test_the_change_feed_tells_of_both() -> None:
    made = make(
        [{"id": 1, "p": 1}, {"id": 2, "p": 2}], partition_by=["p"], configuration=dict(FEED)
    )
    overwrite(made, [{"id": 3, "p": 2}])
    assert changes(made) == [("delete", 2), ("insert", 3)]


def test_a_new_table_is_simply_written() -> None:
    store = DictStore()
    write_deltalake(
        store,
        [{"id": 1, "p": 1}],
        partition_by="p",
        mode="overwrite",
        partition_overwrite="dynamic",
    )
    assert fresh_rows(DeltaTable(store)) == [(1, 1)]


def test_rows_that_another_writer_added_meanwhile_go_too() -> None:
    made = make([{"id": 1, "p": 1}, {"id": 2, "p": 2}], partition_by=["p"])
    other = DeltaTable(made.snapshot.store)

    class Racing(list[dict[str, int]]):
        def __iter__(self) -> Any:
            if other.version() == 0:
                write_deltalake(other, [{"id": 3, "p": 1}, {"id": 4, "p": 2}], mode="append")
            return super().__iter__()

    overwrite(made, Racing([{"id": 9, "p": 1}]))
    assert fresh_rows(made, "id") == [2, 4, 9]
