"""Shared tables on Spark: the format `deltalog_sharing` and the official client's functions."""

from __future__ import annotations

__all__: list[str] = []
