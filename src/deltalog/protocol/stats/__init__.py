"""Statistics of data files: schema, JSON form, collection, and data skipping.

Core: no I/O. Reading: `schema`, `parse` (JSON column → structs). Skipping: `ranges`, `rewrite`,
`skipping`. Writing: `collect`.

Protocol: Per-file Statistics
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog._util.lazy_names import names_on_demand

if TYPE_CHECKING:
    from deltalog.protocol.stats.collect import (
        StatsCollector,
        encode_stats,
        encode_stats_column,
        truncate_max,
        truncate_min,
        with_wide_bounds,
    )
    from deltalog.protocol.stats.parse import (
        AddBatch,
        StatsLeaf,
        leaf_of,
        nest,
        parse_stats,
        parsed_leaves,
        unread_adds,
    )
    from deltalog.protocol.stats.rewrite import TableColumns
    from deltalog.protocol.stats.schema import (
        conform_stats,
        has_bounds,
        has_bounds_in_parquet,
        indexed_columns,
        leaves_of_schema,
        schema_of_leaves,
        stats_schema,
    )
    from deltalog.protocol.stats.skipping import Skipping, plan_skipping

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
    "schema_of_leaves",
    "stats_schema",
    "truncate_max",
    "truncate_min",
    "unread_adds",
    "with_wide_bounds",
]

_ORIGINS = {
    "AddBatch": "deltalog.protocol.stats.parse",
    "Skipping": "deltalog.protocol.stats.skipping",
    "StatsCollector": "deltalog.protocol.stats.collect",
    "StatsLeaf": "deltalog.protocol.stats.parse",
    "TableColumns": "deltalog.protocol.stats.rewrite",
    "conform_stats": "deltalog.protocol.stats.schema",
    "encode_stats": "deltalog.protocol.stats.collect",
    "encode_stats_column": "deltalog.protocol.stats.collect",
    "has_bounds": "deltalog.protocol.stats.schema",
    "has_bounds_in_parquet": "deltalog.protocol.stats.schema",
    "indexed_columns": "deltalog.protocol.stats.schema",
    "leaf_of": "deltalog.protocol.stats.parse",
    "leaves_of_schema": "deltalog.protocol.stats.schema",
    "nest": "deltalog.protocol.stats.parse",
    "parse_stats": "deltalog.protocol.stats.parse",
    "parsed_leaves": "deltalog.protocol.stats.parse",
    "plan_skipping": "deltalog.protocol.stats.skipping",
    "project_stats": "deltalog.protocol.stats.schema",
    "schema_of_leaves": "deltalog.protocol.stats.schema",
    "stats_schema": "deltalog.protocol.stats.schema",
    "truncate_max": "deltalog.protocol.stats.collect",
    "truncate_min": "deltalog.protocol.stats.collect",
    "unread_adds": "deltalog.protocol.stats.parse",
    "with_wide_bounds": "deltalog.protocol.stats.collect",
}

if not TYPE_CHECKING:  # type checkers shall find a wrong name themselves
    __getattr__, __dir__ = names_on_demand(__name__, _ORIGINS)
