"""Streams from and into tables."""

from __future__ import annotations

__all__: list[str] = []
