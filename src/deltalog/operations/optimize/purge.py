"""Purge: rewrite files that still contain deleted rows or dropped columns.

A purge selects files with deletion vectors, and files with columns that the table no longer has.

Protocol: Deletion Vectors, Column Mapping
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from deltalog._util.kernels import compute, pc
from deltalog._util.paths import decode_path
from deltalog.data.write.encode import physical_arrow_schema
from deltalog.errors import InvalidInputError
from deltalog.expressions import to_sql
from deltalog.log.context import MaintenanceOperation
from deltalog.operations.alter.columns import change_properties
from deltalog.operations.alter.iceberg import check_counts, missing_properties
from deltalog.operations.changes import kept_groups
from deltalog.operations.changes.bins import BinRewrite, RunOptions, copy_with_groups
from deltalog.operations.clone import hidden_columns, with_other_row_ids
from deltalog.operations.operation import Operation
from deltalog.operations.optimize.cluster import cubes_of, tagged, with_cubes
from deltalog.operations.optimize.rewrite import (
    Optimized,
    RewriteOperation,
    considered_files,
    pack,
    partition_condition,
    stage_rewrite,
)
from deltalog.protocol.column_mapping import Mode
from deltalog.storage.parquet.parts import walk_leaves
from deltalog.storage.parquet.reader import open_parquet
from deltalog.storage.pool import map_in_pool
from deltalog.transaction.maintenance.checksum import check_maintenance

if TYPE_CHECKING:
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.changes.bins import Bin, BinReader, Rewritten
    from deltalog.operations.engine import Engine
    from deltalog.transaction import PendingTransaction

_STRATEGY: Final = "purge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge(RewriteOperation):
    """Rewrite files with deleted rows or dropped columns; `vacuum` then deletes the old files.

    Args:
        filters: partition filters in any accepted form; None means all partitions.
        options: options of the run.
        dropped_columns: whether to also purge dropped columns. Only files of tables with column
            mapping can contain them.
    """

    filters: Any = None
    dropped_columns: bool = True
    name: ClassVar[str] = "REORG"
    strategy: ClassVar[str] = _STRATEGY

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select files and let the engine rewrite them.

        Raises:
            InvalidInputError: a filter uses a column that is not a partition column.

        Cost: reads and writes each selected file once; with column mapping, also reads the footer
        of every file.
        """
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "reorganize")
        predicate = partition_condition(transaction, self.filters)

        def select(files: pa.Table) -> list[Bin]:
            vectors = files.column("deletionVector")
            chosen = compute.is_valid(pc.struct_field(vectors, "cardinality"))
            if self.dropped_columns and snapshot.configuration.column_mapping_mode is not Mode.NONE:
                chosen = compute.or_(chosen, _with_dropped_columns(snapshot, files, chosen))
            target = self.options.files.spec_for(transaction).target_file_size_bytes
            return pack_alike(snapshot, files.filter(chosen), target)

        transaction.parameters.update(
            predicate=[] if predicate is None else [to_sql(predicate)], applyPurge=True
        )
        return self._stage_bins(transaction, engine, select, copy_alike, predicate)


def pack_alike(snapshot: Snapshot, files: pa.Table, target_size_bytes: int) -> list[Bin]:
    """Pack only files of the same ZCube into a bin, so that the new files remain clustered."""
    if not snapshot.configuration.supports("clustering"):
        return pack(files, target_size_bytes)
    found = with_cubes(files)
    bins: list[Bin] = []
    cubes: list[Any] = cubes_of(found).to_pylist()
    start = 0
    for _, run in groupby(cubes):
        length = len(list(run))
        bins += pack(found.slice(start, length), target_size_bytes)
        start += length
    return bins


def copy_alike(rows: BinReader, one: Bin) -> Rewritten:
    """Copy the rows of a bin that `pack_alike` has returned, in order, to files of its ZCube."""
    found = copy_with_groups(rows, one, least_bytes=kept_groups.LEAST_BYTES)
    tags = one.files.column("tags")[0].as_py()
    provider = one.files.column("clusteringProvider")[0].as_py()
    if "cube" not in one.files.column_names or cubes_of(one.files)[0].as_py() is None:
        return found
    return replace(found, written=tagged(found.written, dict(tags), provider))


def _with_dropped_columns(snapshot: Snapshot, files: pa.Table, known: Any) -> Any:
    """Return for each file whether it is selected by `known` or contains dropped columns.

    Files that `known` selects are not opened.
    """
    configuration = snapshot.configuration
    leaves = set(walk_leaves(physical_arrow_schema(configuration)))
    leaves |= {(name,) for name in configuration.physical_partition_columns}
    hidden = (configuration.row_id_column, configuration.row_commit_version_column)
    leaves |= {(name,) for name in hidden if name is not None}

    def look(file: tuple[str, int, bool]) -> bool:
        path, size, is_chosen = file
        if is_chosen:
            return True
        reader = open_parquet(snapshot.store, decode_path(path), size_bytes=size, footer_only=True)
        try:
            return not leaves.issuperset(reader.leaves)
        finally:
            reader.close()

    rows: list[Any] = list(
        zip(
            files.column("path").to_pylist(),
            files.column("size").to_pylist(),
            known.to_pylist(),
            strict=True,
        )
    )
    return pa.array(map_in_pool(look, rows), pa.bool_())


# --- Upgrade to icebergCompatV3


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeUniform(Operation[Optimized]):
    """Enable an icebergCompat version with row ids, and rewrite the files that need it.

    These are the files in which Iceberg readers would find no row ids or wrong ones.

    Args:
        version: the icebergCompat version; it must need row tracking.
        options: options of the run. There is only one commit, so its commit interval is ignored.
    """

    version: int
    options: RunOptions = field(default_factory=RunOptions)
    name: ClassVar[str] = "REORG"
    doing: ClassVar[str] = "rewriting files"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Set the properties, and let the engine rewrite files; row ids do not change.

        Raises:
            InvalidInputError: the table does not allow the version, row tracking is not enabled, or
                a file has no `numRecords`.

        Cost: reads the footer of every file; reads and writes each selected file once.
        """
        snapshot = transaction.read_snapshot
        configuration = snapshot.configuration
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "reorganize")
        if not configuration.row_ids_enabled:
            raise InvalidInputError(
                f"cannot enable icebergCompatV{self.version} of {snapshot.store.root}: row "
                "tracking is not enabled; set delta.enableRowTracking = true first"
            )
        check_counts(snapshot, self.version)
        files = considered_files(snapshot, None)
        others = with_other_row_ids(snapshot.store, files, hidden_columns(configuration))
        # Conflict with every concurrent commit, because a file that it adds may also have such row
        # ids.
        transaction.record_read(None)
        missing = missing_properties(configuration, self.version)
        change_properties(transaction, {**configuration.metadata.configuration, **missing})
        target = self.options.files.spec_for(transaction).target_file_size_bytes
        transaction.parameters.update(predicate=[], icebergCompatVersion=self.version)
        job = BinRewrite(
            transaction=transaction,
            bins=pack_alike(snapshot, files.filter(others), target),
            rewrite=copy_alike,
            options=replace(self.options, min_commit_interval_s=None),
        )
        return stage_rewrite(job, engine, strategy=_STRATEGY, num_considered=files.num_rows)
