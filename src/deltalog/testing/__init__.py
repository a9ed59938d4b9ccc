"""Tools for tests: stores that count calls or fail, a simulation of writers, and conformance."""

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
