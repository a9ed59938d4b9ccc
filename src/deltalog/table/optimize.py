"""`table.optimize`: compaction, z-ordering, clustering and purging of files.

Names and semantics are deltalake's where it has the method.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from deltalog._util.cards import Progress, shown
from deltalog.data.write.source import open_batches
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.operations.alter import SetTableProperties
from deltalog.operations.alter.iceberg import UniformUpgrade, plan_upgrade
from deltalog.operations.arguments import check_number
from deltalog.operations.changes.bins import RunOptions
from deltalog.operations.changes.external_sort import DEFAULT_MEMORY_BYTES, SortLimits
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.optimize import (
    Cluster,
    Compact,
    CubeSizes,
    Optimized,
    Purge,
    UpgradeUniform,
    ZOrder,
)
from deltalog.operations.vacuum import (
    VacuumEnd,
    VacuumStart,
    confirm_vacuum,
    delete_planned,
    plan_vacuum,
    remember_lite,
)
from deltalog.table.inspect.display import as_facts
from deltalog.transaction.properties import USUAL, CommitOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deltalog.data.write.options import WriterProperties
    from deltalog.operations.optimize.cluster import Curve
    from deltalog.operations.vacuum import VacuumPlan
    from deltalog.table.creating import LatestTable
    from deltalog.transaction import CommitProperties, PostCommitHookProperties

    ColumnPath = str | tuple[str, ...]


class TableOptimizer:
    """Rewrites files without changing rows; an attribute of tables, `DeltaTable.optimize`.

    Rows keep their ids, and the change data feed shows nothing. A call without work to do makes no
    version. Every method returns deltalake's counts: `numFilesAdded`, `numFilesRemoved`,
    `filesAdded` and `filesRemoved` (`avg`, `max`, `min`, `totalFiles`, `totalSize`),
    `partitionsOptimized`, `numBatches`, `totalConsideredFiles`, `totalFilesSkipped`, …, and also
    `numDeletionVectorsRemoved` and `numDeletedRowsPurged`.

    These arguments occur in several methods; `DeltaTable` explains others:

    - `partition_filters`: only these partitions: deltalake's tuples, SQL or an expression.
    - `target_size`: bytes of the new files; None means `delta.targetFileSize`, or else 128 MiB.
    - `max_concurrent_tasks`: how many groups of files to rewrite, or partitions to sort, at a
      time; None means one per core, at most 8.
    - `max_spill_size`: bytes of rows in memory; more goes to temporary files. None means 512 MiB.
    - `max_temp_directory_size`: bytes of temporary files; None means no limit.
    - `min_commit_interval`: seconds or a timedelta; after this time the finished part is committed,
      and the rest follows in further commits. 0 means one commit per partition.
    """

    def __init__(self, table: LatestTable) -> None:
        self._table = table

    def __repr__(self) -> str:
        """Show the table."""
        return f"{self._table!r}.optimize"

    def compact(  # noqa: PLR0917  # deltalake's signature
        self,
        partition_filters: Any = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Rewrite small files as larger ones, without their deleted rows.

        Rows keep their order within a partition. A second call has nothing to do. A table
        with clustering columns is clustered, as with `cluster()`.

        Args:
            max_spill_size: accepted as in deltalake; nothing is sorted here.
            max_temp_directory_size: accepted likewise.

        Raises:
            InvalidInputError: a filter names a column that is not a partition column.
            CommitConflictError: other writers kept changing the same files.

        Cost: each chosen file is read and written once.
        """
        options = self._options(
            target_size, max_concurrent_tasks, min_commit_interval, writer_properties
        )
        _limits(max_spill_size, max_temp_directory_size)  # checked only
        operation = Compact(filters=partition_filters, options=options)
        return self._run(operation, commit_properties, post_commithook_properties, progress)

    def z_order(  # noqa: PLR0913, PLR0917  # deltalake's signature
        self,
        columns: Iterable[ColumnPath],
        partition_filters: Any = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Sort rows by several columns at once, so that predicates on any of them skip most files.

        Every call rewrites all files of the partitions. NULL comes first.

        Args:
            columns: at least one name or path; a dotted name reaches into structs.

        Raises:
            InvalidInputError: a column partitions the table or has no order, the table is
                clustered, or a filter names a column that is not a partition column.
            StorageError: the temporary files would exceed their limit.
            CommitConflictError: other writers kept changing the same files.

        Cost: two passes over the files; the first reads only these columns.
        """
        wanted = [columns] if isinstance(columns, str) else list(columns)
        limits = _limits(max_spill_size, max_temp_directory_size)
        options = self._options(
            target_size, max_concurrent_tasks, min_commit_interval, writer_properties
        )

        operation = ZOrder(
            columns=wanted, filters=partition_filters, options=options, limits=limits
        )
        return self._run(operation, commit_properties, post_commithook_properties, progress)

    def cluster(  # noqa: PLR0913  # each is the caller's choice
        self,
        full: bool = False,  # noqa: FBT001, FBT002  # as `OPTIMIZE … FULL`
        *,
        curve: Curve = "hilbert",
        target_size: int | None = None,
        full_cube_size: int | None = None,
        target_cube_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Sort the rows of a clustered table by its clustering columns.

        Only files added since the last run are rewritten, together with groups of files
        (ZCUBEs) that are not full. Delta Spark can continue the work of deltalog, and vice
        versa.

        Args:
            full: rewrite all files: useful after the clustering columns were changed.
            curve: `hilbert`, or `zorder`.
            full_cube_size: size in bytes from which a group is not rewritten; None means 100 GiB.
            target_cube_size: bytes to sort at once; None means 150 GiB.

        Raises:
            InvalidInputError: the table has no clustering columns.
            StorageError, CommitConflictError: as for `z_order`.
        """
        limits = _limits(max_spill_size, max_temp_directory_size)
        usual = CubeSizes()
        sizes = CubeSizes(
            full_bytes=usual.full_bytes if full_cube_size is None else full_cube_size,
            target_bytes=usual.target_bytes if target_cube_size is None else target_cube_size,
        )
        options = self._options(
            target_size, max_concurrent_tasks, min_commit_interval, writer_properties
        )

        operation = Cluster(full=full, curve=curve, options=options, limits=limits, sizes=sizes)
        return self._run(operation, commit_properties, post_commithook_properties, progress)

    def purge(
        self,
        partition_filters: Any = None,
        *,
        dropped_columns: bool = True,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Rewrite only the files that contain deleted rows or dropped columns.

        `vacuum` then deletes the old files with the data (`REORG TABLE … APPLY (PURGE)`).

        Args:
            dropped_columns: whether to look for dropped columns, too. They exist only with column
                mapping; then every file's footer is read.

        Raises:
            InvalidInputError, CommitConflictError: as for `compact`.
        """
        options = self._options(
            target_size, max_concurrent_tasks, min_commit_interval, writer_properties
        )

        operation = Purge(
            filters=partition_filters, options=options, dropped_columns=dropped_columns
        )
        return self._run(operation, commit_properties, post_commithook_properties, progress)

    def upgrade_uniform(
        self,
        iceberg_compat_version: int = 2,
        *,
        dry_run: bool = False,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> UniformUpgrade:
        """Make a table readable by Iceberg (`REORG … APPLY (UPGRADE UNIFORM …)`).

        This sets the missing properties and rewrites incompatible files. For 1 and 2 those are the
        files with deletion vectors, rewritten in an earlier commit. For 3 they are the files whose
        row ids Iceberg would not find, rewritten in the commit that switches it on;
        `min_commit_interval` does not divide that commit. If this stops before the last commit, the
        earlier commits do no harm.

        Args:
            iceberg_compat_version: 1, 2 or 3.
            dry_run: whether to only report the necessary changes.

        Raises:
            InvalidInputError: the table cannot have that version; nothing was changed.
            CommitConflictError: as for `compact`.
        """
        plan = plan_upgrade(self._table.snapshot, iceberg_compat_version)
        if dry_run:
            return plan
        metrics = Optimized(strategy="none").result()
        options = CommitOptions(properties=commit_properties, hooks=post_commithook_properties)
        # Only the last commit records an application transaction: it counts as the whole call.
        early = _without_app_transactions(commit_properties)
        if plan.num_files_to_rewrite and plan.preparation:
            self._table.execute(
                SetTableProperties(plan.preparation),
                CommitOptions(properties=early, hooks=post_commithook_properties),
            )
        if plan.num_files_to_rewrite and plan.rewrites_with_properties:
            run = self._options(
                target_size, max_concurrent_tasks, min_commit_interval, writer_properties
            )
            operation = UpgradeUniform(version=iceberg_compat_version, options=run)
            found = self._table.execute(operation, options, progress=progress).value
            result = (found or Optimized(strategy="none")).result()
            return plan.done(as_facts(result, operation.name))
        if plan.num_files_to_rewrite:
            metrics = self.purge(
                dropped_columns=False,
                target_size=target_size,
                max_concurrent_tasks=max_concurrent_tasks,
                min_commit_interval=min_commit_interval,
                writer_properties=writer_properties,
                commit_properties=early,
                post_commithook_properties=post_commithook_properties,
                progress=progress,
            )
        if plan.properties:
            self._table.execute(SetTableProperties(plan.properties), options)
        return plan.done(metrics)

    def _run(
        self,
        operation: Cluster | Compact | Purge | ZOrder,
        commit_properties: CommitProperties | None,
        hooks: PostCommitHookProperties | None,
        progress: Progress | None,
    ) -> dict[str, Any]:
        """Run an operation in one or several commits, until no groups of files are left."""
        options = CommitOptions(properties=commit_properties, hooks=hooks)
        total: Optimized | None = None
        while total is None or total.left:
            if total is not None:
                operation = replace(operation, left=total.left)
            found = self._table.execute(operation, options, progress=progress).value
            if found is None:  # the table already contains the application transaction
                break
            total = found if total is None else total.and_then(found)
            # The first commit recorded the application transactions: with them, the later commits
            # would be skipped as repeated.
            options = replace(options, properties=_without_app_transactions(options.properties))
        return as_facts((total or Optimized(strategy="none")).result(), operation.name)

    def _options(
        self,
        target_size: int | None,
        max_concurrent_tasks: int | None,
        min_commit_interval: float | timedelta | None,
        writer_properties: WriterProperties | None,
    ) -> RunOptions:
        interval = min_commit_interval
        if isinstance(interval, timedelta):
            interval = interval.total_seconds()
        check_number("target_size", target_size, least=1)
        check_number("max_concurrent_tasks", max_concurrent_tasks, least=1)
        check_number("min_commit_interval", interval)
        return RunOptions(
            files=FileOptions(
                target_file_size_bytes=target_size,
                writer_properties=writer_properties,
            ),
            max_concurrent_tasks=max_concurrent_tasks,
            min_commit_interval_s=interval,
        )


def _without_app_transactions(properties: CommitProperties | None) -> CommitProperties | None:
    return None if properties is None else replace(properties, app_transactions=None)


def _limits(max_spill_size: int | None, max_temp_directory_size: int | None) -> SortLimits:
    for name, value in (
        ("max_spill_size", max_spill_size),
        ("max_temp_directory_size", max_temp_directory_size),
    ):
        check_number(name, value)
    return SortLimits(
        memory_bytes=DEFAULT_MEMORY_BYTES if max_spill_size is None else max(1, max_spill_size),
        disk_bytes=max_temp_directory_size,
    )


# Vacuum: plan, commit the start, check the plan again, delete files, commit the end.


class TableVacuum:
    """Vacuums of one table; `DeltaTable.vacuum` explains the arguments.

    Args:
        table: shows the latest version.
    """

    def __init__(self, table: LatestTable) -> None:
        self._table = table

    def plan(
        self,
        retention_hours: float | None = None,
        *,
        enforce_retention_duration: bool = True,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: object = None,
    ) -> VacuumPlan:
        """Return the files that a vacuum would delete, each with a reason."""
        if full and inventory is not None:
            raise InvalidInputError(
                "cannot vacuum with full and an inventory: the inventory replaces the listing; "
                "pass one of them"
            )
        self._table.update_incremental(
            same_table=True
        )  # newer versions may need files that an old version does not contain
        return plan_vacuum(
            self._table.snapshot,
            mode="full" if full else "lite" if inventory is None else "inventory",
            inventory=None if inventory is None else open_batches(inventory),
            retention_hours=retention_hours,
            enforce_retention_duration=enforce_retention_duration,
            keep_versions=() if keep_versions is None else keep_versions,
            engine=self._table.engine,
        )

    def execute(
        self,
        plan: VacuumPlan,
        options: CommitOptions = USUAL,
        *,
        progress: Progress | None = None,
    ) -> list[str]:
        """Delete the planned files that no newer version needs; return their paths."""
        store = self._table.snapshot.store
        if not plan.files.num_rows:
            remember_lite(store, plan)
            return []
        self._table.execute(VacuumStart(plan), options)
        plan = confirm_vacuum(plan, self._table.snapshot)
        try:
            with shown(progress, "deleting files") as tell:
                deleted = delete_planned(store, plan, self._table.engine, progress=tell)
        except BaseException:
            with suppress(DeltaError):  # raise the original error, not this one
                self._table.execute(VacuumEnd(num_deleted=None), options)
            raise
        self._table.execute(VacuumEnd(num_deleted=deleted), options)
        remember_lite(store, plan)
        return plan.paths
