"""Shared tables on Spark: the format `deltalog_sharing`, and data frames of the client's scans."""

from __future__ import annotations

__all__: list[str] = []
