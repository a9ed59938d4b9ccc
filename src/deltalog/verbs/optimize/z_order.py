"""Z-order: rows that are alike in several columns come to lie in the same files.

Protocol: none; Delta Spark's OPTIMIZE … ZORDER BY
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.rows.external_sort import SortLimits
from deltalog.verbs.optimize.bins import (
    by_partition,
    considered_files,
    snapshot_of,
    still_live,
)
from deltalog.verbs.optimize.cubes import clustered_by, quoted
from deltalog.verbs.optimize.order import Order
from deltalog.verbs.optimize.ranks import sortable_paths
from deltalog.verbs.optimize.run import RunOptions, record, rewrite_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.expressions import Expression
    from deltalog.schema.columns import Path
    from deltalog.transaction import PendingTransaction
    from deltalog.verbs.optimize.bins import Bin
    from deltalog.verbs.optimize.result import Optimized

STRATEGY: Final = "zOrder"


def stage_z_order(
    pending: PendingTransaction,
    columns: Sequence[str | Path],
    predicate: Expression | None = None,
    *,
    options: RunOptions | None = None,
    limits: SortLimits | None = None,
    left: Sequence[Bin] | None = None,
) -> Optimized:
    """Arrange the rows of each partition along the Z-curve through some columns.

    Predicates on any of the columns then leave few files to read. Every file of the partitions is
    rewritten, each time. NULL comes first.

    Args:
        pending: of an existing table.
        columns: names or paths; a path of parts reaches into structs.
        predicate: resolved, over partition columns; None is every partition.
        options: of the run.
        limits: of sorting.
        left: what an earlier commit of the same operation has left; None is all.

    Raises:
        InvalidInputError: a column cannot be sorted by, the table is clustered, or the predicate
            names a column that is no partition column.
        StorageError: sorting needs more temporary files than `limits` allows.

    Cost: two passes over the files, the first of these columns alone. What does not fit into
    memory is written to temporary files once.
    """
    options = options or RunOptions()
    snapshot = snapshot_of(pending)
    configuration = snapshot.configuration
    if clustered_by(snapshot):
        raise InvalidInputError(
            f"cannot z-order {snapshot.store.root}: it has clustering columns, which say how rows "
            "are arranged; optimize.cluster() does it"
        )
    paths = sortable_paths(
        configuration.schema, columns, configuration.partition_columns, "z-order"
    )
    num_considered = 0
    if left is None:
        files = considered_files(snapshot, predicate)
        num_considered = files.num_rows
        bins = by_partition(files)
    else:
        bins = still_live(snapshot, left)
    record(pending, predicate, z_order_by=[quoted(path) for path in paths])
    return rewrite_bins(
        pending,
        bins,
        Order(paths=paths, curve="zorder", limits=limits or SortLimits()).rewrite,
        strategy=STRATEGY,
        num_considered=num_considered,
        options=options,
        preserves_order=False,
    )
