"""Auto-compaction: merge small files after a commit, in partitions that have many of them.

Owns when that is worth a commit of its own. A failure does not affect the commit before it.

Protocol: none; Delta Spark's `delta.autoOptimize.autoCompact`
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from deltalog.catalog import MaintenanceOperation
from deltalog.kernels import compute
from deltalog.rows.bins import BinRewrite, RunOptions, copy_bin
from deltalog.upkeep.permission import check_maintenance
from deltalog.verbs.optimize.bins import considered_files, small
from deltalog.verbs.optimize.compact import STRATEGY, compaction_bins
from deltalog.verbs.optimize.cubes import unclustered
from deltalog.verbs.optimize.result import Optimized
from deltalog.verbs.optimize.rewrite import record, stage_rewrite
from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from deltalog.engine import Engine
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction

_NO_SHARE: Final = 1.0  # deleted rows alone do not trigger a rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionThresholds:
    """The thresholds of auto-compaction; the defaults are Delta Spark's.

    Args:
        min_files: the number of small files from which a partition is compacted.
        max_file_bytes: size of the new files, unless the table's target size is less. Files below
            half of it are small.
    """

    min_files: int = 50
    max_file_bytes: int = 128 * 1024 * 1024


def is_auto_compaction_due(snapshot: Snapshot, when: CompactionThresholds | None = None) -> bool:
    """Whether a table has at least `min_files` small files, in any partitions.

    Cost: the sizes of the live files, from the log.
    """
    when = when or CompactionThresholds()
    if snapshot.num_files < when.min_files:
        return False
    limit = _small_bytes(snapshot, when)
    below = compute.sum(compute.less(snapshot.files(["size"]).column("size"), limit)).as_py()
    return (below or 0) >= when.min_files


@dataclass(frozen=True, slots=True)
class AutoCompact(Verb[Optimized]):
    """Merge the small files of partitions that have many.

    In a clustered table, only unclustered files are merged: clustering would take too long after a
    commit.

    Args:
        when: the thresholds, and the size of new files.
        options: of the run.
    """

    when: CompactionThresholds = field(default_factory=CompactionThresholds)
    options: RunOptions = field(default_factory=RunOptions)
    name: ClassVar[str] = "OPTIMIZE"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select the files, and have the engine rewrite them."""
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
        return stage_rewrite(job, engine, strategy=STRATEGY, num_considered=found.num_rows)


def _small_bytes(snapshot: Snapshot, when: CompactionThresholds) -> int:
    target = snapshot.configuration.properties.target_file_size_bytes
    return max(1, min(target or when.max_file_bytes, when.max_file_bytes) // 2)
