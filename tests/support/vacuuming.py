"""Tables with files that vacuum may delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from deltalog.data.scan.changes import open_changes
from tests.support.aging import DAY_MS, START_MS, AgingTable
from tests.support.logs import PROTOCOL, commit, metadata

WEEK = 7


LITE: Mapping[str, Any] = {"mode": "lite"}


FULL: Mapping[str, Any] = {"mode": "full"}


BOTH = pytest.mark.parametrize("how", [LITE, FULL], ids=["lite", "full"])


VECTORS = {"delta.enableDeletionVectors": "true"}


def rows(*numbers: int) -> dict[str, list[int]]:
    """A column of numbers."""
    return {"id": list(numbers)}


def old_and_new(**properties: str) -> AgingTable:
    """One file that left the table eight days ago, one that is live."""
    table = AgingTable()
    table.create(rows(1, 2), properties=properties)
    table.append(rows(3))
    table.delete("id < 3")
    table.wait(WEEK + 1)
    return table


def logged(*actions: dict[str, Any], **members: Any) -> AgingTable:
    """A table whose log is written by hand; its files are as old as the log."""
    table = AgingTable()
    commit(table.kept, 0, PROTOCOL, metadata(**members), *actions, time_ms=START_MS)
    table.wait(30)
    return table


def put(table: AgingTable, *paths: str, age_days: float = 30) -> None:
    """Put files into a directory that no log names."""
    for path in paths:
        table.kept.files[path] = b"x"
        table.kept.times_ms[path] = table.kept.now_ms - round(age_days * DAY_MS)


def masked(*, days: float) -> AgingTable:
    """A table with two generations of deletion vectors in files."""
    table = AgingTable()
    table.create({"id": list(range(4000))}, properties=VECTORS)
    table.delete("id % 5 = 0")
    table.delete("id % 5 = 1")
    table.wait(days)
    return table


def changes_of(table: AgingTable, version: int) -> int:
    """How many rows the feed of a version has."""
    found = open_changes(table.snapshot(), start=version, end=version)
    return found.to_table().num_rows
