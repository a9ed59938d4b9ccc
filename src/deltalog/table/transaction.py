"""`table.transaction()`: several operations, one commit.

Protocol: Delta Log Entries (a commit is atomic)
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from deltalog.arguments import as_condition, as_updates, check_given
from deltalog.errors import InvalidInputError
from deltalog.rows.merge.clauses import Merge
from deltalog.table.merge import TableMerger
from deltalog.transaction import AppTransaction, PendingTransaction
from deltalog.transaction.commit import commit
from deltalog.transaction.discard import discard, discarding
from deltalog.verbs.alter import domains
from deltalog.verbs.append import FileOptions, stage_append
from deltalog.verbs.delete import stage_delete
from deltalog.verbs.overwrite import stage_overwrite, stage_replace_where
from deltalog.verbs.update import stage_update
from deltalog.verbs.upsert import upsert
from deltalog.write.source import open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from types import TracebackType

    from deltalog.expressions import Expression
    from deltalog.snapshot import Snapshot
    from deltalog.table.standing import Standing
    from deltalog.transaction import CommitProperties, PostCommitHookProperties
    from deltalog.verbs.append import SchemaMode
    from deltalog.verbs.merge import Merged
    from deltalog.write.options import WriterProperties


class TableTransaction:
    """What one commit is to hold; a context manager, made by `DeltaTable.transaction`.

    Leaving the block commits; an exception in it leaves the table as it was, and removes what was
    written. Every operation sees the table as it was at the beginning, and no two of them may
    change the same file.
    """

    def __init__(
        self,
        table: Standing,
        commit_properties: CommitProperties | None,
        hooks: PostCommitHookProperties | None,
    ) -> None:
        self._table = table
        self._commit_properties = commit_properties
        self._hooks = hooks
        self._pending: PendingTransaction | None = None
        self._operations: list[str] = []
        self._failed: str | None = None
        # For each kind of operation that there was: whether it wrote change files.
        self._tells_changes: set[bool] = set()

    @property
    def pending(self) -> PendingTransaction:
        """What has been collected.

        Raises:
            InvalidInputError: outside of the block.
        """
        if self._pending is None:
            raise InvalidInputError(
                "a transaction works inside of its block: with table.transaction() as tx: …"
            )
        return self._pending

    def append(
        self,
        data: object,
        *,
        schema_mode: SchemaMode | None = None,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> None:
        """Add rows; arguments as in `write_deltalake`."""
        options = self._options(target_file_size, writer_properties)
        with self._operation("WRITE") as pending:
            stage_append(pending, open_source(data), options=options, schema_mode=schema_mode)

    def overwrite(
        self,
        data: object,
        predicate: Any = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        schema_mode: SchemaMode | None = None,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> None:
        """Replace all rows, or those that match; arguments as in `write_deltalake`."""
        options = self._options(target_file_size, writer_properties)
        with self._operation("WRITE") as pending:
            condition = self._condition(predicate, parameters)
            rows = open_source(data)
            if condition is None:
                stage_overwrite(pending, rows, options=options, schema_mode=schema_mode)
            else:
                stage_replace_where(
                    pending, rows, condition, options=options, schema_mode=schema_mode
                )

    def delete(
        self,
        predicate: Any = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> None:
        """Delete rows; arguments as in `DeltaTable.delete`."""
        with self._operation("DELETE") as pending:
            deleted = stage_delete(
                pending,
                self._condition(predicate, parameters),
                options=self._options(None, None),
                use_deletion_vectors=use_deletion_vectors,
            )
            pending.set_metrics(deleted.metrics())

    def update(
        self,
        updates: Mapping[str, str | Expression] | None = None,
        new_values: Mapping[str, object] | None = None,
        predicate: Any = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> None:
        """Give new values to rows; arguments as in `DeltaTable.update`."""
        values = as_updates(updates, new_values, parameters)
        if predicate is None and updates and isinstance(parameters, Mapping):
            parameters = None  # they are for the new values
        with self._operation("UPDATE") as pending:
            updated = stage_update(
                pending,
                values,
                self._condition(predicate, parameters),
                options=self._options(None, None),
                use_deletion_vectors=use_deletion_vectors,
            )
            pending.set_metrics(updated.metrics())

    def merge(
        self,
        source: object,
        predicate: str | Expression,
        source_alias: str | None = None,
        target_alias: str | None = None,
        *,
        merge_schema: bool = False,
        parameters: Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> TableMerger:
        """Begin a merge, which `execute` adds; arguments as in `DeltaTable.merge`."""
        return self._merger(
            source,
            Merge(
                predicate=predicate,
                clauses=(),
                source_alias=source_alias,
                target_alias=target_alias,
                merge_schema=merge_schema,
                parameters=parameters,
                use_deletion_vectors=use_deletion_vectors,
            ),
        )

    def upsert(self, data: object, key: str | Sequence[str], *, null_safe: bool = False) -> None:
        """Replace rows by key, and add the others; arguments as in `DeltaTable.upsert`."""
        self._merger(data, upsert(key, null_safe=null_safe)).execute()

    def _merger(self, source: object, merge: Merge) -> TableMerger:
        target = _StagedMerge(self._table, self._operation)
        return TableMerger(target, source, merge, options=self._options(None, None))

    def set_domain_metadata(self, domain: str, configuration: str) -> None:
        """Set the configuration of a metadata domain."""
        with self._operation("SET DOMAIN METADATA") as pending:
            domains.set_domain_metadata(pending, domain, configuration)

    def set_app_transaction(self, app_id: str, version: int) -> None:
        """Record how far an application has come."""
        self.pending.set_app_transaction(AppTransaction(app_id, version))

    def __enter__(self) -> Self:
        """Begin on the latest version."""
        self._table.update_incremental()
        snapshot = self._table.snapshot
        self._pending = PendingTransaction(snapshot.context, snapshot, operation="TRANSACTION")
        self._operations = []
        self._failed = None
        self._tells_changes = set()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commit, or leave nothing behind."""
        pending, self._pending = self.pending, None
        if kind is not None:
            discard(pending)
            return
        if self._failed is not None:
            discard(pending)
            raise InvalidInputError(
                f"cannot commit the transaction on {pending.store.root}: its {self._failed} "
                "failed, and half of it may have been staged; nothing was committed"
            )
        if pending.is_empty:
            return
        self._name(pending)
        with discarding(pending):
            committed = commit(
                pending, commit_properties=self._commit_properties, hooks=self._hooks
            )
        if committed.skipped:
            discard(pending)
        self._table.show(committed)

    @contextmanager
    def _operation(self, name: str) -> Iterator[PendingTransaction]:
        """One operation: whole, or the transaction is lost."""
        pending = self.pending
        if self._failed is not None:
            raise InvalidInputError(f"a transaction ends with what fails, here its {self._failed}")
        self._operations.append(name)
        files, changes = _num_changed(pending), len(pending.cdc)
        self._failed = name
        yield pending
        if _num_changed(pending) > files:
            self._tells_changes.add(len(pending.cdc) > changes)
        if len(self._tells_changes) > 1:
            raise InvalidInputError(
                f"cannot do this {name} in one commit with the other operations: some of them "
                "write change files and some do not, and the change feed of a commit is either; "
                "commit them apart, or enable deletion vectors"
            )
        self._failed = None

    def _name(self, pending: PendingTransaction) -> None:
        """One operation goes by its own name in the history."""
        names = list(dict.fromkeys(self._operations))
        pending.operation = names[0] if len(names) == 1 else "TRANSACTION"
        pending.parameters["operations"] = self._operations

    def _options(
        self, target_file_size: int | None, writer_properties: WriterProperties | None
    ) -> FileOptions:
        return FileOptions(
            target_file_size_bytes=target_file_size, writer_properties=writer_properties
        )

    def _condition(
        self, predicate: Any, parameters: Sequence[object] | Mapping[str, object] | None
    ) -> Any:
        check_given(predicate)
        schema = self._table.schema()
        return as_condition(schema, predicate, parameters=parameters)


@dataclass(frozen=True, slots=True)
class _StagedMerge:
    """A merge that is staged with the other operations, and not committed."""

    table: Standing
    operation: Callable[[str], AbstractContextManager[PendingTransaction]]

    @property
    def snapshot(self) -> Snapshot:
        return self.table.snapshot

    def merge(self, stage: Callable[[PendingTransaction], Merged]) -> Merged:
        with self.operation("MERGE") as pending:
            return stage(pending)

    def __repr__(self) -> str:
        return repr(self.table)


def _num_changed(pending: PendingTransaction) -> int:
    return len(pending.adds) + pending.rows.num_rows + len(pending.removes)
