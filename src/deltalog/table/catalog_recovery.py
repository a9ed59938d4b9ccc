"""What became of transactions over several tables whose run has ended, and their completion.

Owns which commits of a journal can still be made. Nothing is tried before the commit ahead of it is
in, and a table that has the transaction recorded has its commit.

Protocol: Transaction Identifiers
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from deltalog.catalogs.protocol import shown_name
from deltalog.clock import utc_moment
from deltalog.errors import (
    CommitConflictError,
    DataFileMissingError,
    DeltaError,
    DeltaProtocolError,
    InvalidInputError,
    MalformedLogError,
    TableNotFoundError,
)
from deltalog.snapshot import load_snapshot
from deltalog.table.delta_table import DeltaTable
from deltalog.transaction.prepared import pending_again
from deltalog.verbs.do import commit_staged

if TYPE_CHECKING:
    from datetime import datetime

    from deltalog.catalogs.protocol import TableCatalog
    from deltalog.snapshot import Snapshot
    from deltalog.transaction.journal import Journal, Journals, PreparedCommit


class PartState(Enum):
    """How far the commit of one table is."""

    COMMITTED = "committed"
    OPEN = "open"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPart:
    """The commit of one table in a transaction.

    Args:
        table: its name.
        state: `OPEN` may still be committed; `IMPOSSIBLE` never.
        reason: why it is not committed; empty if it is.
    """

    table: str
    state: PartState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionReport:
    """What became of a transaction over several tables.

    Args:
        transaction_id: names its journal.
        created: when its commits were prepared; None if the journal cannot be read.
        parts: the tables, in the order of their commits.
        problem: why the journal cannot be read; empty if it can.
    """

    transaction_id: str
    created: datetime | None
    parts: tuple[TransactionPart, ...] = ()
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether every table has its commit."""
        return not self.problem and all(part.state is PartState.COMMITTED for part in self.parts)


def report_on(
    catalog: TableCatalog, journals: Journals, transaction_id: str, *, completes: bool
) -> TransactionReport | None:
    """The report of a transaction; None if its journal is gone, because it is complete.

    Args:
        catalog: that knows its tables.
        journals: with its journal.
        transaction_id: names it.
        completes: whether commits that are missing are made, in their order.
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
            part = _part(commit, PartState.OPEN, f"it comes after {parts[-1].table}")
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
    """The state of a table's commit, which is made if it is missing and shall be."""
    try:
        latest = load_snapshot(catalog.open(commit.name))
        if latest.metadata.id != commit.table_id:
            return _part(commit, PartState.IMPOSSIBLE, "another table has its name by now")
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
    """Make the commit."""
    retention_ms = latest.configuration.properties.deleted_file_retention_ms
    if latest.context.clock.now_ms() > journal.created_ms + retention_ms:
        raise DataFileMissingError(
            f"cannot commit what was prepared for {shown_name(commit.name)}: that was longer ago "
            "than the table keeps files that no version names"
        )
    before = load_snapshot(latest.context, version=commit.base_version)
    pending = pending_again(commit, before, journal.app_id)
    commit_staged(pending, DeltaTable.from_context(latest.context).engine)


def _part(commit: PreparedCommit, state: PartState, reason: str = "") -> TransactionPart:
    return TransactionPart(table=shown_name(commit.name), state=state, reason=reason)
