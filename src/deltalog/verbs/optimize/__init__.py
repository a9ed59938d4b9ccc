"""Optimize: rewrite files without changing rows, to make reads cheaper.

`bins` selects and packs files, and the engine rewrites them (`rows.bins`); `ranks`, `curves` and
`order` sort the rows. The verbs are `compact`, `z_order`, `cluster`, `purge` and `uniform`; `auto`
compacts after commits.

Protocol: Add File and Remove File (`dataChange`), Clustered Table
"""

from __future__ import annotations

from deltalog.verbs.optimize.auto import AutoCompact, CompactionThresholds, is_auto_compaction_due
from deltalog.verbs.optimize.cluster import Cluster, CubeSizes
from deltalog.verbs.optimize.compact import Compact
from deltalog.verbs.optimize.purge import Purge
from deltalog.verbs.optimize.result import Optimized
from deltalog.verbs.optimize.uniform import UpgradeUniform
from deltalog.verbs.optimize.z_order import ZOrder

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
