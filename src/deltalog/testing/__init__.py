"""Help for tests, deltalog's own and its users': stores that count or fail, a catalog in memory."""

from __future__ import annotations

from deltalog.testing.catalog import InMemoryCatalog
from deltalog.testing.stores import CountingStore, FaultyStore, Harm, InjectedFault, StoreCall

__all__ = ["CountingStore", "FaultyStore", "Harm", "InMemoryCatalog", "InjectedFault", "StoreCall"]
