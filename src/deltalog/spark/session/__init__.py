"""What everything on Spark needs of a session: settings, locations, types, workers."""

from __future__ import annotations

__all__: list[str] = []
