"""Statistics that are read from texts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from deltalog.protocol.stats.parse import parse_stats
from deltalog.protocol.stats.schema import schema_of_leaves

Leaf = tuple[tuple[str, ...], pa.DataType]


LONG: list[Leaf] = [(("minValues", "x"), pa.int64())]


def read(texts: list[str | None], *leaves: Leaf) -> list[Any]:
    """Parse texts for some leaves."""
    return parse_stats(pa.array(texts, pa.string()), schema_of_leaves(leaves)).to_pylist()


def minima(values: list[str], data_type: pa.DataType) -> list[Any]:
    """The minima that texts hold."""
    texts: list[str | None] = [f'{{"minValues":{{"x":{value}}}}}' for value in values]
    rows = read(texts, (("minValues", "x"), data_type))
    return [row["minValues"]["x"] for row in rows]


def bound(row: dict[str, Any]) -> Any:
    """The minimum of a parsed row."""
    return (row["minValues"] or {}).get("x")
