"""Shared tables on Spark: the format `deltalog_sharing`, and frames of what the client plans."""

from __future__ import annotations

__all__: list[str] = []
