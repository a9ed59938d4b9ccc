"""Statistics of data files: their schema, their JSON, how they are collected and what they decide.

Core: no I/O. Reading: `schema`, `leaves`, `rows`, `parse` (JSON column → structs), `batches`.
Skipping: `bounds`, `ranges`, `claims`, `rewrite`, `skipping`. Writing: `encode`, `collect`.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._lazy_names import names_on_demand

if TYPE_CHECKING:
    from deltalog.stats.batches import AddBatch, unread_adds
    from deltalog.stats.collect import StatsCollector
    from deltalog.stats.encode import (
        encode_stats,
        encode_stats_column,
        truncate_max,
        truncate_min,
        with_wide_bounds,
    )
    from deltalog.stats.leaves import StatsLeaf, leaf_of, nest
    from deltalog.stats.parse import parse_stats, parsed_leaves
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
    "AddBatch",
    "Skipping",
    "StatsCollector",
    "StatsLeaf",
    "TableColumns",
    "conform_stats",
    "encode_stats",
    "encode_stats_column",
    "has_bounds",
    "has_bounds_in_parquet",
    "indexed_columns",
    "leaf_of",
    "leaves_of_schema",
    "nest",
    "parse_stats",
    "parsed_leaves",
    "plan_skipping",
    "project_stats",
    "schema_of_leaves",
    "stats_schema",
    "truncate_max",
    "truncate_min",
    "unread_adds",
    "with_wide_bounds",
]

_ORIGINS = {
    "AddBatch": "deltalog.stats.batches",
    "Skipping": "deltalog.stats.skipping",
    "StatsCollector": "deltalog.stats.collect",
    "StatsLeaf": "deltalog.stats.leaves",
    "TableColumns": "deltalog.stats.rewrite",
    "conform_stats": "deltalog.stats.schema",
    "encode_stats": "deltalog.stats.encode",
    "encode_stats_column": "deltalog.stats.encode",
    "has_bounds": "deltalog.stats.schema",
    "has_bounds_in_parquet": "deltalog.stats.schema",
    "indexed_columns": "deltalog.stats.schema",
    "leaf_of": "deltalog.stats.leaves",
    "leaves_of_schema": "deltalog.stats.schema",
    "nest": "deltalog.stats.leaves",
    "parse_stats": "deltalog.stats.parse",
    "parsed_leaves": "deltalog.stats.parse",
    "plan_skipping": "deltalog.stats.skipping",
    "project_stats": "deltalog.stats.schema",
    "schema_of_leaves": "deltalog.stats.schema",
    "stats_schema": "deltalog.stats.schema",
    "truncate_max": "deltalog.stats.encode",
    "truncate_min": "deltalog.stats.encode",
    "unread_adds": "deltalog.stats.batches",
    "with_wide_bounds": "deltalog.stats.encode",
}

if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
