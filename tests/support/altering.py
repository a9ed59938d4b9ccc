"""Tables whose metadata is changed, and what the log tells of it."""

from __future__ import annotations

from typing import Any

from deltalog._util.json import loads
from deltalog.log.context import utc_context
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations import alter
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import execute
from deltalog.operations.operation import Operation
from tests.support.raw_tables import DataTable

INNER = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True}]}
ROWS: dict[str, Any] = {"id": [1, 2, 3], "v": ["a", None, "c"], "s": [{"x": 1}, None, {"x": None}]}


def make(configuration: dict[str, str] | None = None, **options: Any) -> DataTable:
    """Three rows with a nested column."""
    table = DataTable([("id", "long"), ("v", "string"), ("s", INNER)], **options)
    table.commit(table.add(ROWS))
    if configuration:
        apply(table, alter.SetTableProperties(configuration))
    return table


def mapped() -> DataTable:
    """The same, with names that may change."""
    return make({"delta.columnMapping.mode": "name"})


def apply(table: DataTable, verb: Operation[Any]) -> Snapshot:
    """Commit a verb."""
    done = execute(verb, lambda: load_snapshot(utc_context(table.store)), LocalEngine())
    return done.committed.snapshot


def last(table: DataTable) -> dict[str, Any]:
    """The newest commit: kind of action → the action, or a list of several."""
    snapshot = load_snapshot(utc_context(table.store))
    lines = table.store.read(f"_delta_log/{snapshot.version:020d}.json").splitlines()
    found: dict[str, Any] = {}
    for line in lines:
        ((kind, action),) = loads(line, "commit").items()
        found[kind] = action
    return found


def told(table: DataTable) -> tuple[str, dict[str, Any]]:
    """Operation and parameters of the newest commit."""
    info = last(table)["commitInfo"]
    parameters = {
        key: loads(text, key) if isinstance(text, str) and text.startswith(("[", "{")) else text
        for key, text in info["operationParameters"].items()
    }
    return info["operation"], parameters


def names(snapshot: Snapshot) -> tuple[str, ...]:
    """The columns of a version."""
    return snapshot.configuration.schema.names
