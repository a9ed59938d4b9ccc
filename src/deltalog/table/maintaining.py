"""The methods of `DeltaTable` that change settings, maintain the table, and copy it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from deltalog._util.argument_types import checks_types
from deltalog._util.cards import Progress
from deltalog._util.readable import FILE, counted
from deltalog._util.similar_names import suggests_arguments
from deltalog.catalogs import table_uri as locations
from deltalog.errors import InvalidInputError
from deltalog.log.branches import check_main
from deltalog.log.history import naming_the_use
from deltalog.log.snapshot import checked_in_place
from deltalog.operations import arguments
from deltalog.storage.faults import naming_the_operation
from deltalog.table.changing import ChangeableTable, commit_options
from deltalog.table.inspect.display import ShownList, as_facts, with_card

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime
    from pathlib import PurePath

    import pyarrow as pa

    from deltalog.catalogs.protocol import NamedTable
    from deltalog.data.write.source import Rows
    from deltalog.iceberg import IcebergVersion
    from deltalog.operations.vacuum import VacuumPlan
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.table.alter import TableAlterer
    from deltalog.table.optimize import TableOptimizer
    from deltalog.transaction import (
        CommitProperties,
        PostCommitHookProperties,
    )

    Version = int | str | datetime | date


@checks_types
@suggests_arguments
class MaintainableTable(ChangeableTable):
    """A table with the methods of `DeltaTable` that change settings, maintain and copy it."""

    @property
    def alter(self) -> TableAlterer:
        """Changes of schema, properties, constraints and protocol."""
        from deltalog.table.alter import TableAlterer

        return TableAlterer(self)

    def set_domain_metadata(
        self,
        domain: str,
        configuration: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set a user-controlled metadata domain; the table needs the feature `domainMetadata`."""
        from deltalog.operations.alter import SetDomainMetadata

        operation = SetDomainMetadata(domain, configuration)
        self.do(operation, commit_properties, post_commithook_properties)

    def remove_domain_metadata(
        self,
        domain: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove a user-controlled metadata domain."""
        from deltalog.operations.alter import RemoveDomainMetadata

        self.do(RemoveDomainMetadata(domain), commit_properties, post_commithook_properties)

    @property
    def optimize(self) -> TableOptimizer:
        """Operations that rewrite files without changing rows: `compact`, `z_order`, and others."""
        from deltalog.table.optimize import TableOptimizer

        return TableOptimizer(self)

    def vacuum(
        self,
        retention_hours: float | None = None,
        dry_run: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        enforce_retention_duration: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: Rows | None = None,
        progress: Progress | None = None,
    ) -> list[str]:
        """Delete files that no version within the retention period needs; by default, list them.

        Vacuum never deletes live files, files that were removed within the retention period, their
        deletion vectors, or files younger than the retention period, which a concurrent writer may
        need. Afterwards, versions older than the retention period cannot be read.

        Args:
            retention_hours: retention period of removed files; None means
                `delta.deletedFileRetentionDuration`, by default one week.
            dry_run: whether to only list the files.
            enforce_retention_duration: whether to raise for a retention period shorter than the
                table's.
            full: whether to list all files below the root, to also find files of failed writes.
                Otherwise only files with a `remove` action in the log are found.
            keep_versions: versions that must remain readable, whatever their age.
            inventory: a table of all files that replaces the listing, of any type that
                `write_deltalake` accepts. Columns: `path`, `length`, `modificationTime`, `isDir`.

        Returns:
            The paths of the files, relative to the root. `vacuum_report()` returns the reasons.

        Raises:
            InvalidInputError: the retention period is too short, or this object was opened at an
                old version.
            DeltaProtocolError: the table has a feature that deltalog does not support.

        Protocol: Vacuum Protocol Check
        Cost: reads the commits since the last such vacuum; with `full`, lists the whole table.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://vacuum", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://vacuum")
            >>> _ = table.delete("id = 1")
            >>> table.vacuum()  # lists files that left the table more than a week ago
            []
            >>> _ = table.vacuum(dry_run=False)  # deletes them
        """
        from deltalog.table.optimize import TableVacuum

        plan = self._plan_vacuum(
            retention_hours,
            enforce_retention_duration=enforce_retention_duration,
            full=full,
            keep_versions=keep_versions,
            inventory=inventory,
        )
        if dry_run:
            title = f"VACUUM: {counted(len(plan.paths), FILE)} can be deleted"
            return ShownList(plan.paths, title=title)
        options = commit_options(commit_properties, post_commithook_properties)
        paths = TableVacuum(self).execute(plan, options, progress=progress)
        return ShownList(paths, title=f"VACUUM: {counted(len(paths), FILE)} deleted")

    def vacuum_report(
        self,
        retention_hours: float | None = None,
        *,
        enforce_retention_duration: bool = True,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: Rows | None = None,
    ) -> pa.Table:
        """Return the files that `vacuum` would delete with these arguments.

        Returns:
            One row for each file. Columns: `path`; `size_bytes` and `modification_time`, which may
            be NULL unless `full` is set; `reason`.
        """
        plan = self._plan_vacuum(
            retention_hours,
            enforce_retention_duration=enforce_retention_duration,
            full=full,
            keep_versions=keep_versions,
            inventory=inventory,
        )
        return with_card(plan.files)

    def _plan_vacuum(self, retention_hours: float | None, **options: Any) -> VacuumPlan:
        from deltalog.table.optimize import TableVacuum

        self._check_latest("vacuum")
        return TableVacuum(self).plan(retention_hours, **options)

    def restore(
        self,
        target: Version,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Restore an older version of the table, by committing a new version.

        Args:
            target: the version to restore.
            ignore_missing_files: whether to omit files that vacuum has deleted, instead of raising.
            protocol_downgrade_allowed: whether to remove table features that were added later.

        Returns:
            The number and size of restored and removed files.

        Raises:
            VersionNotFoundError: the version does not exist.
            DataFileMissingError: vacuum has deleted files of the version.

        Cost: reads the file lists of both versions, and makes one request for each restored file.
        The commit contains only the files that differ.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://restore", [{"id": 1}])
            >>> table = DeltaTable("memory://restore")
            >>> _ = table.delete()
            >>> _ = table.restore(0)
            >>> table.version(), table.count()
            (2, 1)
        """
        from deltalog.operations.restore import Restore

        self.update_incremental()
        bound = arguments.as_bound(target)  # raises an error if the target is None
        with naming_the_use("restore"):
            older = self._load(self._snapshot.context, target)
        operation = Restore(
            target=older,
            asked=bound if isinstance(bound, int) else target,
            ignore_missing_files=ignore_missing_files,
            protocol_downgrade_allowed=protocol_downgrade_allowed,
        )
        return self.do(operation, commit_properties, post_commithook_properties, progress)

    def repair(
        self,
        dry_run: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Remove files from the table that no longer exist in storage.

        Returns:
            A dictionary: `dry_run`; `files_removed`; `files_without_deletion_vector`: files whose
            deletion vector file is missing. They cannot be read, but are not removed.

        Cost: one listing of the table.
        """
        from deltalog.operations.restore import Repair

        self._check_latest("repair")
        if dry_run:
            self.update_incremental()
        found = self.do(
            Repair(), commit_properties, post_commithook_properties, progress, dry_run=dry_run
        )
        return found or as_facts({"dry_run": False, "files_removed": []}, Repair.name)

    def clone(
        self,
        target: str | PurePath | Store | NamedTable,
        *,
        shallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        storage_options: StorageOptions | None = None,
        filesystem: Any = None,
        allow_foreign_files: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Clone the version that this object shows to another location, and return the clone.

        The clone assigns its own row ids.

        Args:
            target: location of the clone.
            shallow: whether to reference this table's files instead of copying them. Vacuum of this
                table does not know the clone, and may delete files that the clone needs.
            replace: whether to replace an existing table at the target, by a new version in its
                history. A repeated clone copies only files that the target lacks.
            properties: table properties of the clone, in addition to those of this table.
            storage_options: storage options of the target.
            filesystem: file system of the target.
            allow_foreign_files: whether to also clone files outside of this table's directory. They
                exist if this table is a shallow clone. The log of an untrusted table could name any
                file that you can read.

        Raises:
            TableExistsError: a table already exists at the target, and `replace` is False.
            UnsafePathError: the log names files outside of the table's directory.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://clone", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://clone")
            >>> copy = table.clone("memory://clone_of_it")
            >>> _ = copy.delete("id = 1")
            >>> copy.count(), table.count()
            (1, 2)
        """
        from deltalog.table.creating import TablePlace, clone_table

        place = TablePlace.of(target, storage_options, filesystem)
        locations.check_elsewhere(target, place.context.store.root, self._snapshot.store.root)
        context = clone_table(
            self._snapshot,
            place,
            self.engine,
            is_shallow=shallow,
            allows_foreign_files=allow_foreign_files,
            replaces=replace,
            properties=properties,
            options=commit_options(commit_properties, post_commithook_properties),
            progress=progress,
        )
        return type(self).from_context(context, self._engine)

    def generate(
        self, mode: Literal["symlink_format_manifest"] = "symlink_format_manifest"
    ) -> None:
        """Write symlink manifests of the version that this object shows.

        The manifests list the live files, for engines that read Parquet but not Delta. Commits
        update the manifests only with the table property
        `delta.compatibility.symlinkFormatManifest.enabled`.

        Args:
            mode: the format of the manifests, as in Delta Spark; there is only one.

        Raises:
            InvalidInputError: files have deletion vectors.
        """
        from deltalog.transaction.maintenance.manifests import generate_symlink_manifest

        if mode != "symlink_format_manifest":
            raise InvalidInputError(
                f"cannot generate {mode!r} of {self.table_uri}: expected 'symlink_format_manifest'"
            )
        check_main(
            self._snapshot.store,
            "write manifests of",
            "they are in the directory of main, whose readers would find them",
        )
        doing = "write manifests of"
        with naming_the_operation(doing, self.table_uri):
            generate_symlink_manifest(checked_in_place(self._snapshot, doing))

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version that this object shows.

        Cost: reads all columns of the file list once; see `deltalog.transaction.maintenance`.
        """
        doing = "write a checkpoint of"
        with naming_the_operation(doing, self.table_uri):
            snapshot = checked_in_place(self._snapshot, doing)
            self.engine.write_checkpoint(snapshot, snapshot.context.clock.now_ms())

    def sync_iceberg(self) -> IcebergVersion:
        """Write Iceberg metadata of the newest version, if it is missing.

        With the property `delta.universalFormat.enabledFormats = iceberg`, each commit writes
        Iceberg metadata. Use this method if such a write failed, or without the property. It needs
        the extra `iceberg`.

        Returns:
            The newest Iceberg version; Iceberg readers open its `metadata_location`.

        Raises:
            InvalidInputError: the table is not compatible with Iceberg, or a file has a deletion
                vector.

        Protocol: Iceberg Compatibility V1, V2
        Cost: at first, a pass over the list of all files; later, only over the changed files.
        """
        check_main(
            self._snapshot.store,
            "write Iceberg metadata of",
            "it is in the directory of main, whose readers would find it",
        )
        self.update_incremental()
        try:
            from deltalog.iceberg import sync
        except ImportError as error:
            raise InvalidInputError(
                f"cannot write Iceberg metadata of {self.table_uri}: PyIceberg is not installed; "
                "pip install 'deltalog[iceberg]'"
            ) from error
        return sync(self._snapshot)

    def cleanup_metadata(self) -> list[str]:
        """Delete log files that are older than `delta.logRetentionDuration` and no longer needed.

        Returns:
            The deleted paths, relative to the table.
        """
        from deltalog.transaction.maintenance.cleanup import cleanup_metadata

        # The newest version defines the retention period, even if this object shows an old version.
        with naming_the_operation("clean up the log of", self.table_uri):
            paths = cleanup_metadata(self._snapshot.refresh(same_table=True))
        return ShownList(paths, title=f"{counted(len(paths), FILE)} of the log deleted")

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write one compacted log file for a range of commits; the commits are not deleted."""
        from deltalog.transaction.maintenance.cleanup import compact_logs

        with naming_the_operation("compact the log of", self.table_uri):
            snapshot = checked_in_place(self._snapshot, "compact the log up to")
            compact_logs(snapshot, starting_version, ending_version)
