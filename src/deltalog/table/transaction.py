"""`table.transaction()`: several operations, one commit.

Protocol: Delta Log Entries (a commit is atomic)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from deltalog._util.argument_types import checks_types
from deltalog._util.cached import name_methods_after
from deltalog._util.call_errors import UnknownNameError
from deltalog._util.similar_names import VisibleNames, similar_to, suggests_arguments
from deltalog.errors import InvalidInputError
from deltalog.operations.alter import SetDomainMetadata
from deltalog.operations.arguments import as_updates, check_given, left_for_predicate
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.changes.request import ChangeRequest
from deltalog.operations.delete import Delete
from deltalog.operations.execute import commit_staged, preview, stage
from deltalog.operations.merge import Merge, upsert
from deltalog.operations.update import Update
from deltalog.operations.write import SchemaMode, Write
from deltalog.schema.columns import naming_the_attempt
from deltalog.table.inspect.display import as_facts
from deltalog.table.merge import TableMerger, check_condition, check_source
from deltalog.transaction import AppTransaction, CommitOptions, PendingTransaction
from deltalog.transaction.pending import discard, discarding

if TYPE_CHECKING:
    from deltalog._util.cards import Progress
    from deltalog.data.write.options import WriterProperties
    from deltalog.data.write.source import Rows
    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.operations.operation import Operation
    from deltalog.table.creating import LatestTable
    from deltalog.table.reading import ReadableTable


@suggests_arguments
class StagedOperations(VisibleNames):
    """Operations that are staged for one commit.

    Every operation sees the table as it was at the beginning. No two operations may change the
    same file.
    """

    _internal = frozenset({"do", "engine", "pending", "snapshot"})
    _ends: ClassVar[str] = (
        "`with table.transaction() as tx:` begins, and commits at its end, unless it raises"
    )

    def __init_subclass__(cls, **options: Any) -> None:
        """Prepare the methods, so that errors about arguments name the subclass."""
        super().__init_subclass__(**options)
        name_methods_after(cls, StagedOperations)

    def __init__(self, table: LatestTable) -> None:
        self._table = table
        self._pending: PendingTransaction | None = None
        self._operations: list[str] = []
        self._failed: str | None = None
        # Contains True if a staged operation wrote change data files, and False if a staged
        # operation did not. If a commit has `cdc` actions, they must contain all changes of the
        # commit. So the set must not contain both values.
        self._tells_changes: set[bool] = set()

    if not TYPE_CHECKING:  # type checkers must report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Say how a transaction ends, which others do by a method."""
            hint = similar_to(name, dir(type(self)))
            if not name.startswith("_") and hasattr(type(self._table), name):
                hint = f": use table.{name}, outside of the transaction"
            if name in {"insert", "write", "add", "write_deltalake"}:
                hint = ": use append(data) or overwrite(data)"
            if name in {"commit", "execute", "rollback", "abort", "begin", "start", "close", "run"}:
                hint = f": {self._ends}"
            if not hint and not name.startswith("_"):
                hint = ": it has append, overwrite, delete, update, merge, upsert, and others"
            raise UnknownNameError(f"the transaction has no attribute {name!r}{hint}")

    @property
    def pending(self) -> PendingTransaction:
        """The pending transaction, which contains all staged changes.

        Raises:
            InvalidInputError: called outside of the block.
        """
        if self._pending is None:
            raise InvalidInputError(
                "a transaction can be used only in its block: with table.transaction() as tx: …"
            )
        return self._pending

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that all operations see."""
        return self.pending.read_snapshot

    @property
    def engine(self) -> Engine:
        """The engine, which reads and writes rows and files."""
        return self._table.engine

    def do(
        self, operation: Operation[Any], *, dry_run: bool = False, progress: Progress | None = None
    ) -> Any:
        """Stage an operation, and return its result.

        Args:
            operation: the operation.
            dry_run: whether to only return the result, without staging the operation.
            progress: see `DeltaTable`.

        Raises:
            InvalidInputError: called outside of the block; or some operations of the transaction
                write change data files and other operations do not.
        """
        if dry_run:
            return as_facts(preview(operation, self.snapshot, self.engine), operation.name)
        with self._operation(operation.name) as pending:
            found = stage(operation, pending, self.engine, progress=progress).result()
        return as_facts(found, operation.name)

    def append(
        self,
        data: Rows,
        *,
        schema_mode: SchemaMode | None = None,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> None:
        """Stage an append of rows; see `write_deltalake` for the arguments."""
        self._write(data, schema_mode, target_file_size, writer_properties, mode="append")

    def overwrite(
        self,
        data: Rows,
        predicate: Any = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        schema_mode: SchemaMode | None = None,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> None:
        """Stage the replacement of all rows, or of the rows that match a predicate.

        See `write_deltalake` for the arguments.
        """
        self._write(
            data,
            schema_mode,
            target_file_size,
            writer_properties,
            mode="overwrite",
            predicate=predicate,
            parameters=parameters,
        )

    def _write(
        self,
        data: Rows,
        schema_mode: SchemaMode | None,
        target_file_size: int | None,
        writer_properties: WriterProperties | None,
        **options: Any,
    ) -> None:
        files = FileOptions(
            target_file_size_bytes=target_file_size,
            writer_properties=writer_properties,
            casts=True,
        )
        self.do(Write(data=data, schema_mode=schema_mode, file_options=files, logged={}, **options))

    def delete(
        self,
        predicate: Any = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> None:
        """Stage a deletion of rows; see `DeltaTable.delete` for the arguments."""
        check_given(predicate)
        self.do(
            Delete.where(
                predicate, parameters=parameters, use_deletion_vectors=use_deletion_vectors
            )
        )

    def update(
        self,
        updates: Mapping[str, Any] | None = None,
        new_values: Mapping[str, object] | None = None,
        predicate: Any = None,
        *,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> None:
        """Stage an update of rows; see `DeltaTable.update` for the arguments."""
        check_given(predicate)
        schema = self.pending.configuration.schema
        with naming_the_attempt("run UPDATE on", self.pending.store.root):
            values = as_updates(updates, new_values, parameters, schema)
        parameters = left_for_predicate(parameters, predicate, updates)
        self.do(
            Update.where(
                predicate,
                values,
                parameters=parameters,
                use_deletion_vectors=use_deletion_vectors,
            )
        )

    def merge(
        self,
        source: Rows,
        predicate: str | Expression,
        source_alias: str | None = None,
        target_alias: str | None = None,
        *,
        merge_schema: bool = False,
        parameters: Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> TableMerger:
        """Return a builder of a merge; its `execute` stages it. See `DeltaTable.merge`."""
        request = ChangeRequest(
            condition=check_condition(predicate),
            clauses=(),
            source=check_source(source, self.pending.configuration.schema),
            source_alias=source_alias,
            target_alias=target_alias,
            merge_schema=merge_schema,
            parameters=parameters,
            use_deletion_vectors=use_deletion_vectors,
        )
        return TableMerger(self, Merge(request))

    def upsert(self, data: Rows, key: str | Sequence[str], *, null_safe: bool = False) -> None:
        """Stage an upsert of rows; see `DeltaTable.upsert` for the arguments."""
        data = check_source(data, self.pending.configuration.schema)
        TableMerger(self, upsert(data, key, null_safe=null_safe)).execute()

    def set_domain_metadata(self, domain: str, configuration: str) -> None:
        """Stage the configuration of a metadata domain."""
        self.do(SetDomainMetadata(domain, configuration))

    def set_app_transaction(self, app_id: str, version: int) -> None:
        """Stage an application transaction, which makes the commit idempotent."""
        self.pending.set_app_transaction(AppTransaction(app_id, version))

    def _begin(self) -> None:
        """Begin the transaction on the latest version."""
        self._table.update_incremental()
        snapshot = self._table.snapshot
        self._pending = PendingTransaction(snapshot.context, snapshot, operation="TRANSACTION")
        self._operations = []
        self._failed = None
        self._tells_changes = set()

    def _take(self) -> PendingTransaction:
        """End staging, and return the transaction to commit.

        Raises:
            InvalidInputError: one of the operations has failed.
        """
        pending = self._leave()
        if self._failed is not None:
            discard(pending)
            raise InvalidInputError(
                f"cannot commit the transaction on {pending.store.root}: its {self._failed} "
                "failed, and may be partly staged; nothing was committed"
            )
        self._name(pending)
        return pending

    def _leave(self) -> PendingTransaction:
        """End staging without a commit, and return the transaction, whose files must be deleted."""
        pending, self._pending = self.pending, None
        return pending

    @contextmanager
    def _operation(self, name: str) -> Iterator[PendingTransaction]:
        """Stage one operation; if it fails, the transaction fails."""
        pending = self.pending
        if self._failed is not None:
            raise InvalidInputError(f"cannot continue the transaction: its {self._failed} failed")
        self._operations.append(name)
        files, request = _num_changed(pending), len(pending.cdc)
        self._failed = name
        yield pending
        if _num_changed(pending) > files:
            self._tells_changes.add(len(pending.cdc) > request)
        if len(self._tells_changes) > 1:
            raise InvalidInputError(
                f"cannot stage this {name} with the other operations: only some of them write "
                "change data files, and a commit cannot mix the two kinds; commit them separately, "
                "or enable deletion vectors"
            )
        self._failed = None

    def _name(self, pending: PendingTransaction) -> None:
        """Set the operation name of the commit: that of its only operation, or TRANSACTION."""
        names = list(dict.fromkeys(self._operations))
        pending.operation = names[0] if len(names) == 1 else "TRANSACTION"
        pending.parameters["operations"] = self._operations


OPEN_BLOCKS: ContextVar[tuple[TableTransaction, ...]] = ContextVar("blocks", default=())
"""The transactions of tables whose blocks this thread or task executes."""


def warn_of_block(table: ReadableTable, operation: str) -> None:
    """Warn the caller if a table commits by itself in the block of its own transaction.

    Args:
        table: the table that runs the operation.
        operation: the name of the operation.
    """
    # A task that was started in the block has a copy of the context, and can outlive the block.
    if any(_is_open_block(one, table) for one in OPEN_BLOCKS.get()):
        from deltalog._util.builders import warn_caller

        warn_caller(
            f"this {operation} on {table.table_uri} commits at once, outside of the transaction "
            "whose block it is in; to make it part of the transaction, use a method of "
            "`with table.transaction() as tx:`, such as tx.append(data) or tx.delete(predicate); "
            "otherwise, move it out of the block"
        )


def _is_open_block(block: TableTransaction, table: object) -> bool:
    return block._table is table and block._pending is not None  # noqa: SLF001  # of this module


@checks_types
class TableTransaction(StagedOperations):
    """A context manager that makes one commit of several operations; see `DeltaTable.transaction`.

    The operations are committed at the end of the block. After an exception in the block, nothing
    is committed, and the new files are deleted. Every operation sees the table as it was at the
    beginning. No two operations may change the same file.
    """

    def __init__(self, table: LatestTable, options: CommitOptions) -> None:
        super().__init__(table)
        self._options = options

    def __enter__(self) -> Self:
        """Begin a transaction on the latest version."""
        self._begin()
        OPEN_BLOCKS.set((*OPEN_BLOCKS.get(), self))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit; after an exception in the block, delete the new files instead."""
        OPEN_BLOCKS.set(tuple(one for one in OPEN_BLOCKS.get() if one is not self))
        if kind is not None:
            discard(self._leave())
            return
        pending = self._take()
        if pending.is_empty:
            return
        with discarding(pending):
            committed = commit_staged(pending, self.engine, self._options)
        self._table._show(committed)  # noqa: SLF001  # only for this package

    def __repr__(self) -> str:
        """Show the table."""
        return f"{self._table!r}.transaction()"

    def _repr_html_(self) -> str:
        """Return the notebook card: the table, and the staged operations."""
        from deltalog._util.cards import card, grid  # only notebooks need it

        staged = ", ".join(self._operations) or "nothing"
        return card("Transaction", grid([("table", repr(self._table)), ("staged", staged)]))


def _num_changed(pending: PendingTransaction) -> int:
    return len(pending.adds) + pending.files_added_again.num_rows + len(pending.removes)
