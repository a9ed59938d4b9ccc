"""Tables whose versions are compared."""

from __future__ import annotations

from typing import Any

from deltalog.table.inspect.diff import TableDiff, diff_snapshots
from tests.support.aging import AgingTable


def make(properties: dict[str, str] | None = None, **options: Any) -> AgingTable:
    """Three rows in two partitions."""
    table = AgingTable()
    table.create({"id": [1, 2, 3], "p": [0, 0, 1]}, properties=properties, **options)
    return table


def diff(table: AgingTable, old: int, new: int, **options: Any) -> TableDiff:
    """Two versions, compared."""
    return diff_snapshots(table.snapshot(old), table.snapshot(new), **options)


def told(found: TableDiff) -> list[tuple[Any, ...]]:
    """The rows that differ, sorted, without their ids."""
    names = [name for name in found.schema.names if name != "_metadata.row_id"]
    rows = found.to_table().select(names).to_pylist()
    return sorted(tuple(row.values()) for row in rows)
