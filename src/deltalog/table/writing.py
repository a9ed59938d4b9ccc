"""The half of `DeltaTable` that commits: creating, altering, transactions, care of the log.

Owns how an operation is run: staged, committed, and shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from deltalog.actions.properties import CONSTRAINT_PREFIX
from deltalog.arguments import has_table, open_table_store
from deltalog.context import utc_context
from deltalog.errors import InvalidInputError, TableExistsError
from deltalog.table.reading import ReadingTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import PurePath

    from deltalog.schema import Field, Schema
    from deltalog.snapshot import Snapshot
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.table.alter import TableAlterer
    from deltalog.table.transaction import TableTransaction
    from deltalog.transaction import CommitProperties, PendingTransaction, PostCommitHookProperties
    from deltalog.transaction.commit import Committed, Ran
    from deltalog.write.options import WriterProperties
    from deltalog.write.spec import WriteSpec
    from deltalog.write.written import WrittenFiles

T = TypeVar("T")
_GROWING: Final = frozenset({"WRITE", "DELETE", "UPDATE", "MERGE"})  # what may leave small files


class WritingTable(ReadingTable):
    """Making tables and committing to them; `DeltaTable` explains the arguments."""

    @classmethod
    def create(  # noqa: PLR0913, PLR0917  # deltalake's signature and some more
        cls,
        table_uri: str | PurePath | Store,
        schema: Schema | Sequence[Field] | Any,
        mode: Literal["error", "append", "overwrite", "ignore"] = "error",
        partition_by: Sequence[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str | None] | None = None,
        storage_options: StorageOptions | None = None,
        *,
        cluster_by: Sequence[str | tuple[str, ...]] | None = None,
        features: Sequence[str] = (),
        constraints: Mapping[str, str] | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        raise_if_key_not_exists: bool = True,
        filesystem: Any = None,
    ) -> Self:
        """Make an empty table.

        Args:
            table_uri: where.
            schema: of the table: a `Schema`, fields, or an Arrow schema of any library. Field
                metadata declares comments, defaults, generated and identity columns.
            mode: `error` if there is a table, `ignore`: open the one that is there, `overwrite`:
                replace its schema, properties and rows.
            partition_by: partition columns.
            name: of the table.
            description: of the table.
            configuration: table properties; None takes a default of `table_defaults` away.
            storage_options: for the file system, as for `DeltaTable`.
            cluster_by: clustering columns, instead of partitions.
            features: table features to support beyond what is needed.
            constraints: CHECK constraints, name → Spark SQL.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            raise_if_key_not_exists: whether an unknown `delta.` property is refused.
            filesystem: as for `DeltaTable`.

        Raises:
            TableExistsError: there is a table, and the mode is `error`.
            InvalidInputError: schema, columns and properties do not go together.
        """
        from deltalog.table.creating import make_table, new_table_with_defaults
        from deltalog.verbs.create import as_schema, stage_create, stage_replace

        store, at = open_table_store(table_uri, storage_options, filesystem)
        if at is not None or mode not in {"error", "overwrite", "ignore"}:
            raise InvalidInputError(
                f"cannot create a table at {table_uri!r} with mode={mode!r}: expected a location "
                "without a version, and the mode error, overwrite or ignore"
            )
        exists = has_table(store)
        if exists and mode == "ignore":
            return cls(store)
        if exists and mode == "error":
            raise TableExistsError(
                f"cannot create a table at {store.root}: there is one; use mode='overwrite' to "
                "replace it or mode='ignore' to open it"
            )
        checks = {f"{CONSTRAINT_PREFIX}{key}": text for key, text in (constraints or {}).items()}
        wanted = new_table_with_defaults(
            as_schema(schema),
            partition_columns=[partition_by]
            if isinstance(partition_by, str)
            else partition_by or (),
            configuration={**(configuration or {}), **checks},
            name=name,
            description=description,
            clustering_columns=cluster_by,
            features=features,
            arbitrary_properties=not raise_if_key_not_exists,
        )
        if exists:
            table = cls(store)
            table.run(
                "CREATE OR REPLACE TABLE",
                lambda pending: stage_replace(pending, wanted, cluster_by),
                refresh=True,
                commit_properties=commit_properties,
                hooks=post_commithook_properties,
            )
            return table
        make_table(
            utc_context(store),
            wanted,
            lambda pending: stage_create(pending, cluster_by),
            operation="CREATE TABLE",
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
        )
        return cls(store)

    @property
    def alter(self) -> TableAlterer:
        """Changes of schema, properties, constraints and protocol."""
        from deltalog.table.alter import TableAlterer

        return TableAlterer(self)

    def run(
        self,
        operation: str,
        stage: Callable[[PendingTransaction], T],
        *,
        parameters: Mapping[str, Any] | None = None,
        refresh: bool = True,
        on_conflict: Literal["retry", "raise"] = "retry",
        commit_properties: CommitProperties | None = None,
        hooks: PostCommitHookProperties | None = None,
        skip_empty: bool = False,
    ) -> Ran[T]:
        """Stage one operation of `deltalog.verbs`, commit it, and show its version.

        The verbs below are this with their stage. For operations of your own it is as stable as
        the modules that it takes its pieces from.

        Args:
            operation: for the history.
            stage: plans the operation; called again on the newest version if another writer won.
            parameters: of the operation, for the history.
            refresh: whether to look for newer versions first; an append need not.
            on_conflict: `raise` never calls `stage` again.
            commit_properties: of the commit.
            hooks: what follows it.
            skip_empty: commit nothing where nothing was staged.

        Raises:
            InvalidInputError: the table shows an old version.
        """
        from deltalog.transaction.commit import run

        self._check_latest(operation)
        first = [self._snapshot]

        def load() -> Snapshot:
            return first.pop() if first and not refresh else self._snapshot.refresh()

        ran = run(
            load,
            stage,
            operation=operation,
            parameters=parameters,
            on_conflict=on_conflict,
            commit_properties=commit_properties,
            hooks=hooks,
            skip_empty=skip_empty,
        )
        self.show(ran.committed)
        if operation in _GROWING and self.properties.auto_compact and not ran.committed.skipped:
            self._compact(hooks)
        return ran

    def _compact(self, hooks: PostCommitHookProperties | None) -> None:
        """Put small files together after a commit; a failure of it is logged only."""
        from deltalog.verbs.optimize import auto_compact

        compacted = auto_compact(self._snapshot, hooks=hooks)
        if compacted is not None:
            self.show(compacted)

    def show(self, committed: Committed) -> None:
        """Stand on the version of a commit from now on."""
        self._snapshot = committed.snapshot
        self._travelled = False

    def transaction(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> TableTransaction:
        """Several operations in one commit: `with table.transaction() as tx: tx.append(…)`.

        All of them see the table as it was at the beginning.
        """
        from deltalog.table.transaction import TableTransaction

        self._check_latest("begin a transaction")
        return TableTransaction(self, commit_properties, post_commithook_properties)

    def write_spec(
        self,
        *,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> WriteSpec:
        """What `write_files` needs to know on another machine; it can be pickled."""
        from deltalog.verbs.append import FileOptions

        options = FileOptions(
            target_file_size_bytes=target_file_size,
            writer_properties=writer_properties,
        )
        return options.spec(self._context, self._snapshot.configuration)

    def commit(
        self,
        written: WrittenFiles | Sequence[WrittenFiles],
        *,
        mode: Literal["append", "overwrite"] = "append",
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> int:
        """Commit what `write_files` has written, on whatever machines.

        Args:
            written: of one worker or of many.
            mode: `append`, or `overwrite`: every row that was there goes.
            commit_properties: of the commit; with application transactions a repeated call is
                skipped.
            post_commithook_properties: what follows it.

        Returns:
            The new version.

        Raises:
            InvalidInputError: the files were written for another table or schema.
            CommitFailedError: another writer won; the files stay, and may be committed again.
        """
        from deltalog.transaction import PendingTransaction
        from deltalog.transaction.commit import commit
        from deltalog.verbs.append import stage_commit
        from deltalog.write.written import WrittenFiles

        self._check_latest("commit")
        parts = [written] if isinstance(written, WrittenFiles) else list(written)
        pending = PendingTransaction(
            self._snapshot.context,
            self._snapshot,
            operation="WRITE",
            parameters={"mode": mode.capitalize(), "partitionBy": []},
        )
        stage_commit(pending, parts, mode=mode)
        committed = commit(
            pending, commit_properties=commit_properties, hooks=post_commithook_properties
        )
        self.show(committed)
        return committed.version

    def set_domain_metadata(
        self,
        domain: str,
        configuration: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the configuration of a metadata domain of yours; the table needs `domainMetadata`."""
        from deltalog.verbs.alter import domains

        self.run(
            "SET DOMAIN METADATA",
            lambda pending: domains.set_domain_metadata(pending, domain, configuration),
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
        )

    def remove_domain_metadata(
        self,
        domain: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove a metadata domain of yours."""
        from deltalog.verbs.alter import domains

        self.run(
            "REMOVE DOMAIN METADATA",
            lambda pending: domains.remove_domain_metadata(pending, domain),
            commit_properties=commit_properties,
            hooks=post_commithook_properties,
        )

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version that this object shows.

        Cost: every column of the log's files, once; see `deltalog.upkeep`.
        """
        from deltalog.upkeep import create_checkpoint

        create_checkpoint(self._snapshot)

    def cleanup_metadata(self) -> list[str]:
        """Delete log files that are older than `delta.logRetentionDuration` and not needed.

        Returns:
            What was deleted, relative to the table.
        """
        from deltalog.upkeep import cleanup_metadata

        # The newest version decides, also where this object shows an old one.
        return cleanup_metadata(self._snapshot.refresh())

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write one compacted log file for a range of commits; the commits stay."""
        from deltalog.upkeep import compact_logs

        compact_logs(self._snapshot, starting_version, ending_version)

    def _check_latest(self, operation: str) -> None:
        if self._travelled:
            raise InvalidInputError(
                f"cannot {operation} at version {self.version()} of {self.table_uri}: the table "
                "was asked for at that version; update_incremental() goes to the latest"
            )
