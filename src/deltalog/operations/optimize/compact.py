"""Compact: merge small files, and rewrite files with many deleted rows or dropped columns.

A purge selects files with deletion vectors, and files with columns that the table no longer has.

Protocol: Add File and Remove File, Deletion Vectors, Column Mapping
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
from deltalog.operations.changes.bins import Bin, BinRewrite, RunOptions, copy_bin, copy_with_groups
from deltalog.operations.clone import hidden_columns, with_other_row_ids
from deltalog.operations.operation import Operation
from deltalog.operations.optimize.cluster import (
    Cluster,
    clustered_by,
    cubes_of,
    tagged,
    unclustered,
    with_cubes,
)
from deltalog.operations.optimize.rewrite import (
    DEFAULT_MAX_DELETED_SHARE,
    Optimized,
    RewriteOperation,
    considered_files,
    crowded,
    pack,
    partition_condition,
    record,
    small,
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


_STRATEGY: Final = "preserveLocality"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact(RewriteOperation):
    """Merge small files, and rewrite files with many deleted rows.

    A table with clustering columns is clustered instead. Otherwise the order of rows within a
    partition and the row ids do not change. A file of the target size is not rewritten unless its
    share of deleted rows is above `max_deleted_share`.

    Args:
        filters: partition filters in any accepted form; None means all partitions.
        options: options of the run, including the target file size.
        max_deleted_share: the share of deleted rows above which a file of any size is rewritten.
    """

    filters: Any = None
    max_deleted_share: float = DEFAULT_MAX_DELETED_SHARE
    strategy: ClassVar[str] = _STRATEGY

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select files and let the engine rewrite them.

        Raises:
            InvalidInputError: a filter uses a column that is not a partition column.

        Cost: reads the file list from the log; then reads and writes each selected file once.
        """
        snapshot = transaction.read_snapshot
        check_maintenance(snapshot, MaintenanceOperation.DATA_REORGANIZATION, "optimize")
        predicate = partition_condition(transaction, self.filters)
        if clustered_by(snapshot):
            # As in Delta Spark, cluster the files. Mere compaction would destroy the clustering.
            if predicate is not None:
                raise InvalidInputError(
                    f"cannot optimize a part of {snapshot.store.root}: a clustered table has no "
                    "partitions; omit the filter"
                )
            cluster = Cluster(options=self.options, left=self.left)
            return cluster.stage(transaction, engine)
        if not 0 <= self.max_deleted_share <= 1:
            raise InvalidInputError(
                "max_deleted_share: expected a number from 0 to 1, found "
                f"{self.max_deleted_share!r}"
            )

        def select(files: pa.Table) -> list[Bin]:
            target = self.options.files.spec_for(transaction).target_file_size_bytes
            return compaction_bins(files, target, self.max_deleted_share)

        record(transaction, predicate)
        return self._stage_bins(transaction, engine, select, copy_bin, predicate)


def compaction_bins(files: pa.Table, target_size_bytes: int, max_deleted_share: float) -> list[Bin]:
    """Select the files that a compaction rewrites from `considered_files`, and pack them."""
    is_crowded = crowded(files, max_deleted_share)
    chosen = compute.or_(small(files, target_size_bytes), is_crowded)
    bins = pack(files.filter(chosen), target_size_bytes)
    return [
        one
        for one in bins
        # A bin of a single file is rewritten only if the file has many deleted rows.
        if one.files.num_rows > 1 or compute.any(crowded(one.files, max_deleted_share)).as_py()
    ]


# --- Auto-compaction: merge small files after a commit, in partitions with many small files


_NO_SHARE: Final = 1.0  # no share is above this limit, so deleted rows never cause a rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionThresholds:
    """The thresholds of auto-compaction; the defaults are Delta Spark's.

    Args:
        min_files: the minimum number of small files in a partition that is compacted.
        max_file_bytes: the size of the new files in bytes, unless the table's target size is less.
            A file is small if its size is less than half of this size.
    """

    min_files: int = 50
    max_file_bytes: int = 128 * 1024 * 1024


def is_auto_compaction_due(snapshot: Snapshot, when: CompactionThresholds | None = None) -> bool:
    """Return whether a table has at least `min_files` small files, in all partitions together.

    Cost: reads the sizes of the live files from the log.
    """
    when = when or CompactionThresholds()
    if snapshot.num_files < when.min_files:
        return False
    limit = _small_bytes(snapshot, when)
    below = compute.sum(compute.less(snapshot.files(["size"]).column("size"), limit)).as_py()
    return (below or 0) >= when.min_files


def count_mergeable(snapshot: Snapshot) -> tuple[int, int]:
    """Return how many small files `compact` would merge, and into how many files.

    In a clustered table, only the files that are in no ZCube count.

    Cost: reads the files of the version from the log.
    """
    limit = _small_bytes(snapshot, CompactionThresholds())
    found = considered_files(snapshot, None)
    files = found.filter(small(found, limit))
    if snapshot.configuration.supports("clustering"):
        files = unclustered(files)
    bins = compaction_bins(files, limit * 2, _NO_SHARE)
    return sum(one.files.num_rows for one in bins), len(bins)


@dataclass(frozen=True, slots=True)
class AutoCompact(Operation[Optimized]):
    """Merge the small files of partitions with many small files.

    In a clustered table, only the files that are in no ZCube are merged. They are not clustered,
    because this would take too long after a commit.

    Args:
        when: the thresholds, and the size of new files.
        options: options of the run.
    """

    when: CompactionThresholds = field(default_factory=CompactionThresholds)
    options: RunOptions = field(default_factory=RunOptions)
    name: ClassVar[str] = "OPTIMIZE"
    skips_empty: ClassVar[bool] = True

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Optimized:
        """Select files and let the engine rewrite them."""
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
        return stage_rewrite(job, engine, strategy=_STRATEGY, num_considered=found.num_rows)


def _small_bytes(snapshot: Snapshot, when: CompactionThresholds) -> int:
    target = snapshot.configuration.properties.target_file_size_bytes
    return max(1, min(target or when.max_file_bytes, when.max_file_bytes) // 2)


# --- Purge

_PURGE: Final = "purge"


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
    strategy: ClassVar[str] = _PURGE

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
        # A file from a concurrent commit may also have such row ids, so that commit must conflict.
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
        return stage_rewrite(job, engine, strategy=_PURGE, num_considered=files.num_rows)
