"""Transactions over several tables of a catalog: prepared together, committed one after the other.

First all changes are staged and checked, then a journal is written, then each table is committed.
If the process ends before the last commit, the journal remains, and `recover` completes the
transaction. Each table has its own log, so readers may see the commit of one table before the
commit of the next table.

Any number of transactions and recoveries may run at the same time, because
- each commit records an application transaction, so that no commit is made twice;
- commits are made in the order of the journal;
- data files are deleted only before the journal exists, or if the first commit conflicts. In the
  second case, a recovery has the same conflict, because it treats the whole table as read.

Protocol: Transaction Identifiers
"""

from __future__ import annotations

import logging
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Self

from deltalog._util.argument_types import checks_types
from deltalog._util.clock import utc_moment
from deltalog._util.readable import counted, readable_time
from deltalog._util.similar_names import SimilarNames
from deltalog.catalogs.protocol import KeepsJournals, Name, TableCatalog, shown_name
from deltalog.errors import (
    AccessDeniedError,
    CommitConflictError,
    DataFileMissingError,
    DeltaError,
    DeltaProtocolError,
    InternalError,
    InvalidInputError,
    MalformedLogError,
    StorageError,
    TableNotFoundError,
    TransactionIncompleteError,
)
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.operations.alter import RemoveDomainMetadata, SetDomainMetadata
from deltalog.operations.delete import Delete
from deltalog.operations.execute import commit_staged, prepare_staged
from deltalog.operations.merge import Merge
from deltalog.operations.publish import Publish
from deltalog.operations.update import Update
from deltalog.operations.write import Write
from deltalog.query.names import QualifiedName
from deltalog.storage import open_store
from deltalog.storage.store import Store, is_local
from deltalog.table.delta_table import DeltaTable
from deltalog.table.inspect.display import ShownList
from deltalog.table.transaction import StagedOperations
from deltalog.transaction import AppTransaction
from deltalog.transaction.journal import (
    APP_VERSION,
    Journal,
    Journals,
    PreparedCommit,
    app_id_of,
    pending_again,
)
from deltalog.transaction.pending import PendingTransaction, discard, discarding
from deltalog.transaction.properties import CommitOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta
    from os import PathLike

    from deltalog._util.cards import Progress
    from deltalog.operations.operation import Operation
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.table.catalog_branches import CatalogBranch
    from deltalog.transaction import CommitProperties, PostCommitHookProperties
    from deltalog.transaction.commit_loop import CommitLoop

logger: logging.Logger = logging.getLogger(__name__)

_TRIES: Final = 3
_VERBS: Final = (Publish, Write, Delete, Update, Merge, SetDomainMetadata, RemoveDomainMetadata)


_MEANT: Final = {
    **dict.fromkeys(("transaction", "start", "create"), "begin()"),
    **dict.fromkeys(("create_branch", "checkout"), "branch(tables, name)"),
    **dict.fromkeys(("list", "pending"), "unfinished()"),
}
"""What to use instead of names of other libraries."""


@checks_types
class CatalogTransactions(SimilarNames):
    """Transactions over several tables of a catalog, and recovery of unfinished transactions.

    Args:
        catalog: resolves the names of tables.
        journals: path or URL of the journal directory, or its `Store`. Required for all catalogs
            except `FileCatalog`, which has a default journal directory. Protect the directory like
            the tables: `recover` makes the commits that journals contain.
        storage_options: storage options of the journal directory.

    Raises:
        InvalidInputError: `journals` is missing, and the catalog has no default journal directory.
    """

    _meant = _MEANT

    def __init__(
        self,
        catalog: TableCatalog,
        journals: str | PathLike[str] | Store | None = None,
        storage_options: StorageOptions | None = None,
    ) -> None:
        self._catalog = catalog
        if journals is not None:
            store = open_store(journals, storage_options)  # type: ignore[arg-type]  # `open_store` also accepts paths
        elif isinstance(catalog, KeepsJournals):
            store = catalog.journal_store()
        else:
            raise InvalidInputError(
                f"cannot use transactions of {catalog!r}: the catalog has no default journal "
                "directory; pass a directory as journals="
            )
        self._journals = Journals(store)

    def begin(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> CatalogTransaction:
        """Begin a transaction: `with transactions.begin() as tx: tx.table("a.b").append(…)`.

        Args:
            commit_properties: properties of the commit of each table.
            post_commithook_properties: options of the steps after all commits, for each table.
        """
        options = CommitOptions(properties=commit_properties, hooks=post_commithook_properties)
        return CatalogTransaction(self._catalog, self._journals, options)

    def branch(
        self,
        tables: Sequence[str | Name],
        name: str,
        *,
        exist_ok: bool = False,
        expires_after: timedelta | None = None,
    ) -> CatalogBranch:
        """Create a branch of several tables, which are published together; a preview.

        Args:
            tables: the names of the tables, as for `CatalogTransaction.table`.
            name: the name of the branch of each table.
            exist_ok: whether to open branches that exist.
            expires_after: see `DeltaTable.branch`.

        Raises:
            BranchExistsError: a table has the branch. No branch was created.
            InvalidInputError: a table has no branches, or two names mean the same table.

        Cost: see `DeltaTable.branch`, for each table.
        """
        from deltalog.table.catalog_branches import create_branches

        return create_branches(
            self,
            [
                (parts, DeltaTable.from_context(self._catalog.open(parts)))
                for parts in map(_parts, tables)
            ],
            name,
            exist_ok=exist_ok,
            expires_after=expires_after,
        )

    def unfinished(self) -> list[TransactionReport]:
        """Return the transactions that have a journal, including running transactions.

        Cost: one listing, two requests for each journal, and opening each table in the journals.
        """
        return _listed(
            report
            for transaction_id in self._journals.ids()
            if (report := self._report_on(transaction_id, completes=False)) is not None
        )

    def recover(self, transaction_id: str | None = None) -> list[TransactionReport]:
        """Complete interrupted transactions, or report why that is impossible.

        This is safe at any time, even while the transactions or other recoveries run. A commit that
        only appends can be made unless the table's schema or properties have changed. A commit that
        depends on existing rows can be made only if no rows were changed or added since. All staged
        files must still exist.

        Args:
            transaction_id: the transaction to complete; None means all.

        Returns:
            A report for each transaction. The journals of complete transactions are deleted.
        """
        wanted = self._journals.ids() if transaction_id is None else [transaction_id]
        found: list[TransactionReport] = []
        for one in wanted:
            report = self._report_on(one, completes=True)
            if report is None:
                continue
            if report.is_complete:
                self._journals.remove([one])
            found.append(report)
        return _listed(found)

    def forget(self, transaction_id: str) -> None:
        """Delete the journal of a transaction, so that it is never completed.

        The transaction must not be running. Its commits are not undone; `vacuum` deletes the files
        of its missing commits.
        """
        self._journals.remove([transaction_id])

    def _report_on(self, transaction_id: str, *, completes: bool) -> TransactionReport | None:
        return report_on(self._catalog, self._journals, transaction_id, completes=completes)

    def __repr__(self) -> str:
        """Show the catalog and the journal directory."""
        return f"CatalogTransactions({self._catalog!r}, {self._journals.store.root!r})"


def _listed(reports: Iterable[TransactionReport]) -> list[TransactionReport]:
    """Return reports as a list with a notebook card."""
    found = list(reports)
    return ShownList(
        found,
        title=counted(len(found), "transaction"),
        names=("transaction", "created", "tables", "problem"),
        row_of=lambda one: (
            one.transaction_id,
            None if one.created is None else readable_time(one.created),
            ", ".join(f"{part.table} {part.state.value}" for part in one.parts),
            one.problem or "; ".join(part.reason for part in one.parts if part.reason),
        ),
    )


def _parts(name: str | Name) -> Name:
    return QualifiedName.parse(name).parts if isinstance(name, str) else tuple(name)


@checks_types
class CatalogTransaction:
    """A context manager for one transaction over several tables; see `CatalogTransactions.begin`.

    At the end of the block, all tables are checked, then committed in the order of their first call
    of `table`. After an exception in the block, no table is changed.

    Attributes:
        transaction_id: id of the transaction; its journal has this name.
        versions: after the block: table name → new version.
    """

    def __init__(self, catalog: TableCatalog, journals: Journals, options: CommitOptions) -> None:
        self.transaction_id: str = str(uuid.uuid4())
        self.versions: dict[str, int] = {}
        self._catalog = catalog
        self._journals = journals
        self._options = options
        self._tables: dict[Name, TransactionTable] = {}
        self._is_open = False

    def table(self, name: str | Name) -> TransactionTable:
        """Return a table of the catalog, whose operations are staged.

        All operations see the table as it was at the first call for this table. They do not see
        the changes of each other.

        Args:
            name: `schema.table`, with backticks where necessary, or a tuple of the parts.

        Raises:
            TableNotFoundError: the catalog has no such table; create it before the transaction.
            InvalidInputError: called outside of the block, or the same table was opened by another
                name.
        """
        if not self._is_open:
            raise InvalidInputError(
                "a transaction can be used only in its block: with transactions.begin() as tx: …"
            )
        parts = _parts(name)
        if parts not in self._tables:
            found = TransactionTable(parts, DeltaTable.from_context(self._catalog.open(parts)))
            for other in self._tables.values():
                if other.table_id == found.table_id:
                    raise InvalidInputError(
                        f"cannot open {shown_name(parts)}: it is the same table as "
                        f"{shown_name(other.name)} in this transaction; use one of the names"
                    )
            self._tables[parts] = found
        return self._tables[parts]

    def __enter__(self) -> Self:
        """Begin."""
        if self._is_open or self._tables:
            raise InvalidInputError("cannot begin a transaction twice: call begin() again")
        self._is_open = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit; after an exception in the block, delete the new files instead.

        Raises:
            CommitConflictError: one of the tables has a conflicting commit; nothing was committed.
            TransactionIncompleteError: an error occurred after the first commit, or the outcome is
                unknown; the journal is not deleted.
        """
        self._is_open = False
        tables = list(self._tables.values())
        if kind is not None:
            for table in tables:
                discard(table._leave())  # noqa: SLF001  # only for this package
            return
        with ExitStack() as discards:
            for table in tables:
                discards.enter_context(discarding(table.pending))
            # Only this package begins and ends the operations of a table.
            taken = [_Staged(table, table._take()) for table in tables]  # noqa: SLF001
            staged = [one for one in taken if not one.pending.is_empty]
            if len(staged) == 1:
                self._commit_one(staged[0])
            elif staged:
                self._commit_all(staged, discards)

    def _commit_one(self, staged: _Staged) -> None:
        committed = commit_staged(staged.pending, staged.table.engine, self._options)
        staged.table.shown._show(committed)  # noqa: SLF001  # only for this package
        self.versions[staged.name] = committed.version

    def _commit_all(self, staged: list[_Staged], discards: ExitStack) -> None:
        app = AppTransaction(app_id_of(self.transaction_id), APP_VERSION)
        loops: list[CommitLoop] = []
        commits: list[PreparedCommit] = []
        for one in staged:
            one.pending.set_app_transaction(app)
            loop = prepare_staged(one.pending, one.table.engine, self._options)
            commits.append(one.prepared(loop))
            loops.append(loop)
        journal = Journal(
            transaction_id=self.transaction_id,
            created_ms=staged[0].pending.context.clock.now_ms(),
            commits=tuple(commits),
        )
        for one in staged:
            one.pending.is_sent = True  # from now on, an interrupt must not delete the new files
        is_kept = self._keep(journal)
        discards.pop_all()
        if not is_kept:
            raise self._incomplete("it is unknown whether its journal was written", staged, [])
        self._send(staged, loops)
        try:
            self._journals.remove([self.transaction_id])
        except DeltaError as error:
            logger.warning("cannot delete the journal %s: %s", journal.path, error)
        for one, loop in zip(staged, loops, strict=True):
            self._finish(one, loop)

    def _keep(self, journal: Journal) -> bool:
        """Write the journal; return whether it certainly exists.

        Raises:
            DeltaError: the journal was certainly not written.
        """
        for number in range(_TRIES):
            try:
                self._journals.put(journal)
            except AccessDeniedError:
                if number:  # an earlier attempt may have written this journal
                    return False
                raise
            except StorageError as error:
                logger.warning("writing journal %s: %s", journal.path, error)
                # A failed write to a local store cannot take effect later.
                if is_local(self._journals.store) and self._is_absent():
                    raise
            else:
                return True
        return False

    def _is_absent(self) -> bool:
        try:
            return self._journals.read(self.transaction_id) is None
        except DeltaError:
            return False

    def _send(self, staged: list[_Staged], loops: list[CommitLoop]) -> None:
        """Make the commits, in the order of the journal."""
        done: list[_Staged] = []
        for one, loop in zip(staged, loops, strict=True):
            try:
                loop.send()
            except CommitConflictError as error:
                if done:
                    raise self._incomplete(str(error), staged, done) from error
                # No recovery can have made this commit: it would have met the same conflict.
                self._undo(staged, error)
                raise
            except DeltaError as error:
                raise self._incomplete(str(error), staged, done) from error
            done.append(one)

    def _undo(self, staged: list[_Staged], conflict: CommitConflictError) -> None:
        try:
            self._journals.remove([self.transaction_id])
        except DeltaError:
            raise self._incomplete(str(conflict), staged, []) from conflict
        for one in staged:
            discard(one.pending)

    def _incomplete(
        self, why: str, staged: list[_Staged], done: list[_Staged]
    ) -> TransactionIncompleteError:
        committed = [one.name for one in done]
        left = [one.name for one in staged[len(done) :]]
        return TransactionIncompleteError(
            f"transaction {self.transaction_id} over {counted(len(staged), 'table')} is "
            f"incomplete: {why}; committed: {', '.join(committed) or 'none'}; not committed: "
            f"{', '.join(left)}; the journal is in {self._journals.store.root}; recover() "
            "completes the transaction, or reports why that is impossible",
            transaction_id=self.transaction_id,
            committed=committed,
            left=left,
        )

    def _finish(self, staged: _Staged, loop: CommitLoop) -> None:
        """Run the steps after a commit; if they fail, the commit is still valid."""
        try:
            committed = loop.finish()
        except DeltaError as error:
            logger.warning("%s was committed, but cannot be read: %s", staged.name, error)
            return
        staged.table.shown._show(committed)  # noqa: SLF001  # only for this package
        self.versions[staged.name] = committed.version

    def __repr__(self) -> str:
        """Show the id of the transaction and the names of its tables."""
        names = ", ".join(map(shown_name, self._tables))
        return f"<transaction {self.transaction_id} over {names or 'no table yet'}>"


@dataclass(frozen=True, slots=True)
class _Staged:
    """A table and the content of its commit."""

    table: TransactionTable
    pending: PendingTransaction

    @property
    def name(self) -> str:
        """The name of the table, for error messages."""
        return shown_name(self.table.name)

    def prepared(self, loop: CommitLoop) -> PreparedCommit:
        """Prepare the commit on top of the table's latest version.

        Raises:
            CommitConflictError: a newer commit conflicts with this one.
        """
        made = loop.prepare()
        if made is None:
            raise InternalError(f"{self.name} already contains the commit of a new transaction")
        return PreparedCommit(
            name=self.table.name,
            table_id=self.table.table_id,
            base_version=loop.base_version,
            data=made.data,
        )


@checks_types
class TransactionTable(StagedOperations):
    """A table in a transaction over several tables; see `CatalogTransaction.table`.

    The operations `append`, `overwrite`, `delete`, `update`, `merge` and `upsert`, and changes of
    metadata domains, can be staged.
    """

    _internal = frozenset({"begin_at", "shown"})
    _ends = "the block of the transaction over the catalog commits at its end, unless it raises"

    def __init__(self, name: Name, table: DeltaTable) -> None:
        super().__init__(table)
        self.name = name
        self.shown = table
        self._begin()
        self.table_id: str = self.snapshot.metadata.id

    def begin_at(self, base: Snapshot) -> None:
        """Begin on an earlier version; commits since then are checked for conflicts."""
        self._begin()
        self._pending = PendingTransaction(base.context, base, operation="TRANSACTION")

    def do(
        self, operation: Operation[Any], *, dry_run: bool = False, progress: Progress | None = None
    ) -> Any:
        """Stage an operation, see `StagedOperations.do`; raise for unsupported operations."""
        if not isinstance(operation, _VERBS):
            raise InvalidInputError(
                f"cannot stage {operation.name} of {shown_name(self.name)} in a transaction over "
                "several tables, which supports only changes of rows and metadata domains; run the "
                "operation on the table itself"
            )
        return super().do(operation, dry_run=dry_run, progress=progress)

    def __repr__(self) -> str:
        """Show the name of the table."""
        return f"<{shown_name(self.name)} in a transaction>"


# --- Reports on transactions over several tables, and their completion


class PartState(Enum):
    """State of one table's commit in a transaction."""

    COMMITTED = "committed"
    OPEN = "open"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPart:
    """The commit of one table in a transaction.

    Args:
        table: name of the table.
        state: `COMMITTED`, `OPEN` (the commit may still be made) or `IMPOSSIBLE` (it cannot be
            made).
        reason: why the commit was not made; empty if it was made.
    """

    table: str
    state: PartState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionReport:
    """State of a transaction over several tables.

    Args:
        transaction_id: id of the transaction.
        created: time when the commits were prepared; None if the journal cannot be read.
        parts: the commits of the tables, in order.
        problem: why the journal cannot be read; empty if the journal is readable.
    """

    transaction_id: str
    created: datetime | None
    parts: tuple[TransactionPart, ...] = ()
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether all commits were made."""
        return not self.problem and all(part.state is PartState.COMMITTED for part in self.parts)


def report_on(
    catalog: TableCatalog, journals: Journals, transaction_id: str, *, completes: bool
) -> TransactionReport | None:
    """Return the report of a transaction; None if it has no journal because it is complete.

    Args:
        catalog: resolves the names of tables.
        journals: the directory of the journal.
        transaction_id: id of the transaction.
        completes: whether to make missing commits, in the order of the journal.
    """
    try:
        journal = journals.read(transaction_id)
    except MalformedLogError as error:
        return TransactionReport(transaction_id=transaction_id, created=None, problem=str(error))
    if journal is None:
        return None
    parts: list[TransactionPart] = []
    for commit in journal.commits:
        if parts and parts[-1].state is not PartState.COMMITTED:
            part = _part(commit, PartState.OPEN, f"{parts[-1].table} must be committed first")
        else:
            part = _part_of(catalog, journal, commit, completes=completes)
        parts.append(part)
    return TransactionReport(
        transaction_id=transaction_id,
        created=utc_moment(journal.created_ms),
        parts=tuple(parts),
    )


def _part_of(
    catalog: TableCatalog, journal: Journal, commit: PreparedCommit, *, completes: bool
) -> TransactionPart:
    """Return the state of a table's commit. With `completes`, first make a missing commit."""
    try:
        latest = load_snapshot(catalog.open(commit.name))
        if latest.metadata.id != commit.table_id:
            return _part(commit, PartState.IMPOSSIBLE, "another table now has this name")
        if journal.app_id in latest.recorded_app_transactions:
            return _part(commit, PartState.COMMITTED)
        if not completes:
            return _part(commit, PartState.OPEN, "it is not committed yet")
        _complete(latest, journal, commit)
    except (
        CommitConflictError,
        DeltaProtocolError,
        TableNotFoundError,
        InvalidInputError,
    ) as error:
        return _part(commit, PartState.IMPOSSIBLE, str(error))
    except DeltaError as error:
        return _part(commit, PartState.OPEN, str(error))
    return _part(commit, PartState.COMMITTED)


def _complete(latest: Snapshot, journal: Journal, commit: PreparedCommit) -> None:
    """Make a prepared commit."""
    retention_ms = latest.configuration.properties.deleted_file_retention_ms
    if latest.context.clock.now_ms() > journal.created_ms + retention_ms:
        raise DataFileMissingError(
            f"cannot make the prepared commit of {shown_name(commit.name)}: it is older than the "
            "table's retention period, so vacuum may have deleted its files"
        )
    before = load_snapshot(latest.context, version=commit.base_version)
    pending = pending_again(commit, before, journal.app_id)
    commit_staged(pending, DeltaTable.from_context(latest.context).engine)


def _part(commit: PreparedCommit, state: PartState, reason: str = "") -> TransactionPart:
    return TransactionPart(table=shown_name(commit.name), state=state, reason=reason)
