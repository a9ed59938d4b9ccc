"""Merge: the rows of a source change, remove and add rows of a table.

Understood in `plan` (names in `scope`), searched in `match` (`prune`, `pairs`, `join`), written
in `apply`, put together in `stage`.

Protocol: Deletion Vectors, Add CDC File, Row Tracking
"""

from __future__ import annotations

from deltalog.operations.merge.clauses import Action, Clause, Merge, When
from deltalog.operations.merge.source import MergeSource
from deltalog.operations.merge.stage import (
    Counts,
    Merged,
    explain_merge,
    preview_merge,
    stage_merge,
)
from deltalog.operations.merge.upsert import upsert

__all__ = [
    "Action",
    "Clause",
    "Counts",
    "Merge",
    "MergeSource",
    "Merged",
    "When",
    "explain_merge",
    "preview_merge",
    "stage_merge",
    "upsert",
]
