"""Small tables that are merged into."""

from __future__ import annotations

from typing import Any

from tests.support.statements import StatedTable

NUMBERS = {"id": "long", "x": "long"}


def rows(*ids: int, x: int = 0) -> list[dict[str, Any]]:
    """Rows with these ids, all with one `x`."""
    return [{"id": number, "x": x} for number in ids]


def pairs(table: StatedTable) -> list[tuple[Any, ...]]:
    """All rows of a table, sorted."""
    return [tuple(row.values()) for row in table.rows()]
