"""Purge: deleted rows and dropped columns leave the files; other files stay."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyarrow.parquet as pq
import pytest

from deltalog._util.json import loads
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.alter.columns import DropColumns
from deltalog.operations.engine import LocalEngine
from deltalog.operations.optimize import Cluster, Purge
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import commit
from tests.support.optimizing import IDS, OptimizedTable, numbered
from tests.support.statements import FEED, ROW_IDS, VECTORS

COLUMNS = {"id": "long", "p": "string", "s": "struct<a:long,b:long>"}
MAPPED = {"delta.columnMapping.mode": "name"}


def columns_of_files(table: OptimizedTable) -> list[int]:
    """How many leaf columns each live file has."""
    store = table.store
    paths: list[Any] = table.files().column("path").to_pylist()
    return [
        len(pq.read_schema(BytesIO(store.read(path))).empty_table().flatten().column_names)
        for path in paths
    ]


def drop(table: OptimizedTable, column: str) -> None:
    snapshot = load_snapshot(utc_context(table.store))
    pending = PendingTransaction(snapshot.context, snapshot, operation="DROP COLUMNS")
    DropColumns([column]).stage(pending, LocalEngine())
    commit(pending)


@pytest.mark.protocol("DV-01")
def test_only_files_with_deleted_rows_are_rewritten() -> None:
    table = OptimizedTable(
        COLUMNS,
        numbered(0, 50),
        numbered(50, 60),
        properties={**VECTORS, **ROW_IDS, **FEED},
    )
    table.delete("id = 7")
    before = table.rows("id", *IDS)
    done = table.optimize(Purge)
    assert (len(done.removed_sizes), done.removed_vectors, done.num_skipped) == (1, (1,), 1)
    assert table.files().column("deletionVector").null_count == 2
    assert table.rows("id", *IDS) == before
    assert table.changes() == []
    assert table.info()["operationParameters"] == {"predicate": "[]", "applyPurge": True}
    version = table.version
    table.optimize(Purge)
    assert table.version == version


@pytest.mark.parametrize("dropped", ["p", "s.a"])
def test_dropped_columns_leave_the_files(dropped: str) -> None:
    table = OptimizedTable(
        COLUMNS, numbered(0, 2, s={"a": 1, "b": 2}), numbered(2, 4), properties=MAPPED
    )
    drop(table, dropped)
    table.append(numbered(4, 6))
    before = table.rows()
    assert columns_of_files(table).count(3) == 1
    done = table.optimize(Purge, dropped_columns=False)
    assert done.removed_sizes == ()
    done = table.optimize(Purge)
    assert len(done.removed_sizes) == 2
    assert columns_of_files(table) == [3, 3]
    assert table.rows() == before


def test_row_ids_in_files_are_no_dropped_columns() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 9), properties={**MAPPED, **ROW_IDS, **VECTORS})
    table.delete("id = 1")
    table.optimize(Purge)
    version = table.version
    table.optimize(Purge)
    assert table.version == version


def test_clustered_files_are_clustered_still() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 9), numbered(9, 12), properties=VECTORS)
    table.cluster_by("id", "p")
    table.optimize(Cluster)
    (before,) = table.actions("add")
    table.append(numbered(20, 30))
    table.delete("id IN (3, 25)")
    table.optimize(Purge)
    adds = table.actions("add")
    tags = {loads(add["stats"])["minValues"]["id"]: add.get("tags") for add in adds}
    assert tags == {0: before["tags"], 20: None}
    clustered = [add for add in adds if add.get("tags")]
    assert [add["clusteringProvider"] for add in clustered] == ["liquid"]
