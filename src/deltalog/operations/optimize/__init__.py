"""Optimize: rewrite files without changing rows, to make reads cheaper.

`bins` selects and packs files, and the engine rewrites them (`rows.bins`). `ranks`, `curves` and
`order` sort the rows. The operations are `compact`, `z_order`, `cluster`, `purge` and `uniform`;
`auto` compacts after commits.

Protocol: Add File and Remove File (`dataChange`), Clustered Table
"""

from __future__ import annotations

from deltalog.operations.optimize.cluster import Cluster, CubeSizes, ZOrder
from deltalog.operations.optimize.compact import (
    AutoCompact,
    Compact,
    CompactionThresholds,
    is_auto_compaction_due,
)
from deltalog.operations.optimize.purge import Purge, UpgradeUniform
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
