"""Branches of several tables of a catalog, which are published together: a preview.

The branches are closed and checked first, then one transaction of the catalog publishes all of
them. So a failing check or a conflict changes no table. Readers may see the commit of one table
before the commit of the next one, as with any transaction over several tables.

Protocol: none (delta-io/delta #7439 proposes branches)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Protocol

from deltalog._util.argument_types import checks_types
from deltalog._util.call_errors import UnknownKeyError
from deltalog._util.similar_names import SimilarNames, similar_to
from deltalog.catalogs.protocol import Name, shown_name
from deltalog.errors import DeltaError, InvalidInputError, TransactionIncompleteError
from deltalog.log import branches as records
from deltalog.log.branches import Branch, BranchState, find_branch, on_main
from deltalog.table.branches import (
    Check,
    Publication,
    check_all_published,
    discard,
    prepare,
    publication,
    publication_after,
    the_branch,
)

if TYPE_CHECKING:
    from datetime import timedelta

    from deltalog.log.context import TableContext
    from deltalog.table.delta_table import DeltaTable
    from deltalog.transaction import CommitProperties


class Transactions(Protocol):
    """The members of `CatalogTransactions` that are needed here."""

    def begin(self, commit_properties: CommitProperties | None = None) -> Any:
        """Begin a transaction."""
        ...

    def recover(self) -> Any:
        """Complete interrupted transactions."""
        ...


_MEANT: Final = {
    **dict.fromkeys(("commit", "merge"), "publish(checks)"),
    **dict.fromkeys(("drop", "delete", "rollback", "abort"), "discard()"),
}
"""What to use instead of names of other libraries."""


@checks_types
class CatalogBranch(SimilarNames):
    """A branch of several tables; see `CatalogTransactions.branch`.

    `branch["schema.table"]` is the branch of a table, a `DeltaTable`.

    Args:
        transactions: the transactions of the catalog.
        name: the name of the branch.
        drafts: the branch of each table.
    """

    _meant = _MEANT
    _otherwise = "branch['schema.table'] for the branch of a table"

    def __init__(
        self, transactions: Transactions, name: str, drafts: Mapping[Name, DeltaTable]
    ) -> None:
        self._transactions = transactions
        self._name = name
        self._drafts = dict(drafts)

    @property
    def tables(self) -> list[str]:
        """The names of the tables."""
        return [shown_name(name) for name in self._drafts]

    def __getitem__(self, table: str | Name) -> DeltaTable:
        """Return the branch of a table.

        Raises:
            KeyError: the branch has no such table.
        """
        return self._drafts[self._name_of(table)]

    def _name_of(self, table: str | Name) -> Name:
        asked = table if isinstance(table, str) else shown_name(tuple(table))
        for name in self._drafts:
            if asked in {shown_name(name), ".".join(name)}:
                return name
        similar = [name for name in self.tables if name.endswith(f".{asked}")]
        hint = f": did you mean {similar[0]!r}?" if similar else similar_to(asked, self.tables)
        hint = hint or f": its tables are {', '.join(map(repr, self.tables))}"
        raise UnknownKeyError(f"the branch {self._name!r} has no table {asked!r}{hint}")

    def publish(
        self,
        checks: Mapping[str, Sequence[Check]] | None = None,
        *,
        commit_properties: CommitProperties | None = None,
    ) -> dict[str, int]:
        """Publish the branches of all tables, in their order, and delete them.

        If the process ends meanwhile, open the branch again with `exist_ok=True`: this completes a
        publish that has begun to commit. Otherwise, publish again.

        Args:
            checks: for some tables, what their branch must fulfil; see `DeltaTable.publish`.
            commit_properties: properties of the commit of each table.

        Returns:
            For each table, a version of main with the changes.

        Raises:
            AuditFailedError, CommitConflictError: a check fails, or main has changed. No table was
                changed, and the branches remain.
            KeyError: there are checks for another table.
            TransactionIncompleteError: only some tables were committed; call `publish` again.
        """
        wanted = {self._name_of(name): some for name, some in (checks or {}).items()}
        branches = {name: the_branch(one, "publish") for name, one in self._drafts.items()}
        contexts = {name: on_main(one.snapshot.context) for name, one in self._drafts.items()}
        done = _published(self._transactions, contexts, branches)
        if not done:
            self._publish(branches, wanted, commit_properties)
            done = _published(self._transactions, contexts, branches)
        if left := [shown_name(name) for name in branches if name not in done]:
            raise InvalidInputError(
                f"cannot publish the branch {self._name!r} of {', '.join(left)}: it was published "
                "for the other tables, and the transaction cannot be completed (recover() says "
                "why); publish or discard the branch of each of these tables"
            )
        for name, one in done.items():
            check_all_published(contexts[name], branches[name], one)
            records.delete_record(contexts[name].store, branches[name])
        return {shown_name(name): one.version for name, one in done.items()}

    def _publish(
        self,
        branches: Mapping[Name, Branch],
        checks: Mapping[Name, Sequence[Check]],
        commit_properties: CommitProperties | None,
    ) -> None:
        """Close and check all branches, and commit their changes by one transaction."""
        closed: list[tuple[Any, Branch]] = []
        try:
            with self._transactions.begin(commit_properties) as transaction:
                for name, draft in self._drafts.items():
                    main = on_main(draft.snapshot.context)
                    branch = records.set_state(main.store, branches[name], BranchState.CLOSED)
                    closed.append((main, branch))
                    operation, base = prepare(draft, branch, checks.get(name, ()))
                    table = transaction.table(name)
                    table.begin_at(base)
                    table.do(operation)
                    table.pending.parameters.update(operation.logged_parameters())
        except TransactionIncompleteError:
            raise  # the branches remain closed, because the transaction can be completed
        except Exception as error:
            for main, branch in closed:
                publication_after(error, main, branch)
            raise

    def discard(self) -> None:
        """Delete the branches of all tables.

        Raises:
            BranchNotFoundError: a branch was published or discarded; the others are deleted.
        """
        first: DeltaError | None = None
        for draft in self._drafts.values():
            try:
                discard(draft)
            except DeltaError as error:
                first = first or error
        if first is not None:
            raise first

    def __repr__(self) -> str:
        """Show the name and the tables."""
        return f"<branch {self._name!r} of {', '.join(self.tables)}>"


def create_branches(
    transactions: Transactions,
    tables: Sequence[tuple[Name, DeltaTable]],
    name: str,
    *,
    exist_ok: bool,
    expires_after: timedelta | None,
) -> CatalogBranch:
    """Create the branches of several tables; see `CatalogTransactions.branch`."""
    ids = [table.snapshot.metadata.id for _, table in tables]
    if not tables or len(set(ids)) < len(ids):
        raise InvalidInputError(
            f"cannot create the branch {name!r}: expected different tables, found "
            f"{', '.join(shown_name(parts) for parts, _ in tables) or 'none'}"
        )
    if exist_ok:
        _complete_publish(transactions, tables, name)
    drafts: dict[Name, DeltaTable] = {}
    with ExitStack() as created:
        for parts, table in tables:
            is_new = find_branch(table.snapshot.store, name) is None
            draft = table.branch(name, exist_ok=exist_ok, expires_after=expires_after)
            if is_new:
                created.callback(discard, draft)
            drafts[parts] = draft
        created.pop_all()
    return CatalogBranch(transactions, name, drafts)


def _published(
    transactions: Transactions,
    contexts: Mapping[Name, TableContext],
    branches: Mapping[Name, Branch],
) -> dict[Name, Publication]:
    """Return the commits that published branches; first complete an interrupted publish."""
    current = [find_branch(contexts[name].store, branch.name) for name, branch in branches.items()]
    if any(one is not None and one.state is BranchState.CLOSED for one in current):
        transactions.recover()
    found = {name: publication(contexts[name], branch) for name, branch in branches.items()}
    return {name: one for name, one in found.items() if one is not None}


def _complete_publish(
    transactions: Transactions, tables: Sequence[tuple[Name, DeltaTable]], name: str
) -> None:
    """Delete the records of a branch that is published, if its publish was interrupted."""
    contexts = {parts: table.snapshot.context for parts, table in tables}
    found = {parts: find_branch(one.store, name) for parts, one in contexts.items()}
    branches = {parts: branch for parts, branch in found.items() if branch is not None}
    done = _published(transactions, contexts, branches)
    if len(done) == len(branches):
        for parts, branch in branches.items():
            records.delete_record(contexts[parts].store, branch)
