"""Optimize: the same rows in better files.

Files are chosen and packed in `bins`, rewritten and committed in `run`; what orders the rows is in
`ranks`, `curves` and `order`. The verbs are `compact`, `z_order`, `cluster` and `purge`; `auto`
compacts after commits.

Protocol: Add File and Remove File (`dataChange`), Clustered Table
"""

from __future__ import annotations

from deltalog.operations.optimize.auto import (
    AutoCompaction,
    auto_compact,
    is_auto_compaction_due,
    stage_auto_compact,
)
from deltalog.operations.optimize.cluster import CubeSizes, stage_cluster
from deltalog.operations.optimize.compact import stage_compact
from deltalog.operations.optimize.purge import stage_purge
from deltalog.operations.optimize.result import Optimized
from deltalog.operations.optimize.run import RunOptions
from deltalog.operations.optimize.z_order import stage_z_order

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
