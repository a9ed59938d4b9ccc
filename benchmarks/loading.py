"""Load what the first use of deltalog's verbs loads: imports are not measured."""

from __future__ import annotations

import pkgutil
from importlib import import_module

_ROOMS = (
    "actions",
    "checkpoints",
    "deletion_vectors",
    "expressions",
    "features",
    "log",
    "partition_values",
    "replay",
    "rows",
    "scan",
    "schema",
    "snapshot",
    "stats",
    "storage",
    "table",
    "table_change",
    "transaction",
    "upkeep",
    "verbs",
    "write",
)


def load_rooms() -> None:
    """Import every file between the facade and the log, and parse a first text of SQL."""
    for room in _ROOMS:
        package = import_module(f"deltalog.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"deltalog.{room}."):
            import_module(module.name)
    import_module("deltalog.expressions").parse_sql("a = 1")
