"""Compact: merge small files, and rewrite files with many deleted rows.

Protocol: Add File and Remove File, Deletion Vectors
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog.catalog import MaintenanceOperation
from deltalog.errors import InvalidInputError
from deltalog.kernels import compute
from deltalog.rows.bins import BinRewrite, RunOptions, copy_bin
from deltalog.upkeep.permission import check_maintenance
from deltalog.verbs.optimize.bins import (
    DEFAULT_MAX_DELETED_SHARE,
    considered_files,
    crowded,
    pack,
    partition_condition,
    small,
    still_live,
)
from deltalog.verbs.optimize.cluster import Cluster
from deltalog.verbs.optimize.cubes import clustered_by
from deltalog.verbs.optimize.result import Optimized
from deltalog.verbs.optimize.rewrite import record, stage_rewrite
from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from deltalog.engine import Engine
    from deltalog.rows.bins import Bin
    from deltalog.transaction import PendingTransaction

STRATEGY: Final = "preserveLocality"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact(Verb[Optimized]):
    """Merge small files, and rewrite files with many deleted rows.

    A table with clustering columns is clustered instead. Otherwise rows keep their order within a
    partition, and their row ids. A file of the target size stays, unless its share of deleted rows
    is above `max_deleted_share`.

    Args:
        filters: of partitions, in any form that callers use; None is every partition.
        options: of the run, with the target size of files.
        max_deleted_share: the share of deleted rows above which a file of any size is rewritten.
        left: bins that an earlier commit of the same operation left; None selects files.
    """

    filters: Any = None
    options: RunOptions = field(default_factory=RunOptions)
    max_deleted_share: float = DEFAULT_MAX_DELETED_SHARE
    left: Sequence[Bin] | None = None
    name: ClassVar[str] = "OPTIMIZE"
    doing: ClassVar[str] = "rewriting files"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select the files, and have the engine rewrite them.

        Raises:
            InvalidInputError: a filter uses a column that is not a partition column.

        Cost: the log's columns of the files; then each selected file is read and written once.
        """
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "optimize")
        predicate = partition_condition(transaction, self.filters)
        if clustered_by(snapshot):
            # As Delta Spark's OPTIMIZE: plain compaction would destroy the clustering.
            if predicate is not None:
                raise InvalidInputError(
                    f"cannot optimize a part of {snapshot.store.root}: a clustered table has none"
                )
            cluster = Cluster(options=self.options, left=self.left)
            return cluster.stage(transaction, engine)
        if not 0 <= self.max_deleted_share <= 1:
            raise InvalidInputError(
                "max_deleted_share: expected a number from 0 to 1, found "
                f"{self.max_deleted_share!r}"
            )
        num_considered = 0
        if self.left is None:
            target = self.options.files.spec_for(transaction).target_file_size_bytes
            files = considered_files(snapshot, predicate)
            num_considered = files.num_rows
            bins = compaction_bins(files, target, self.max_deleted_share)
        else:
            bins = still_live(snapshot, self.left)
        record(transaction, predicate)
        job = BinRewrite(transaction=transaction, bins=bins, rewrite=copy_bin, options=self.options)
        return stage_rewrite(job, engine, strategy=STRATEGY, num_considered=num_considered)


def compaction_bins(files: pa.Table, target_size_bytes: int, max_deleted_share: float) -> list[Bin]:
    """Select and pack those of `considered_files` that a compaction rewrites."""
    is_crowded = crowded(files, max_deleted_share)
    chosen = compute.or_(small(files, target_size_bytes), is_crowded)
    bins = pack(files.filter(chosen), target_size_bytes)
    return [
        one
        for one in bins
        # Rewriting a single file is useful only if it has deleted rows.
        if one.files.num_rows > 1 or compute.any(crowded(one.files, max_deleted_share)).as_py()
    ]
