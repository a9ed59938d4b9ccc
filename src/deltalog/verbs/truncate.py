"""Truncate: every row leaves the table, and nothing is read for it.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from deltalog.errors import InternalError

if TYPE_CHECKING:
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """What a truncation did.

    Args:
        num_removed_files: all that were live.
        num_removed_bytes: their size.
    """

    num_removed_files: int
    num_removed_bytes: int

    def metrics(self) -> dict[str, int]:
        """As the history tells them."""
        return {
            "numRemovedFiles": self.num_removed_files,
            "numRemovedBytes": self.num_removed_bytes,
            "numAddedFiles": 0,
        }


def stage_truncate(pending: PendingTransaction) -> Truncated:
    """Remove every file; schema, properties and history stay.

    Cost: the log's columns of files that removes need.
    """
    snapshot = pending.snapshot
    if snapshot is None:
        raise InternalError("there is nothing to truncate in a table that is to be made")
    files = snapshot.files()
    pending.read(None)
    pending.remove_files(files, data_change=True)
    return Truncated(
        num_removed_files=files.num_rows,
        num_removed_bytes=pc.sum(files.column("size")).as_py() or 0,
    )
