"""Small files are read in groups, whatever their schemas."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.context import utc_context
from deltalog.engine import LocalEngine
from deltalog.rows.small_files import SMALL_BYTES, grouped, is_small
from deltalog.scan.spec import read_spec
from deltalog.scan.task import ScanTask
from deltalog.schema import Field, PrimitiveType
from deltalog.snapshot import load_snapshot
from deltalog.transaction import PendingTransaction
from deltalog.transaction.commit import commit
from deltalog.verbs.alter.columns import AddColumns, RenameColumn
from deltalog.verbs.optimize import Compact
from tests.support.optimizing import OptimizedTable, numbered

COLUMNS = {"id": "long", "p": "string"}


MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["by name", "mapped"])
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_files_of_many_schemas(properties: dict[str, str], partition_by: tuple[str, ...]) -> None:
    table = OptimizedTable(
        COLUMNS,
        numbered(0, 3, p=None),
        numbered(3, 5, p=None),
        properties=properties,
        partition_by=partition_by,
    )
    for number in range(3):
        snapshot = load_snapshot(utc_context(table.store))
        pending = PendingTransaction(snapshot.context, snapshot, operation="ADD")
        AddColumns([Field(f"new{number}", PrimitiveType("long"))]).stage(pending, LocalEngine())
        if properties:
            name = "id" if number == 0 else f"id{number - 1}"
            RenameColumn(name, f"id{number}").stage(pending, LocalEngine())
        commit(pending)
        rows: list[dict[str, Any]] = [{f"new{number}": 7}, {f"new{number}": None, "p": "x"}]
        table.append(rows)
        table.append(rows)
    before = table.rows()
    table.optimize(Compact)
    assert table.files().num_rows == 1 + len(partition_by)
    assert table.rows() == before


def task(size: int | None) -> ScanTask:
    snapshot = OptimizedTable(COLUMNS).snapshot
    spec = read_spec(snapshot, columns=None, predicate=None)
    return ScanTask(store=snapshot.store, spec=spec, path="f", partition_values={}, size_bytes=size)


def test_large_files_are_left_to_the_scan() -> None:
    sizes = [1, 2, SMALL_BYTES + 1, 3, None, 4]
    groups = list(grouped(task(size) for size in sizes))
    assert [[one.size_bytes for one in group] for group in groups] == [
        [1, 2],
        [SMALL_BYTES + 1],
        [3],
        [None],
        [4],
    ]
    assert [is_small(group) for group in groups] == [True, False, True, True, True]
    assert [len(group) for group in grouped(task(1) for _ in range(300))] == [128, 128, 44]
