"""Help for tests, deltalog's own and its users': stores that count and stores that fail."""

from __future__ import annotations

from deltalog.testing.stores import Call, CountingStore, Fault, FaultyStore, Harm

__all__ = ["Call", "CountingStore", "Fault", "FaultyStore", "Harm"]
