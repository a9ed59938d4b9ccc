"""Optimize: rewrite files without changing rows, to make reads cheaper.

- `compact`: small files into large ones, on request and after commits.
- `z_order`, `cluster`: rows in the order of a curve.
- `purge`: without rows that deletion vectors mark; also rewrites for a newer UniForm version.
- `rewrite`: shared by them: selects files, packs them into bins, and stages the rewrite.

Protocol: Add File and Remove File (`dataChange`), Clustered Table
"""

from __future__ import annotations

from deltalog.operations.optimize.cluster import Cluster, CubeSizes
from deltalog.operations.optimize.compact import (
    AutoCompact,
    Compact,
    CompactionThresholds,
    is_auto_compaction_due,
)
from deltalog.operations.optimize.purge import Purge, UpgradeUniform
from deltalog.operations.optimize.rewrite import Optimized
from deltalog.operations.optimize.z_order import ZOrder

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
