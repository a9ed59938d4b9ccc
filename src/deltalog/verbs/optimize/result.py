"""The result of an OPTIMIZE, as operationMetrics and as the API returns it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.rows.bins import Bin


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimized:
    """The result of an OPTIMIZE.

    Args:
        strategy: `preserveLocality`, `zOrder`, `cluster` or `purge`.
        added_sizes: of each new file.
        removed_sizes: of each removed file.
        removed_vectors: cardinality of each removed deletion vector.
        partitions: keys of the partitions that were rewritten.
        num_batches: record batches that were read.
        num_considered: live files that the operation could have rewritten.
        max_bin_files: the number of files of the largest bin.
        preserves_order: whether rows kept their order.
        left: bins that are left for another commit.
    """

    strategy: str
    added_sizes: tuple[int, ...] = ()
    removed_sizes: tuple[int, ...] = ()
    removed_vectors: tuple[int, ...] = ()
    partitions: frozenset[object] = frozenset()
    num_batches: int = 0
    num_considered: int = 0
    max_bin_files: int = 0
    preserves_order: bool = True
    left: Sequence[Bin] = field(default=(), repr=False)

    @property
    def num_skipped(self) -> int:
        """The number of files that were considered and not rewritten."""
        return self.num_considered - len(self.removed_sizes)

    def metrics(self) -> dict[str, int]:
        """Return the metrics as Delta Spark's operationMetrics."""
        sizes = sorted(self.added_sizes)
        return {
            "numRemovedFiles": len(self.removed_sizes),
            "numRemovedBytes": sum(self.removed_sizes),
            "numAddedFiles": len(sizes),
            "numAddedBytes": sum(sizes),
            "numDeletionVectorsRemoved": len(self.removed_vectors),
            "minFileSize": _quantile(sizes, 0),
            "p25FileSize": _quantile(sizes, 0.25),
            "p50FileSize": _quantile(sizes, 0.5),
            "p75FileSize": _quantile(sizes, 0.75),
            "maxFileSize": _quantile(sizes, 1),
        }

    def result(self) -> dict[str, Any]:
        """Return the metrics of the API: deltalake's keys, and some more."""
        return {
            "numFilesAdded": len(self.added_sizes),
            "numFilesRemoved": len(self.removed_sizes),
            "filesAdded": _sizes(self.added_sizes),
            "filesRemoved": _sizes(self.removed_sizes),
            "partitionsOptimized": len(self.partitions),
            "numBatches": self.num_batches,
            "totalConsideredFiles": self.num_considered,
            "totalFilesSkipped": self.num_skipped,
            "preserveInsertionOrder": self.preserves_order,
            "plannerStrategy": self.strategy,
            "preservedStableOrder": self.preserves_order,
            "maxBinSpanFiles": self.max_bin_files,
            "numDeletionVectorsRemoved": len(self.removed_vectors),
            "numDeletedRowsPurged": sum(self.removed_vectors),
        }

    def and_then(self, later: Optimized) -> Optimized:
        """Return the sum of this result and that of the operation's next commit."""
        return Optimized(
            strategy=self.strategy,
            added_sizes=self.added_sizes + later.added_sizes,
            removed_sizes=self.removed_sizes + later.removed_sizes,
            removed_vectors=self.removed_vectors + later.removed_vectors,
            partitions=self.partitions | later.partitions,
            num_batches=self.num_batches + later.num_batches,
            num_considered=self.num_considered,
            max_bin_files=max(self.max_bin_files, later.max_bin_files),
            preserves_order=self.preserves_order and later.preserves_order,
            left=later.left,
        )


def _quantile(sizes: Sequence[int], share: float) -> int:
    return sizes[min(len(sizes) - 1, int(len(sizes) * share))] if sizes else 0


def _sizes(sizes: Sequence[int]) -> dict[str, int | float]:
    total = sum(sizes)
    return {
        "avg": total / len(sizes) if sizes else 0.0,
        "max": max(sizes, default=0),
        "min": min(sizes, default=0),
        "totalFiles": len(sizes),
        "totalSize": total,
    }
