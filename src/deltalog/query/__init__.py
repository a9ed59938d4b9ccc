"""SELECT over tables, run by DuckDB."""

from __future__ import annotations

from deltalog.query.duckdb import QueryBuilder

__all__ = ["QueryBuilder"]
