"""Optimize: the same rows in better files.

Files are chosen and packed in `bins`, rewritten and committed in `run`; what orders the rows is in
`ranks`, `curves` and `order`. The verbs are `compact`, `z_order`, `cluster` and `purge`; `auto`
compacts after commits.

Protocol: Add File and Remove File (`dataChange`), Clustered Table
"""

from __future__ import annotations

from deltalog.verbs.optimize.auto import (
    AutoCompaction,
    auto_compact,
    is_auto_compaction_due,
    stage_auto_compact,
)
from deltalog.verbs.optimize.cluster import CubeSizes, stage_cluster
from deltalog.verbs.optimize.compact import stage_compact
from deltalog.verbs.optimize.purge import stage_purge
from deltalog.verbs.optimize.result import Optimized
from deltalog.verbs.optimize.run import RunOptions
from deltalog.verbs.optimize.z_order import stage_z_order

__all__ = [
    "AutoCompaction",
    "CubeSizes",
    "Optimized",
    "RunOptions",
    "auto_compact",
    "is_auto_compaction_due",
    "stage_auto_compact",
    "stage_cluster",
    "stage_compact",
    "stage_purge",
    "stage_z_order",
]
