"""Truncate: every row leaves the table, and nothing is read for it.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow.compute as pc

from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from deltalog.engine import Engine
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

    def result(self) -> dict[str, int]:
        """As users get them."""
        return {
            "num_removed_files": self.num_removed_files,
            "num_removed_bytes": self.num_removed_bytes,
        }


@dataclass(frozen=True, slots=True)
class Truncate(Verb[Truncated]):
    """Remove every file; schema, properties and history stay."""

    name: ClassVar[str] = "TRUNCATE"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Truncated:
        """Remove them. Cost: the log's columns of files that removes need."""
        del engine
        files = transaction.base.files()
        transaction.read(None)
        transaction.remove_files(files, data_change=True)
        return Truncated(
            num_removed_files=files.num_rows,
            num_removed_bytes=pc.sum(files.column("size")).as_py() or 0,
        )
