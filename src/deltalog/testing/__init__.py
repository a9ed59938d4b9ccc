"""Tools for tests: stores that count or fail, simulation, and conformance."""

from __future__ import annotations

from deltalog.testing.stores import (
    CountingStore,
    FaultyStore,
    Harm,
    InjectedFault,
    InMemoryCatalog,
    StoreCall,
)

__all__ = ["CountingStore", "FaultyStore", "Harm", "InMemoryCatalog", "InjectedFault", "StoreCall"]
