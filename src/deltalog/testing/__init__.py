"""Help for tests, deltalog's own and its users': stores that count or fail, a catalog in memory."""

from __future__ import annotations

from deltalog.testing.catalog import InMemoryCatalog
from deltalog.testing.stores import Call, CountingStore, Fault, FaultyStore, Harm

__all__ = ["Call", "CountingStore", "Fault", "FaultyStore", "Harm", "InMemoryCatalog"]
