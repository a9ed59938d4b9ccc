"""Truncate: remove all files from the table, without reading the files.

Protocol: Add File and Remove File
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from deltalog._util.kernels import exact_sum
from deltalog.operations.operation import Operation

if TYPE_CHECKING:
    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """The result of a TRUNCATE.

    Args:
        num_removed_files: number of removed files.
        num_removed_bytes: total size of the removed files.
    """

    num_removed_files: int
    num_removed_bytes: int

    def metrics(self) -> dict[str, int]:
        """Return the metrics under the names of Delta Spark's `operationMetrics`."""
        return {
            "numRemovedFiles": self.num_removed_files,
            "numRemovedBytes": self.num_removed_bytes,
            "numAddedFiles": 0,
        }

    def result(self) -> dict[str, int]:
        """Return the number and size of removed files."""
        return {
            "num_removed_files": self.num_removed_files,
            "num_removed_bytes": self.num_removed_bytes,
        }


@dataclass(frozen=True, slots=True)
class Truncate(Operation[Truncated]):
    """Remove all files from the table; schema, properties and history do not change."""

    name: ClassVar[str] = "TRUNCATE"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Truncated:
        """Stage the removal of all files. Cost: reads the file list from the log."""
        del engine
        files = transaction.read_snapshot.files()
        transaction.record_read(None)
        transaction.remove_files(files, data_change=True)
        return Truncated(
            num_removed_files=files.num_rows,
            num_removed_bytes=exact_sum(files.column("size")),
        )
