"""Write dataframes to tables: the function `write`, and the format's batch writer."""

from __future__ import annotations

__all__: list[str] = []
