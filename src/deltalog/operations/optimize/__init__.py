"""Optimize: rewrite files without changing rows, to make reads cheaper.

- `compact`: merges small files, on request and after commits; removes deleted rows and dropped
  columns from files; also rewrites files for UniForm.
- `cluster`: sorts rows along a space-filling curve, for clustering and Z-order.
- `rewrite`: the common part: selects files, packs them into bins, and stages the new files.

Protocol: Add File and Remove File (`dataChange`), Clustered Table
"""

from __future__ import annotations

from deltalog.operations.optimize.cluster import Cluster, CubeSizes, ZOrder
from deltalog.operations.optimize.compact import (
    AutoCompact,
    Compact,
    CompactionThresholds,
    Purge,
    UpgradeUniform,
    is_auto_compaction_due,
)
from deltalog.operations.optimize.rewrite import Optimized

__all__ = [
    "AutoCompact",
    "Cluster",
    "Compact",
    "CompactionThresholds",
    "CubeSizes",
    "Optimized",
    "Purge",
    "UpgradeUniform",
    "ZOrder",
    "is_auto_compaction_due",
]
