"""`table.optimize`: compaction, z-ordering, clustering and purging of files.

Methods that deltalake also has have the same names and semantics.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

from deltalog._util import cards
from deltalog._util.argument_types import checks_types
from deltalog._util.cards import Progress, ProgressCount, shown
from deltalog._util.similar_names import SimilarNames, suggests_arguments
from deltalog.data.scan.rows import require_library
from deltalog.data.write.source import open_batches
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.log.branches import sweep_branches
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


_MEANT: Final = {
    **dict.fromkeys(
        ("zorder", "executeZOrderBy", "z_order_by", "zorder_by", "zorderBy"), "z_order(columns)"
    ),
    "where": "compact(partition_filters=…)",
    **dict.fromkeys(("run", "execute", "executeCompaction", "bin_pack"), "compact()"),
    "vacuum": "vacuum() of the table",
    **dict.fromkeys(("set_key_index", "set_key"), "alter.set_key_index(columns) of the table"),
    "checkpoint": "create_checkpoint() of the table",
}
"""Methods of other libraries."""


@checks_types
@suggests_arguments
class TableOptimizer(SimilarNames):
    """Rewrites files without changing rows: the type of `DeltaTable.optimize`.

    Row ids do not change, and the change data feed contains no rows for such commits. If there is
    nothing to do, no commit is made. Every method returns a dictionary with deltalake's keys:
    `numFilesAdded`, `numFilesRemoved`,
    `filesAdded` and `filesRemoved` (`avg`, `max`, `min`, `totalFiles`, `totalSize`),
    `partitionsOptimized`, `numBatches`, `totalConsideredFiles`, `totalFilesSkipped`, …, and also
    `numDeletionVectorsRemoved` and `numDeletedRowsPurged`.

    These arguments occur in several methods; `DeltaTable` explains others:

    - `partition_filters`: a condition that selects partitions: deltalake's tuples, an SQL string or
      an expression.
    - `target_size`: size of new files in bytes. None means `delta.targetFileSize`, or 128 MiB
      without the property.
    - `max_concurrent_tasks`: the number of groups of files to rewrite, or partitions to sort, at a
      time; None means one per core, at most 8.
    - `max_spill_size`: maximum size of rows in memory, in bytes; further rows are written to
      temporary files. None means 512 MiB.
    - `max_temp_directory_size`: maximum size of temporary files, in bytes; None means no limit.
    - `min_commit_interval`: seconds or a timedelta. After this time, the finished part is
      committed, and the operation continues with another commit. 0 means one commit for each
      partition.
    """

    _meant = _MEANT

    if not TYPE_CHECKING:  # type checkers know that this is no method

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Raise an error that names the methods."""
            raise InvalidInputError(
                "optimize is not a method: call optimize.compact(), optimize.z_order(columns), "
                "optimize.cluster() or optimize.purge()"
            )

    def __init__(self, table: LatestTable) -> None:
        self._table = table

    def __repr__(self) -> str:
        """Show the table and the methods."""
        return f"{self._table!r}.optimize: {cards.names_of_methods(TableOptimizer)}"

    def _repr_html_(self) -> str:
        """Return the notebook card: what each method does."""
        return cards.methods_of(f"{self._table!r}.optimize", TableOptimizer)

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
        """Combine small files into larger files, without deleted rows.

        The order of rows within a partition does not change. A repeated call changes nothing. For a
        table with clustering columns, this is the same as `cluster()`.

        Args:
            max_spill_size: ignored; accepted for compatibility with deltalake.
            max_temp_directory_size: ignored; accepted for compatibility with deltalake.

        Raises:
            InvalidInputError: a filter names a column that is not a partition column.
            CommitConflictError: other writers repeatedly changed the same files.

        Cost: reads and writes each selected file once.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://compact", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://compact")
            >>> write_deltalake(table, [{"id": 3, "n": 9}], mode="append")
            >>> done = table.optimize.compact()
            >>> done["numFilesRemoved"], done["numFilesAdded"]
            (2, 1)
        """
        options = self._options(
            target_size, max_concurrent_tasks, min_commit_interval, writer_properties
        )
        _limits(max_spill_size, max_temp_directory_size)  # raises an error for invalid values
        operation = Compact(filters=partition_filters, options=options)
        return self._run(operation, commit_properties, post_commithook_properties, progress)

    def z_order(  # noqa: PLR0913, PLR0917  # deltalake's signature
        self,
        columns: str | Iterable[ColumnPath],
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

        Every call rewrites all files of the selected partitions. NULL is ordered first.

        Args:
            columns: names or paths of at least one column; a dotted name is a field of a struct.

        Raises:
            InvalidInputError: a column is a partition column or has a type without an order; or the
                table has clustering columns; or a filter names a column that is not a partition
                column.
            StorageError: the temporary files would exceed their limit.
            CommitConflictError: other writers repeatedly changed the same files.

        Cost: two passes over the files; the first pass reads only the columns of the order.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://zorder", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://zorder")
            >>> write_deltalake(table, [{"id": 3, "n": 9}], mode="append")
            >>> done = table.optimize.z_order(["id", "n"])
            >>> done["numFilesRemoved"], done["numFilesAdded"]
            (2, 1)
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

    def cluster(  # noqa: PLR0913  # callers need each parameter
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

        Sorted files form groups (ZCubes). A call rewrites the files that were added since the last
        call, together with ZCubes that are still small. Delta Spark and deltalog can both cluster
        the same table.

        Args:
            full: whether to rewrite all files, for example after a change of clustering columns.
            curve: the space-filling curve, `hilbert` or `zorder`.
            full_cube_size: ZCubes of at least this size in bytes are not rewritten; None means
                100 GiB.
            target_cube_size: size of new ZCubes in bytes; None means 150 GiB.

        Raises:
            InvalidInputError: the table has no clustering columns.
            StorageError, CommitConflictError: see `z_order`.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://cluster", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://cluster")
            >>> table.alter.set_clustering_columns(["id"])
            >>> table.optimize.cluster()["numFilesAdded"]
            1
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
        """Rewrite the files that contain deleted rows or dropped columns, without these data.

        Run `vacuum` afterwards to delete the old files. In Spark SQL, this is
        `REORG TABLE … APPLY (PURGE)`.

        Args:
            dropped_columns: whether to also purge dropped columns. Only files of tables with column
                mapping can contain them; then the footer of every file is read.

        Raises:
            InvalidInputError, CommitConflictError: see `compact`.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://purge", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://purge")
            >>> _ = table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
            >>> _ = table.delete("id = 1")
            >>> table.optimize.purge()["numDeletedRowsPurged"]
            1
        """
        options = self._options(
            target_size, max_concurrent_tasks, min_commit_interval, writer_properties
        )

        operation = Purge(
            filters=partition_filters, options=options, dropped_columns=dropped_columns
        )
        return self._run(operation, commit_properties, post_commithook_properties, progress)

    def key_index(self, *, progress: Progress | None = None) -> dict[str, int]:
        """Index the keys of all files without an entry in the key index, and merge small parts.

        This makes no commit. See `alter.set_key_index`.

        Returns:
            `numFilesIndexed`, `numFilesAdded`, `numRowsAdded`, `numPacks`, `numPacksAdded`,
            `numPacksRemoved` and `numBytesAdded`.

        Raises:
            InvalidInputError: the table has no key, or NumPy is not installed.

        Cost: reads the key columns of these files, in tasks if the table has an engine; memory for
            16 million rows, about 600 MB.
        """
        require_library("numpy", extra="pandas")
        from deltalog.operations.key_index import build_key_index

        self._table.update_incremental()
        with shown(progress, "indexing keys") as tell:
            report = build_key_index(
                self._table.snapshot, self._table.engine, progress=ProgressCount(tell)
            )
        return as_facts(report.result(), "key index")

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

        This sets the missing properties and rewrites incompatible files. Versions 1 and 2 rewrite
        files with deletion vectors, in a commit before the properties are set. Version 3 rewrites
        files whose row ids Iceberg would not find, in the commit that sets the properties;
        `min_commit_interval` does not split this commit. If an error occurs before the last commit,
        the table is still valid, and the call can be repeated.

        Args:
            iceberg_compat_version: version of the Iceberg compatibility feature: 1, 2 or 3.
            dry_run: whether to only report the necessary changes.

        Raises:
            InvalidInputError: the table does not allow this version; nothing was changed.
            CommitConflictError: see `compact`.
        """
        plan = plan_upgrade(self._table.snapshot, iceberg_compat_version)
        if dry_run:
            return plan
        metrics = Optimized(strategy="none").result()
        options = CommitOptions(properties=commit_properties, hooks=post_commithook_properties)
        # Only the last commit records application transactions, because it completes the call.
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
        """Run an operation, in one or more commits, until all groups of files are rewritten."""
        options = CommitOptions(properties=commit_properties, hooks=hooks)
        total: Optimized | None = None
        while total is None or total.left:
            if total is not None:
                operation = replace(operation, left=total.left)
            found = self._table.execute(operation, options, progress=progress).value
            if found is None:  # the application transaction is already recorded
                break
            total = found if total is None else total.and_then(found)
            # The first commit has recorded the application transactions. Later commits must not
            # contain them, or they would be skipped.
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


# --- Vacuum


class TableVacuum:
    """Plans and runs the vacuum of a table; see `DeltaTable.vacuum` for the arguments.

    Args:
        table: the table to vacuum.
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
                "cannot vacuum with both full and inventory, because the inventory replaces the "
                "listing: give one of them"
            )
        # Newer versions may need other files than this object's version.
        self._table.update_incremental()
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
        """Delete the planned files, except files that the newest version needs; return the paths.

        The start and the end of the vacuum are committed to the history.
        """
        store, clock = self._table.snapshot.store, self._table.snapshot.context.clock
        sweep_branches(store, now_ms=clock.now_ms(), cutoff_ms=plan.cutoff_ms)
        if not plan.files.num_rows:
            remember_lite(store, plan)
            return []
        self._table.execute(VacuumStart(plan), options)
        plan = confirm_vacuum(plan, self._table.snapshot)
        try:
            with shown(progress, "deleting files") as tell:
                deleted = delete_planned(store, plan, self._table.engine, progress=tell)
        except BaseException:
            with suppress(DeltaError):  # the original error is more important
                self._table.execute(VacuumEnd(num_deleted=None), options)
            raise
        self._table.execute(VacuumEnd(num_deleted=deleted), options)
        remember_lite(store, plan)
        return plan.paths
