"""Read-only analysis of a table: differences of versions, health, and following new rows."""

from __future__ import annotations

__all__: list[str] = []
