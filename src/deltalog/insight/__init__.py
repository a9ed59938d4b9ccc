"""Questions about a table that change nothing: differences, health, what comes next."""

from __future__ import annotations

__all__: list[str] = []
