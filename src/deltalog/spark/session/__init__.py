"""Services for the other Spark packages: settings, locations, types, workers, jobs."""

from __future__ import annotations

__all__: list[str] = []
