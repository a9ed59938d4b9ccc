"""Compact: small files, and files with many deleted rows, become fewer and full ones.

Protocol: Add File and Remove File, Deletion Vectors
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.kernels import compute
from deltalog.verbs.optimize.bins import (
    DEFAULT_MAX_DELETED_SHARE,
    considered_files,
    crowded,
    pack,
    small,
    snapshot_of,
    still_live,
)
from deltalog.verbs.optimize.cluster import stage_cluster
from deltalog.verbs.optimize.cubes import clustered_by
from deltalog.verbs.optimize.run import RunOptions, copy_bin, record, rewrite_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from deltalog.expressions import Expression
    from deltalog.transaction import PendingTransaction
    from deltalog.verbs.optimize.bins import Bin
    from deltalog.verbs.optimize.result import Optimized

STRATEGY: Final = "preserveLocality"


def stage_compact(
    pending: PendingTransaction,
    predicate: Expression | None = None,
    *,
    options: RunOptions | None = None,
    max_deleted_share: float = DEFAULT_MAX_DELETED_SHARE,
    left: Sequence[Bin] | None = None,
) -> Optimized:
    """Put the rows of small files together, and leave deleted rows behind.

    A table with clustering columns is clustered. Otherwise rows stay in their order within a
    partition, and keep their ids. A file that is full stays, unless more of its rows are deleted
    than `max_deleted_share`; when nothing is to be done, nothing is staged.

    Args:
        pending: of an existing table.
        predicate: resolved, over partition columns; None is every partition.
        options: of the run; the target size is that of its files.
        max_deleted_share: the share of deleted rows above which a file of any size is rewritten.
        left: what an earlier commit of the same operation has left; None is all.

    Returns:
        What was done, and what is left for another commit.

    Raises:
        InvalidInputError: the predicate names a column that is no partition column.

    Cost: the log's columns of the files; then each file that is chosen is read and written once.
    """
    options = options or RunOptions()
    snapshot = snapshot_of(pending)
    if clustered_by(snapshot):
        return _cluster(pending, predicate, options, left)
    if not 0 <= max_deleted_share <= 1:
        raise InvalidInputError(
            f"max_deleted_share: expected a number from 0 to 1, found {max_deleted_share!r}"
        )
    num_considered = 0
    if left is None:
        target = options.files.spec_for(pending).target_file_size_bytes
        files = considered_files(snapshot, predicate)
        num_considered = files.num_rows
        bins = compaction_bins(files, target, max_deleted_share)
    else:
        bins = still_live(snapshot, left)
    record(pending, predicate)
    return rewrite_bins(
        pending,
        bins,
        copy_bin,
        strategy=STRATEGY,
        num_considered=num_considered,
        options=options,
    )


def _cluster(
    pending: PendingTransaction,
    predicate: Expression | None,
    options: RunOptions,
    left: Sequence[Bin] | None,
) -> Optimized:
    """Where rows have an order, optimizing keeps it, as Delta Spark's OPTIMIZE does."""
    if predicate is not None:
        raise InvalidInputError(
            f"cannot optimize a part of {pending.store.root}: a clustered table has none"
        )
    return stage_cluster(pending, options=options, left=left)


def compaction_bins(files: pa.Table, target_size_bytes: int, max_deleted_share: float) -> list[Bin]:
    """What of `considered_files` a compaction rewrites."""
    is_crowded = crowded(files, max_deleted_share)
    chosen = compute.or_(small(files, target_size_bytes), is_crowded)
    bins = pack(files.filter(chosen), target_size_bytes)
    return [
        one
        for one in bins
        # A file alone gains by it only if rows of it are deleted.
        if one.files.num_rows > 1 or compute.any(crowded(one.files, max_deleted_share)).as_py()
    ]
