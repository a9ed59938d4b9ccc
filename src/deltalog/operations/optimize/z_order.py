"""Z-order: sort rows so that similar values of several columns are in the same files.

Protocol: none; Delta Spark's OPTIMIZE … ZORDER BY
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from deltalog.errors import InvalidInputError
from deltalog.log.context import MaintenanceOperation
from deltalog.operations.changes.external_sort import SortLimits
from deltalog.operations.optimize.cluster import Order, clustered_by, quoted, sortable_paths
from deltalog.operations.optimize.rewrite import (
    Optimized,
    RewriteOperation,
    by_partition,
    partition_condition,
    record,
)
from deltalog.transaction.maintenance.checksum import check_maintenance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.operations.engine import Engine
    from deltalog.schema.columns import Path
    from deltalog.transaction import PendingTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOrder(RewriteOperation):
    """Sort the rows of each partition along the Z-curve through some columns.

    Predicates on any of these columns then skip most files. Each run rewrites all files of the
    partitions. NULL is sorted before other values.

    Args:
        columns: names of columns, or paths of struct fields.
        filters: partition filters in any accepted form; None means all partitions.
        options: options of the run.
        limits: limits of sorting.
    """

    columns: Sequence[str | Path]
    filters: Any = None
    limits: SortLimits = field(default_factory=SortLimits)
    strategy: ClassVar[str] = "zOrder"
    preserves_order: ClassVar[bool] = False

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select files and let the engine rewrite them.

        Raises:
            InvalidInputError: the values of a column have no order, the table is clustered, or a
                filter uses a column that is not a partition column.
            StorageError: the temporary files of sorting exceed the limit in `limits`.

        Cost: reads each file twice, first only the columns to sort by. Rows beyond the memory limit
        are spilled to temporary files.
        """
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "z-order")
        configuration = snapshot.configuration
        if clustered_by(snapshot):
            raise InvalidInputError(
                f"cannot z-order {snapshot.store.root}: its clustering columns define the order of "
                "rows; use optimize.cluster() instead"
            )
        predicate = partition_condition(transaction, self.filters)
        paths = sortable_paths(
            configuration.schema, self.columns, configuration.partition_columns, "z-order"
        )
        record(transaction, predicate, z_order_by=[quoted(path) for path in paths])
        order = Order(paths=paths, curve="zorder", limits=self.limits)
        return self._stage_bins(transaction, engine, by_partition, order.rewrite, predicate)
