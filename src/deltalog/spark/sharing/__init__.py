"""Shared tables on Spark: the format `deltalog_sharing`, and dataframes of client-side scans."""

from __future__ import annotations

__all__: list[str] = []
