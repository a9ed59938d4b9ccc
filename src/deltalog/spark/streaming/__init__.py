"""Streaming reads and writes of the format `deltalog`."""

from __future__ import annotations

__all__: list[str] = []
