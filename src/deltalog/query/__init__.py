"""SELECT over tables, answered by DuckDB."""

from __future__ import annotations

from deltalog.query.builder import QueryBuilder

__all__ = ["QueryBuilder"]
