"""Streams that read from or write to tables."""

from __future__ import annotations

__all__: list[str] = []
