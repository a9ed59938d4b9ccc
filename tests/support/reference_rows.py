"""Rows in a form that can be compared: deltalog's beside the reference's."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from deltalog import DeltaTable
from deltalog.schema.variant import to_json

ROW_ID_COLUMNS = ("_metadata.row_id", "_metadata.row_commit_version")


def rows_of(table: pa.Table) -> list[str]:
    """Each row as a text, sorted; equal lists mean equal rows."""
    return sorted(
        repr([(name, _plain(value)) for name, value in row.items()]) for row in _rows(table)
    )


def ours(path: Path, version: int | None = None) -> list[str]:
    """What deltalog reads."""
    return rows_of(DeltaTable(path, version=version).to_pyarrow_table())


def our_row_ids(path: Path, version: int | None = None) -> list[str]:
    """All columns with row ids and commit versions, as deltalog reads them."""
    table = DeltaTable(path, version=version)
    names = [field.name for field in table.schema()]
    found = table.scan(columns=[*names, *ROW_ID_COLUMNS]).to_table()
    return rows_of(found.rename_columns([*names, "row_id", "row_commit_version"]))


def our_changes(path: Path, start: int, end: int | None = None) -> list[str]:
    """The change feed that deltalog reads, without commit times."""
    feed = DeltaTable(path).load_cdf(starting_version=start, ending_version=end)
    return rows_of(pa.table(feed).drop_columns(["_commit_timestamp"]))


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _plain(value: Any) -> Any:
    """A value whose repr is the same whoever made it; digits of decimals count."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        if set(value) == {"metadata", "value"}:
            return to_json(value["metadata"], value["value"])
        return [(name, _plain(part)) for name, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value
