"""Auto-compaction: after a commit, small files are put together where there are many of them.

Owns when that is worth a commit of its own. The commit before it stands, whatever happens here.

Protocol: none; Delta Spark's `delta.autoOptimize.autoCompact`
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.errors import DeltaError
from deltalog.kernels import compute
from deltalog.transaction.commit import run
from deltalog.verbs.optimize.bins import considered_files, small, snapshot_of
from deltalog.verbs.optimize.compact import STRATEGY, compaction_bins
from deltalog.verbs.optimize.cubes import unclustered
from deltalog.verbs.optimize.run import RunOptions, copy_bin, record, rewrite_bins

if TYPE_CHECKING:
    from deltalog.snapshot import Snapshot
    from deltalog.transaction import PendingTransaction, PostCommitHookProperties
    from deltalog.transaction.commit import Committed
    from deltalog.verbs.optimize.result import Optimized

logger = logging.getLogger(__name__)

_NO_SHARE: Final = 1.0  # deleted rows alone are no reason


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoCompaction:
    """When files are put together after a commit; the defaults are Delta Spark's.

    Args:
        min_files: so many small files in a partition.
        max_file_bytes: how large the new files may be; the table's target size if that is less.
            Files below half of it are small.
    """

    min_files: int = 50
    max_file_bytes: int = 128 * 1024 * 1024


def is_auto_compaction_due(snapshot: Snapshot, when: AutoCompaction | None = None) -> bool:
    """Whether the table asks for it, and has small files enough to look closer.

    Cost: the sizes of the live files, from the log.
    """
    when = when or AutoCompaction()
    properties = snapshot.configuration.properties
    if not properties.auto_compact or snapshot.num_files < when.min_files:
        return False
    limit = _small_bytes(snapshot, when)
    below = compute.sum(compute.less(snapshot.files(["size"]).column("size"), limit)).as_py()
    return (below or 0) >= when.min_files


def stage_auto_compact(
    pending: PendingTransaction,
    *,
    when: AutoCompaction | None = None,
    options: RunOptions | None = None,
) -> Optimized:
    """Put the small files of those partitions together that have many.

    In a clustered table that is what was not clustered yet; clustering itself takes longer than
    a commit should.

    Args:
        pending: of an existing table.
        when: it is worth it.
        options: of the run; the size of new files is that of `when`.
    """
    when, options = when or AutoCompaction(), options or RunOptions()
    snapshot = snapshot_of(pending)
    limit = _small_bytes(snapshot, when)
    found = considered_files(snapshot, None)
    files = found.filter(small(found, limit))
    if snapshot.configuration.supports("clustering"):
        files = unclustered(files)
    counts = files.select(["partition"]).group_by("partition").aggregate([("partition", "count")])
    many = counts.filter(compute.greater_equal(counts.column("partition_count"), when.min_files))
    chosen = compute.is_in(files.column("partition"), value_set=many.column("partition"))
    pending.parameters["auto"] = True
    record(pending, None)
    return rewrite_bins(
        pending,
        compaction_bins(files.filter(chosen), limit * 2, _NO_SHARE),
        copy_bin,
        strategy=STRATEGY,
        num_considered=found.num_rows,
        options=options,
    )


def auto_compact(
    snapshot: Snapshot,
    *,
    when: AutoCompaction | None = None,
    options: RunOptions | None = None,
    hooks: PostCommitHookProperties | None = None,
) -> Committed | None:
    """Compact after the commit that made `snapshot`, if the table wants it and it is worth it.

    Args:
        snapshot: what the commit made.
        when: it is worth it.
        options: of the run.
        hooks: what follows the compaction's own commit.

    Returns:
        The compaction's commit; None if there is none. A failure is logged, never raised.

    Cost: nothing but a look at a property where the table does not ask for it.
    """
    try:
        if not is_auto_compaction_due(snapshot, when):
            return None
        first = [snapshot]
        ran = run(
            lambda: first.pop() if first else snapshot.refresh(),
            lambda pending: stage_auto_compact(pending, when=when, options=options),
            operation="OPTIMIZE",
            hooks=hooks,
            on_conflict="raise",
            skip_empty=True,
        )
    except DeltaError as error:
        logger.warning("cannot compact %s after a commit: %s", snapshot.store.root, error)
        return None
    return None if ran.committed.skipped else ran.committed


def _small_bytes(snapshot: Snapshot, when: AutoCompaction) -> int:
    target = snapshot.configuration.properties.target_file_size_bytes
    return max(1, min(target or when.max_file_bytes, when.max_file_bytes) // 2)
