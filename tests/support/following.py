"""Tables that are followed."""

from __future__ import annotations

from typing import Any

from deltalog.table.inspect.follow import Follower, FollowOptions, Step
from tests.support.aging import AgingTable


def make(properties: dict[str, str] | None = None, **options: Any) -> AgingTable:
    """Two rows, and what the table is asked for."""
    table = AgingTable()
    table.create({"id": [1, 2]}, properties=properties, **options)
    return table


def follow(table: AgingTable, start: Any = None, **options: Any) -> Follower:
    """Follow it from its newest version."""
    return Follower(table.snapshot(), start=start, options=FollowOptions(**options))


def ids(follower: Follower) -> list[int]:
    """What a follower gives now."""
    return [row for step in follower.available() for row in ids_of(step)]


def ids_of(step: Step) -> list[int]:
    """The rows of a step."""
    return step.to_table().column("id").to_pylist()  # type: ignore[return-value]  # never null
