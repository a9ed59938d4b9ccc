"""Compact: merge small files, and rewrite files with many deleted rows.

Protocol: Add File and Remove File, Deletion Vectors
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog._util.kernels import compute
from deltalog.errors import InvalidInputError
from deltalog.log.context import MaintenanceOperation
from deltalog.operations.changes.bins import Bin, BinRewrite, RunOptions, copy_bin
from deltalog.operations.operation import Operation
from deltalog.operations.optimize.cluster import Cluster, clustered_by, unclustered
from deltalog.operations.optimize.rewrite import (
    DEFAULT_MAX_DELETED_SHARE,
    Optimized,
    RewriteOperation,
    considered_files,
    crowded,
    pack,
    partition_condition,
    record,
    small,
    stage_rewrite,
)
from deltalog.transaction.maintenance.checksum import check_maintenance

if TYPE_CHECKING:
    import pyarrow as pa

    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction

_STRATEGY: Final = "preserveLocality"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact(RewriteOperation):
    """Merge small files, and rewrite files with many deleted rows.

    A table with clustering columns is clustered instead. Otherwise the order of rows within a
    partition and the row ids do not change. A file of the target size is not rewritten unless its
    share of deleted rows is above `max_deleted_share`.

    Args:
        filters: partition filters in any accepted form; None means all partitions.
        options: options of the run, including the target file size.
        max_deleted_share: the share of deleted rows above which a file of any size is rewritten.
    """

    filters: Any = None
    max_deleted_share: float = DEFAULT_MAX_DELETED_SHARE
    strategy: ClassVar[str] = _STRATEGY

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select files and let the engine rewrite them.

        Raises:
            InvalidInputError: a filter uses a column that is not a partition column.

        Cost: reads the file list from the log; then reads and writes each selected file once.
        """
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "optimize")
        predicate = partition_condition(transaction, self.filters)
        if clustered_by(snapshot):
            # As in Delta Spark, cluster the files. Mere compaction would destroy the clustering.
            if predicate is not None:
                raise InvalidInputError(
                    f"cannot optimize a part of {snapshot.store.root}: a clustered table has no "
                    "partitions; omit the filter"
                )
            cluster = Cluster(options=self.options, left=self.left)
            return cluster.stage(transaction, engine)
        if not 0 <= self.max_deleted_share <= 1:
            raise InvalidInputError(
                "max_deleted_share: expected a number from 0 to 1, found "
                f"{self.max_deleted_share!r}"
            )

        def select(files: pa.Table) -> list[Bin]:
            target = self.options.files.spec_for(transaction).target_file_size_bytes
            return compaction_bins(files, target, self.max_deleted_share)

        record(transaction, predicate)
        return self._stage_bins(transaction, engine, select, copy_bin, predicate)


def compaction_bins(files: pa.Table, target_size_bytes: int, max_deleted_share: float) -> list[Bin]:
    """Select the files that a compaction rewrites from `considered_files`, and pack them."""
    is_crowded = crowded(files, max_deleted_share)
    chosen = compute.or_(small(files, target_size_bytes), is_crowded)
    bins = pack(files.filter(chosen), target_size_bytes)
    return [
        one
        for one in bins
        # A bin of a single file is rewritten only if the file has many deleted rows.
        if one.files.num_rows > 1 or compute.any(crowded(one.files, max_deleted_share)).as_py()
    ]


# --- Auto-compaction: merge small files after a commit, in partitions with many small files


_NO_SHARE: Final = 1.0  # no share is above this limit, so deleted rows never cause a rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionThresholds:
    """The thresholds of auto-compaction; the defaults are Delta Spark's.

    Args:
        min_files: the minimum number of small files in a partition that is compacted.
        max_file_bytes: the size of the new files in bytes, unless the table's target size is less.
            A file is small if its size is less than half of this size.
    """

    min_files: int = 50
    max_file_bytes: int = 128 * 1024 * 1024


def is_auto_compaction_due(snapshot: Snapshot, when: CompactionThresholds | None = None) -> bool:
    """Return whether a table has at least `min_files` small files, in all partitions together.

    Cost: reads the sizes of the live files from the log.
    """
    when = when or CompactionThresholds()
    if snapshot.num_files < when.min_files:
        return False
    limit = _small_bytes(snapshot, when)
    below = compute.sum(compute.less(snapshot.files(["size"]).column("size"), limit)).as_py()
    return (below or 0) >= when.min_files


@dataclass(frozen=True, slots=True)
class AutoCompact(Operation[Optimized]):
    """Merge the small files of partitions with many small files.

    In a clustered table, only the files that are in no ZCube are merged. They are not clustered,
    because this would take too long after a commit.

    Args:
        when: the thresholds, and the size of new files.
        options: options of the run.
    """

    when: CompactionThresholds = field(default_factory=CompactionThresholds)
    options: RunOptions = field(default_factory=RunOptions)
    name: ClassVar[str] = "OPTIMIZE"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select files and let the engine rewrite them."""
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "compact")
        limit = _small_bytes(snapshot, self.when)
        found = considered_files(snapshot, None)
        files = found.filter(small(found, limit))
        if snapshot.configuration.supports("clustering"):
            files = unclustered(files)
        by_partition = files.select(["partition"]).group_by("partition", use_threads=False)
        counts = by_partition.aggregate([("partition", "count")])
        are_many = compute.greater_equal(counts.column("partition_count"), self.when.min_files)
        many = counts.filter(are_many).column("partition")
        chosen = compute.is_in(files.column("partition"), value_set=many)
        transaction.parameters["auto"] = True
        record(transaction, None)
        bins = compaction_bins(files.filter(chosen), limit * 2, _NO_SHARE)
        job = BinRewrite(transaction=transaction, bins=bins, rewrite=copy_bin, options=self.options)
        return stage_rewrite(job, engine, strategy=_STRATEGY, num_considered=found.num_rows)


def _small_bytes(snapshot: Snapshot, when: CompactionThresholds) -> int:
    target = snapshot.configuration.properties.target_file_size_bytes
    return max(1, min(target or when.max_file_bytes, when.max_file_bytes) // 2)
