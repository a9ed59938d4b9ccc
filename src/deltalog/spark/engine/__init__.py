"""The Spark engine: Spark evaluates conditions, tasks read and write files, the driver commits."""

from __future__ import annotations

__all__: list[str] = []
