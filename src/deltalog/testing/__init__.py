"""Tools for tests: stores that count or fail, simulation, and conformance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import explain_names
from deltalog.testing.stores import (
    CountingStore,
    FaultyStore,
    Harm,
    InjectedFault,
    InMemoryCatalog,
    StoreCall,
)

__all__ = ["CountingStore", "FaultyStore", "Harm", "InMemoryCatalog", "InjectedFault", "StoreCall"]

if not TYPE_CHECKING:  # type checkers must report unknown names
    __getattr__ = explain_names(
        __name__,
        __all__,
        dict.fromkeys(
            ("InMemoryStore", "MemoryStore", "DictStore"),
            "a location in memory, such as DeltaTable('memory://name')",
        ),
    )
