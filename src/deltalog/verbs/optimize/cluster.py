"""Cluster: sort the rows of a clustered table along a curve through its clustering columns.

Protocol: Clustered Table; how much is rewritten follows Delta Spark's OPTIMIZE
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

from deltalog.catalog import MaintenanceOperation
from deltalog.errors import InvalidInputError
from deltalog.rows.bins import BinRewrite, RunOptions
from deltalog.rows.external_sort import SortLimits
from deltalog.upkeep.permission import check_maintenance
from deltalog.verbs.optimize.bins import considered_files, pack, still_live
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
from deltalog.verbs.optimize.result import Optimized
from deltalog.verbs.optimize.rewrite import record, stage_rewrite
from deltalog.verbs.verb import Verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.engine import Engine
    from deltalog.rows.bins import Bin, BinReader, Rewritten
    from deltalog.transaction import PendingTransaction
    from deltalog.verbs.optimize.curves import Curve

STRATEGY: Final = "cluster"
_GIB: Final = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeSizes:
    """The sizes of ZCUBEs, groups of files clustered together; the defaults are Delta Spark's.

    Args:
        full_bytes: a cube of at least this size is not clustered again.
        target_bytes: how much is clustered at once.
    """

    full_bytes: int = 100 * _GIB
    target_bytes: int = 150 * _GIB

    def __post_init__(self) -> None:
        """Raise for sizes below 1."""
        if self.full_bytes < 1 or self.target_bytes < 1:
            raise InvalidInputError(
                f"cube sizes: expected numbers above 0, found {self.full_bytes!r} and "
                f"{self.target_bytes!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(Verb[Optimized]):
    """Cluster the new files, together with cubes that are not full.

    Args:
        full: cluster all files: after a change of clustering columns, or to merge many small cubes.
        curve: through the clustering columns.
        options: of the run.
        limits: of sorting.
        sizes: of the cubes.
        left: bins that an earlier commit of the same operation left; None selects files.
    """

    full: bool = False
    curve: Curve = "hilbert"
    options: RunOptions = field(default_factory=RunOptions)
    limits: SortLimits = field(default_factory=SortLimits)
    sizes: CubeSizes = field(default_factory=CubeSizes)
    left: Sequence[Bin] | None = None
    name: ClassVar[str] = "OPTIMIZE"
    doing: ClassVar[str] = "rewriting files"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select the files, and have the engine rewrite them.

        Raises:
            InvalidInputError: the table has no clustering columns.
            StorageError: sorting needs more temporary files than `limits` allows.

        Cost: as of `ZOrder`, of the files that are rewritten.
        """
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "cluster")
        columns = clustered_by(snapshot)
        if not columns:
            raise InvalidInputError(
                f"cannot cluster {snapshot.store.root}: it has no clustering columns; "
                "alter.set_clustering_columns sets them"
            )
        if self.curve not in {"hilbert", "zorder"}:
            raise InvalidInputError(f"curve: expected 'hilbert' or 'zorder', found {self.curve!r}")
        paths = sortable_paths(snapshot.configuration.schema, columns, (), "cluster")
        num_considered = 0
        if self.left is None:
            files, full_bytes = considered_files(snapshot, None), self.sizes.full_bytes
            num_considered = files.num_rows
            chosen = with_cubes(files) if self.full else files_to_cluster(files, paths, full_bytes)
            bins = pack(chosen, max(full_bytes, self.sizes.target_bytes))
        else:
            bins = still_live(snapshot, self.left)
        order = Order(paths=paths, curve=self.curve, limits=self.limits)

        def rewrite(rows: BinReader, one: Bin) -> Rewritten:
            found = order.rewrite(rows, one)
            return replace(found, written=tagged(found.written, cube_tags(paths), PROVIDER))

        names = [quoted(path) for path in paths]
        record(transaction, None, cluster_by=names, isFull=self.full)
        job = BinRewrite(transaction=transaction, bins=bins, rewrite=rewrite, options=self.options)
        return stage_rewrite(
            job, engine, strategy=STRATEGY, num_considered=num_considered, preserves_order=False
        )
