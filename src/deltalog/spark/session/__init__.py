"""Services that the other Spark packages use: settings, table locations, types, workers, jobs."""

from __future__ import annotations

__all__: list[str] = []
