"""Statistics of data files: their schema, their JSON, how they are collected and what they decide.

Core: no I/O. Reading: `schema`, `rows`, `parse` (JSON column → structs). Skipping: `bounds`,
`ranges`, `claims`, `rewrite`, `skipping`. Writing: `encode`, `collect`.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from deltalog.stats.collect import StatsCollector
from deltalog.stats.encode import (
    encode_stats,
    encode_stats_column,
    truncate_max,
    truncate_min,
    with_wide_bounds,
)
from deltalog.stats.parse import parse_stats
from deltalog.stats.rewrite import TableColumns
from deltalog.stats.schema import (
    conform_stats,
    has_bounds,
    has_bounds_in_parquet,
    indexed_columns,
    leaves_of_schema,
    project_stats,
    schema_of_leaves,
    stats_schema,
)
from deltalog.stats.skipping import Skipping, plan_skipping

__all__ = [
    "Skipping",
    "StatsCollector",
    "TableColumns",
    "conform_stats",
    "encode_stats",
    "encode_stats_column",
    "has_bounds",
    "has_bounds_in_parquet",
    "indexed_columns",
    "leaves_of_schema",
    "parse_stats",
    "plan_skipping",
    "project_stats",
    "schema_of_leaves",
    "stats_schema",
    "truncate_max",
    "truncate_min",
    "with_wide_bounds",
]
