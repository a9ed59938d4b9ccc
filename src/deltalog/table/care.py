"""What keeps a table sound, and what makes another one of it.

Owns the order of steps where a verb is more than one commit; each step is `operations`'.
"""

from __future__ import annotations

from dataclasses import replace as replace_context
from typing import TYPE_CHECKING, Any, Self

from deltalog.arguments import as_bound, check_elsewhere, has_table, open_table_store
from deltalog.errors import InvalidInputError, TableExistsError
from deltalog.progress import shown
from deltalog.table.changing import ChangingTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import PurePath

    import pyarrow as pa

    from deltalog.progress import Progress
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.table.optimize import TableOptimizer
    from deltalog.transaction import (
        CommitProperties,
        PendingTransaction,
        PostCommitHookProperties,
    )
    from deltalog.verbs.clone import Cloned
    from deltalog.verbs.restore import Restored


class CaredForTable(ChangingTable):
    """Keeping a table sound, and making another one of it; `DeltaTable` explains the arguments."""

    @property
    def optimize(self) -> TableOptimizer:
        """The same rows in better files: `compact`, `z_order`, `cluster`, `purge`."""
        from deltalog.table.optimize import TableOptimizer

        return TableOptimizer(self)

    def vacuum(  # deltalake's signature and some more
        self,
        retention_hours: float | None = None,
        dry_run: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        enforce_retention_duration: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: object = None,
        progress: Progress | None = None,
    ) -> list[str]:
        """Delete files that no version within the retention needs; by default only name them.

        Live files stay, and so do files that left the table within the retention, with their
        deletion vectors; and whatever is younger than that, since a writer under way may need it.
        Versions older than the retention can't be read afterwards.

        Args:
            retention_hours: how long removed files stay; None is what the table says
                (`delta.deletedFileRetentionDuration`, a week by default).
            dry_run: delete nothing.
            enforce_retention_duration: whether a shorter time than the table's is refused.
            commit_properties: of the two commits that say in the history what was deleted.
            post_commithook_properties: what follows them.
            full: list all files below the root, and find what failed writes have left as well;
                otherwise only files are found that the log says have left the table.
            keep_versions: versions that stay readable, whatever their age.
            inventory: a table of all files (`path`, `length`, `modificationTime`, `isDir`) in any
                form that `write_deltalake` takes, to be used instead of a listing.
            progress: True for a bar, or told after each batch how many files of how many are
                deleted; what it raises ends the deletion.

        Returns:
            The paths of the files, relative to the root. `vacuum_report()` tells more.

        Raises:
            InvalidInputError: the time is too short or negative, or this object shows an old
                version.
            DeltaProtocolError: the table needs something of writers that deltalog does not know.

        Protocol: Vacuum Protocol Check
        Cost: commits behind the last such vacuum; with `full`, a listing of the whole table.
        """
        from deltalog.table.vacuum import TableVacuum

        self._check_latest("vacuum")
        vacuum = TableVacuum(self)
        plan = vacuum.plan(
            retention_hours,
            enforce_retention_duration=enforce_retention_duration,
            full=full,
            keep_versions=keep_versions,
            inventory=inventory,
        )
        if dry_run:
            return plan.paths
        return vacuum.carry_out(
            plan,
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
            progress=progress,
        )

    def vacuum_report(
        self,
        retention_hours: float | None = None,
        *,
        enforce_retention_duration: bool = True,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        inventory: object = None,
    ) -> pa.Table:
        """What `vacuum` would delete, with sizes and reasons.

        Args:
            retention_hours: as for `vacuum`; so are the others.
            enforce_retention_duration: as for `vacuum`.
            full: as for `vacuum`.
            keep_versions: as for `vacuum`.
            inventory: as for `vacuum`.

        Returns:
            One row per file: `path`, `size_bytes`, `modification_time` (both may be NULL where
            only the log was read) and `reason`.
        """
        from deltalog.table.vacuum import TableVacuum

        self._check_latest("vacuum")
        return (
            TableVacuum(self)
            .plan(
                retention_hours,
                enforce_retention_duration=enforce_retention_duration,
                full=full,
                keep_versions=keep_versions,
                inventory=inventory,
            )
            .files
        )

    def restore(
        self,
        target: int | datetime | str,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Make the table what it was at a version or a moment, by a new version.

        Args:
            target: number, timestamp text (ISO 8601; without a zone: UTC) or datetime.
            ignore_missing_files: restore what is left where vacuum has deleted files.
            protocol_downgrade_allowed: whether table features that came later go.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.

        Returns:
            Counts and sizes of files that came back and that went.

        Raises:
            VersionNotFoundError: the version is not there.
            DataFileMissingError: vacuum has deleted files of that version.

        Cost: paths of both versions, and a request for each file that comes back. Only the
        difference is committed.
        """
        from deltalog.verbs.restore import stage_restore

        self.update_incremental()
        is_version = isinstance(as_bound(target), int)  # None is nothing to go back to
        then = self._load(target)

        def stage(pending: PendingTransaction) -> Restored:
            restored = stage_restore(
                pending,
                then,
                ignore_missing_files=ignore_missing_files,
                protocol_downgrade_allowed=protocol_downgrade_allowed,
            )
            pending.set_metrics(restored.metrics())
            return restored

        ran = self.run(
            "RESTORE",
            stage,
            parameters={
                "version": then.version if is_version else None,
                "timestamp": None if is_version else str(target),
            },
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
        )
        return {} if ran.value is None else ran.value.result()

    def repair(
        self,
        dry_run: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Remove files from the table that the store has lost.

        Args:
            dry_run: only look.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.

        Returns:
            `dry_run`, `files_removed`, and `files_without_deletion_vector`: files that nobody can
            read since it is not known which of their rows are deleted. Those stay in the table.

        Cost: one listing of the table.
        """
        from deltalog.verbs.repair import find_lost_files, stage_repair

        self._check_latest("repair")
        if dry_run:
            self.update_incremental()
            lost = find_lost_files(self._snapshot)
        else:
            ran = self.run(
                "FSCK",
                stage_repair,
                commit_properties=commit_properties,
                hooks=post_commithook_properties,
                skip_empty=True,
            )
            if ran.value is None:
                return {"dry_run": False, "files_removed": []}
            lost = ran.value
        return {
            "dry_run": dry_run,
            "files_removed": lost.paths,
            "files_without_deletion_vector": list(lost.without_vector),
        }

    def clone(  # each is the caller's choice
        self,
        target: str | PurePath | Store,
        *,
        shallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        storage_options: StorageOptions | None = None,
        filesystem: Any = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Make another table of the version that this object shows.

        Args:
            target: where.
            shallow: name this table's files instead of copying them. They must be there as long
                as the clone is read: vacuum here does not know of it.
            replace: whether a table at the target may be replaced; it keeps its history. Cloned
                again, a table gets the difference: only files that it lacks are copied.
            properties: set on the clone besides this table's.
            storage_options: of the target, as for `DeltaTable`.
            filesystem: of the target, as for `DeltaTable`.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            progress: True for a bar, or told after each file how many of how many are copied.

        Returns:
            The clone. Rows have new row ids there.

        Raises:
            TableExistsError: there is a table, and `replace` is False.
        """
        from deltalog.table.creating import make_table
        from deltalog.verbs.clone import cloned_configuration, stage_clone

        store, at = open_table_store(target, storage_options, filesystem)
        if at is not None:
            raise InvalidInputError(f"cannot clone to {target!r}: it names a version")
        check_elsewhere(target, store.root, self.table_uri)
        source = self._snapshot

        def stage(pending: PendingTransaction) -> Cloned:
            if pending.snapshot is not None:
                pending.set_configuration(
                    cloned_configuration(
                        source.configuration,
                        target=pending.snapshot.configuration,
                        properties=properties,
                    )
                )
            with shown(progress, "copying files") as tell:
                cloned = stage_clone(pending, source, is_shallow=shallow, progress=tell)
            pending.set_metrics(cloned.metrics())
            return cloned

        if not has_table(store):
            make_table(
                replace_context(self._context, store=store, log_tail=None),
                cloned_configuration(source.configuration, properties=properties),
                stage,
                operation="CLONE",
                parameters={},
                commit_properties=commit_properties,
                hooks=post_commithook_properties,
            )
            return type(self)(store, default_timezone=self._context.time_zone)
        if not replace:
            raise TableExistsError(
                f"cannot clone to {store.root}: there is a table; replace=True replaces it"
            )
        clone = type(self)(store, default_timezone=self._context.time_zone)
        clone.run(
            "CLONE", stage, commit_properties=commit_properties, hooks=post_commithook_properties
        )
        return clone

    def generate(self) -> None:
        """Write symlink manifests of the version that this object shows.

        Engines that read Parquet and know no Delta find the live files there; the manifests do
        not change with the table.

        Raises:
            InvalidInputError: files have deletion vectors.
        """
        from deltalog.verbs.generate import generate_symlink_manifest

        generate_symlink_manifest(self._snapshot)

    def truncate(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Remove all rows; nothing is read for it.

        Returns:
            Count and size of the files that left the table.
        """
        from deltalog.verbs.truncate import stage_truncate

        def stage(pending: PendingTransaction) -> dict[str, int]:
            metrics = stage_truncate(pending).metrics()
            pending.set_metrics(metrics)
            return metrics

        ran = self.run(
            "TRUNCATE",
            stage,
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
            skip_empty=True,
        )
        found = ran.value or {}
        return {
            "num_removed_files": found.get("numRemovedFiles", 0),
            "num_removed_bytes": found.get("numRemovedBytes", 0),
        }
