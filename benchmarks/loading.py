"""Import the modules that operations import at first use, because imports are not measured."""

from __future__ import annotations

import pkgutil
from importlib import import_module

_PACKAGES = (
    "data",
    "expressions",
    "log",
    "operations",
    "protocol",
    "schema",
    "storage",
    "table",
    "transaction",
)


def load_packages() -> None:
    """Import all modules between the facade and the log, and Polars; and parse a SQL string."""
    for name in _PACKAGES:
        package = import_module(f"deltalog.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"deltalog.{name}."):
            import_module(module.name)
    import_module("deltalog.expressions").parse_sql("a = 1")
    import_module("polars.exceptions")  # reads large scans
