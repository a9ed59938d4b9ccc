"""Statistics of data files: their schema, their JSON, how they are collected and what they decide.

Core: no I/O.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from deltalog.stats.parse import parse_stats
from deltalog.stats.schema import (
    conform_stats,
    has_bounds,
    indexed_columns,
    leaves_of_schema,
    project_stats,
    schema_of_leaves,
    stats_schema,
)
from deltalog.stats.skipping import Skipping, TableFacts, plan_skipping

__all__ = [
    "Skipping",
    "TableFacts",
    "conform_stats",
    "has_bounds",
    "indexed_columns",
    "leaves_of_schema",
    "parse_stats",
    "plan_skipping",
    "project_stats",
    "schema_of_leaves",
    "stats_schema",
]
