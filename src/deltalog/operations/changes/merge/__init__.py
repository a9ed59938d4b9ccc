"""MERGE over rows: the source, the join with the table, and the rows to write."""

from __future__ import annotations

__all__: list[str] = []
