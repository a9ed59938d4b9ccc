"""Which rows of the table a merge may concern."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.changes.merge.source import MergeSource
from deltalog.operations.changes.request import ChangeRequest
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import preview
from deltalog.operations.merge import Merge, upsert
from deltalog.testing import CountingStore
from deltalog.transaction.commit import stage_and_commit
from tests.support.logs import DictStore
from tests.support.merging import NUMBERS, rows
from tests.support.statements import (
    StatedTable,
    by_source_delete,
    insert,
    matched_delete,
    matched_update,
)


def opened(store: CountingStore) -> int:
    return len({path for path in store.paths("open", "read_ranges") if path.endswith(".parquet")})


@pytest.mark.parametrize(
    ("source", "on", "files"),
    [
        (rows(11, 12), "t.id = s.id", 1),
        (rows(11, 31), "t.id = s.id", 2),  # a range would be three files
        (rows(500), "t.id = s.id", 0),
        (rows(11, 31), "t.id = s.id AND t.id > 20", 1),
        (rows(11, 31), "t.id = s.id AND s.id > 20", 1),
        (rows(11, 31), "t.id + 0 = s.id", 5),
        (rows(), "t.id = s.id", 0),
        (rows(11), "t.id = s.id AND 1 = 0", 0),
        ([{"id": None, "x": 1}], "t.id = s.id", 0),
        (rows(11, 12), "t.id >= s.id AND t.id <= s.id", 1),
        (rows(11, 31), "t.id BETWEEN s.id AND s.id", 3),
        (rows(31), "t.id > s.id", 2),
        (rows(11, 31), "s.id >= t.id", 4),
        (rows(11, 31), "t.id >= s.id AND t.id < 30", 2),
        (rows(), "t.id >= s.id", 0),
    ],
)
def test_only_files_that_keys_may_be_in_are_opened(
    source: list[dict[str, Any]], on: str, files: int
) -> None:
    store = CountingStore(DictStore())
    StatedTable(NUMBERS, *(rows(n, n + 9) for n in range(0, 50, 10)), store=store)
    data = pa.table(
        {
            "id": pa.array([r["id"] for r in source], pa.int64()),
            "x": pa.nulls(len(source), pa.int64()),
        }
    )
    store.reset()
    changes = ChangeRequest(
        condition=on,
        clauses=(matched_delete(), insert()),
        source=data,
        source_alias="s",
        target_alias="t",
    )
    preview(Merge(changes), load_snapshot(utc_context(store)), LocalEngine())
    assert opened(store) == files


def test_partitions_are_pruned_by_keys() -> None:
    store = CountingStore(DictStore())
    data = [{"p": f"p{n}", "id": n} for n in range(6)]
    table = StatedTable({"p": "string", "id": "long"}, data, partition_by=["p"], store=store)
    store.reset()
    table.merge(
        [{"p": "p2", "id": 2}, {"p": "p9", "id": 2}], "t.p = s.p AND t.id = s.id", matched_delete()
    )
    assert opened(store) == 1


def test_many_keys_prune_by_the_gaps_between_them() -> None:
    store = CountingStore(DictStore())
    table = StatedTable(
        NUMBERS,
        rows(*range(1000)),
        rows(*range(5000, 5100)),
        rows(*range(9000, 10000)),
        store=store,
    )
    keys = [*range(1000), *range(9000, 10000)]
    store.reset()
    merged = table.merge(pa.table({"id": keys}), "t.id = s.id", matched_update(x="1"))
    assert opened(store) == 2
    assert merged.rows.updated == 2000


def test_files_are_pruned_by_keys_that_are_floats_too() -> None:
    store = CountingStore(DictStore())
    files = [[{"d": float(n), "x": 0} for n in range(first, first + 10)] for first in (0, 10, 20)]
    table = StatedTable({"d": "double", "x": "long"}, *files, store=store)
    store.reset()
    merged = table.merge(pa.table({"d": [11.0]}), "t.d = s.d", matched_update(x="1"))
    assert (merged.rows.updated, opened(store)) == (1, 1)


def test_keys_that_have_no_order_prune_nothing() -> None:
    table = StatedTable({"d": "double", "x": "long"}, [{"d": n, "x": 0} for n in (1.0, math.nan)])
    source = pa.table({"d": [math.nan, 7.0]})
    merged = table.merge(
        source, "t.d = s.d AND t.x = 0", matched_update(x="1"), insert(d="s.d", x="2")
    )
    assert (merged.rows.updated, merged.rows.inserted) == (1, 1)
    assert {row["x"]: row["d"] for row in table.rows() if row["x"] != 1} == {0: 1.0, 2: 7.0}


def test_rows_without_a_match_are_looked_for_where_their_clauses_may_be() -> None:
    store = CountingStore(DictStore())
    table = StatedTable(NUMBERS, *(rows(n, n + 9) for n in range(0, 50, 10)), store=store)
    store.reset()
    table.merge(rows(11), "t.id = s.id", matched_update(x="1"), by_source_delete("t.id = 49"))
    assert opened(store) == 2
    store.reset()
    table.merge(rows(11), "t.id = s.id", by_source_delete())
    assert opened(store) == 5
    assert table.values("id") == []


def test_rows_that_cannot_match_are_no_conflict() -> None:
    table = StatedTable(NUMBERS, rows(1))
    other = StatedTable.__new__(StatedTable)
    other.store = table.store
    seen: list[int] = []
    with MergeSource(rows(5)) as source:

        def stage(pending: Any) -> Any:
            merged = upsert(source, "id").stage(pending, LocalEngine())
            if not seen:
                other.append(rows(6))
            seen.append(merged.changed.rows.inserted)
            return merged

        stage_and_commit(lambda: load_snapshot(utc_context(table.store)), stage, operation="MERGE")
    assert seen == [1]
    assert table.values("id") == [1, 5, 6]
