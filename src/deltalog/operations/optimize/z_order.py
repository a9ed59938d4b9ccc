"""Z-order: sort rows so that similar values of several columns are in the same files.

Protocol: none; Delta Spark's OPTIMIZE … ZORDER BY
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from deltalog.errors import InvalidInputError
from deltalog.log.context import MaintenanceOperation
from deltalog.operations.changes.bins import Bin, BinRewrite, RunOptions
from deltalog.operations.changes.external_sort import SortLimits
from deltalog.operations.operation import Operation
from deltalog.operations.optimize.cluster import Order, clustered_by, quoted, sortable_paths
from deltalog.operations.optimize.rewrite import (
    Optimized,
    by_partition,
    considered_files,
    partition_condition,
    record,
    stage_rewrite,
    still_live,
)
from deltalog.transaction.maintenance.checksum import check_maintenance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.operations.engine import Engine
    from deltalog.schema.columns import Path
    from deltalog.transaction import PendingTransaction

STRATEGY: Final = "zOrder"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOrder(Operation[Optimized]):
    """Sort the rows of each partition along the Z-curve through some columns.

    Predicates on any of the columns then skip most files. Every file of the partitions is
    rewritten, each time. NULL comes first.

    Args:
        columns: names or paths; a path of parts reaches into structs.
        filters: filters of partitions, in any form that callers use; None means every partition.
        options: options of the run.
        limits: limits of sorting.
        left: bins that an earlier commit of the same operation left; None selects files.
    """

    columns: Sequence[str | Path]
    filters: Any = None
    options: RunOptions = field(default_factory=RunOptions)
    limits: SortLimits = field(default_factory=SortLimits)
    left: Sequence[Bin] | None = None
    name: ClassVar[str] = "OPTIMIZE"
    doing: ClassVar[str] = "rewriting files"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select the files, and have the engine rewrite them.

        Raises:
            InvalidInputError: a column has no sort order, the table is clustered, or a filter uses
                a column that is not a partition column.
            StorageError: sorting needs more temporary files than `limits` allows.

        Cost: two passes over the files, the first over these columns only. Rows beyond the memory
        limit are spilled to temporary files.
        """
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "z-order")
        configuration = snapshot.configuration
        if clustered_by(snapshot):
            raise InvalidInputError(
                f"cannot z-order {snapshot.store.root}: it has clustering columns, which set how "
                "rows are arranged; optimize.cluster() does it"
            )
        predicate = partition_condition(transaction, self.filters)
        paths = sortable_paths(
            configuration.schema, self.columns, configuration.partition_columns, "z-order"
        )
        num_considered = 0
        if self.left is None:
            files = considered_files(snapshot, predicate)
            num_considered = files.num_rows
            bins = by_partition(files)
        else:
            bins = still_live(snapshot, self.left)
        record(transaction, predicate, z_order_by=[quoted(path) for path in paths])
        order = Order(paths=paths, curve="zorder", limits=self.limits)
        job = BinRewrite(
            transaction=transaction, bins=bins, rewrite=order.rewrite, options=self.options
        )
        return stage_rewrite(
            job, engine, strategy=STRATEGY, num_considered=num_considered, preserves_order=False
        )
