"""Stage rewritten bins and operation parameters, for all OPTIMIZE verbs.

Protocol: Add File and Remove File (`dataChange`), Row Tracking
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.expressions import to_sql
from deltalog.rows.bins import BinRewrite
from deltalog.verbs.optimize.bins import vectors_of
from deltalog.verbs.optimize.result import Optimized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.engine import Engine
    from deltalog.expressions import Expression
    from deltalog.transaction import PendingTransaction


def record(
    pending: PendingTransaction,
    predicate: Expression | None,
    *,
    z_order_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    **more: object,
) -> None:
    """Set the operationParameters of an OPTIMIZE, under Delta Spark's names."""
    pending.parameters.setdefault("auto", False)
    pending.parameters.update(
        predicate=[] if predicate is None else [to_sql(predicate)],
        zOrderBy=list(z_order_by),
        clusterBy=list(cluster_by),
        **more,
    )


def stage_rewrite(
    job: BinRewrite,
    engine: Engine,
    *,
    strategy: str,
    num_considered: int,
    preserves_order: bool = True,
) -> Optimized:
    """Have bins rewritten, and stage the removal of old files and the addition of new ones.

    If the job's commit interval passed, the bins that were not rewritten are in `Optimized.left`.

    Args:
        job: which bins, and how.
        engine: rewrites them.
        strategy: of the verb.
        num_considered: files that could have been in the bins.
        preserves_order: whether rows keep their order.

    Cost: that of `Engine.rewrite_bins`. After a failure no new file is left behind.
    """
    transaction = job.transaction
    transaction.copies_rows = True
    done = list(zip(job.bins, engine.rewrite_bins(job), strict=False))
    for one, rewritten in done:
        transaction.record_read_files(one.files)
        transaction.remove_files(one.files, data_change=False)
        transaction.add_files(rewritten.written)
    removed: list[Any] = [size for one, _ in done for size in one.files.column("size").to_pylist()]
    return Optimized(
        strategy=strategy,
        added_sizes=tuple(add.size_bytes for _, new in done for add in new.written.adds),
        removed_sizes=tuple(removed),
        removed_vectors=tuple(count for one, _ in done for count in vectors_of(one.files)),
        partitions=frozenset(one.partition for one, _ in done),
        num_batches=sum(new.num_batches for _, new in done),
        num_considered=num_considered,
        max_bin_files=max((one.files.num_rows for one, _ in done), default=0),
        preserves_order=preserves_order,
        left=job.bins[len(done) :],
    )
