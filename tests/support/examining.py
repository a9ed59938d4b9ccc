"""Tables for the doctor, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deltalog._util.json import dumps, iter_objects, loads
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.table.inspect.doctor import Report, Severity, examine
from tests.support.aging import FEATURES, AgingTable
from tests.support.logs import Json

ALL = FEATURES | {"delta.columnMapping.mode": "name", "delta.enableInCommitTimestamps": "true"}


def make(properties: dict[str, str] | None = None, **options: Any) -> AgingTable:
    """Two files in two partitions, with a NaN and NULLs."""
    table = AgingTable()
    rows = {"id": [1, 2, 3], "p": [0, 0, 1], "f": [0.5, float("nan"), None]}
    table.create(rows, properties=properties, partition_by=["p"], **options)
    table.append({"id": [4], "p": [1], "f": [None]})
    return table


def look(table: AgingTable, **options: Any) -> Report:
    """Examine a table now."""
    return examine(utc_context(table.kept), now_ms=table.kept.now_ms, **options)


def problems(report: Report) -> list[str]:
    """The checks that found something to be done about."""
    return [finding.check for finding in report.findings if finding.severity is not Severity.INFO]


def commit(table: AgingTable, version: int, change: Callable[[Json], Json | None]) -> None:
    """Change the lines of a commit."""
    path = commit_path(version)
    lines = [change(line) for line in iter_objects(table.kept.files[path])]
    table.kept.files[path] = b"".join(dumps(line) + b"\n" for line in lines if line is not None)


def with_stats(line: Json, **changes: Any) -> Json:
    """An `add` line with other statistics; any other line as it is."""
    if "add" in line:
        stats = loads(line["add"]["stats"].encode(), "stats")
        line["add"]["stats"] = dumps({**stats, **changes}).decode()
    return line
