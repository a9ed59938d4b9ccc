"""Cluster: the rows of a clustered table are arranged by its clustering columns.

Protocol: Clustered Table; how much is rewritten follows Delta Spark's OPTIMIZE
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.rows.external_sort import SortLimits
from deltalog.verbs.optimize.bins import considered_files, pack, snapshot_of, still_live
from deltalog.verbs.optimize.cubes import (
    PROVIDER,
    clustered_by,
    cube_tags,
    files_to_cluster,
    quoted,
    tagged,
    with_cubes,
)
from deltalog.verbs.optimize.order import Order
from deltalog.verbs.optimize.ranks import sortable_paths
from deltalog.verbs.optimize.run import RunOptions, record, rewrite_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.transaction import PendingTransaction
    from deltalog.verbs.optimize.bins import Bin
    from deltalog.verbs.optimize.curves import Curve
    from deltalog.verbs.optimize.result import Optimized
    from deltalog.verbs.optimize.run import Rewritten, Rows

STRATEGY: Final = "cluster"
_GIB: Final = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeSizes:
    """How large groups of files grow that are clustered together; the defaults are Delta Spark's.

    Args:
        full_bytes: a cube of this size is left alone.
        target_bytes: as much is clustered at once.
    """

    full_bytes: int = 100 * _GIB
    target_bytes: int = 150 * _GIB

    def __post_init__(self) -> None:
        """Refuse sizes that are none."""
        if self.full_bytes < 1 or self.target_bytes < 1:
            raise InvalidInputError(
                f"cube sizes: expected numbers above 0, found {self.full_bytes!r} and "
                f"{self.target_bytes!r}"
            )


def stage_cluster(
    pending: PendingTransaction,
    *,
    full: bool = False,
    curve: Curve = "hilbert",
    options: RunOptions | None = None,
    limits: SortLimits | None = None,
    sizes: CubeSizes | None = None,
    left: Sequence[Bin] | None = None,
) -> Optimized:
    """Arrange the rows that came since the last time, together with groups that are not full.

    Args:
        pending: of a clustered table.
        full: arrange everything anew: for new clustering columns, or to undo many small steps.
        curve: through the clustering columns.
        options: of the run.
        limits: of sorting.
        sizes: of the groups.
        left: what an earlier commit of the same operation has left; None is all.

    Raises:
        InvalidInputError: the table has no clustering columns.
        StorageError: sorting needs more temporary files than `limits` allows.

    Cost: as `stage_z_order`, of the files that are rewritten.
    """
    options, sizes = options or RunOptions(), sizes or CubeSizes()
    snapshot = snapshot_of(pending)
    columns = clustered_by(snapshot)
    if not columns:
        raise InvalidInputError(
            f"cannot cluster {snapshot.store.root}: it has no clustering columns; "
            "alter.set_clustering_columns sets them"
        )
    if curve not in {"hilbert", "zorder"}:
        raise InvalidInputError(f"curve: expected 'hilbert' or 'zorder', found {curve!r}")
    paths = sortable_paths(snapshot.configuration.schema, columns, (), "cluster")
    num_considered = 0
    if left is None:
        files = considered_files(snapshot, None)
        num_considered = files.num_rows
        chosen = with_cubes(files) if full else files_to_cluster(files, paths, sizes.full_bytes)
        bins = pack(chosen, max(sizes.full_bytes, sizes.target_bytes))
    else:
        bins = still_live(snapshot, left)
    order = Order(paths=paths, curve=curve, limits=limits or SortLimits())

    def rewrite(rows: Rows, one: Bin) -> Rewritten:
        found = order.rewrite(rows, one)
        return replace(found, written=tagged(found.written, cube_tags(paths), PROVIDER))

    record(pending, None, cluster_by=[quoted(path) for path in paths], isFull=full)
    return rewrite_bins(
        pending,
        bins,
        rewrite,
        strategy=STRATEGY,
        num_considered=num_considered,
        options=options,
        preserves_order=False,
    )
