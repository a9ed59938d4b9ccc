"""The step from one attempt of a commit to the next, after another writer has won the version.

Owns what becomes of a transaction with each winner: it conflicts, or it is made on top of that one.

Protocol: Delta Log Entries
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltalog.transaction.assemble import isolation_level
from deltalog.transaction.commit_base import advance
from deltalog.transaction.conflicts import PendingFacts, find_conflict
from deltalog.transaction.row_level import find_shared, unite

if TYPE_CHECKING:
    from deltalog.configuration import TableConfiguration
    from deltalog.transaction.commit_base import CommitBase
    from deltalog.transaction.pending import PendingTransaction
    from deltalog.transaction.winners import WinningCommit


def rebase(
    pending: PendingTransaction,
    base: CommitBase,
    winner: WinningCommit,
    *,
    configuration: TableConfiguration,
    has_log_tail: bool,
) -> CommitBase:
    """The base of the next attempt, on top of a winner; deletion vectors are united with its own.

    Args:
        pending: our transaction.
        base: of the attempt that lost, or the winner before.
        winner: the winning commit.
        configuration: of the table, as our commit would leave it.
        has_log_tail: whether a catalog decides which commits count.

    Raises:
        CommitConflictError: they conflict.
    """
    shared = find_shared(pending, configuration, winner)
    removed: list[Any] = [files.column("path") for files, _ in pending.removes]
    mine = pending.configuration
    facts = PendingFacts(
        root=pending.store.root,
        before=base.configuration,
        protocol=mine.protocol if pending.changes_protocol else None,
        metadata=mine.metadata if pending.changes_metadata else None,
        read_set=pending.read_set,
        removed_paths=pa.chunked_array(
            [chunk for column in removed for chunk in column.chunks], pa.string()
        ),
        shared_paths=shared.paths,
        domains=frozenset(pending.domains),
        isolation_level=isolation_level(pending, configuration),
        operation=pending.operation,
        has_log_tail=has_log_tail,
        time_zone=pending.context.time_zone,
    )
    conflict = find_conflict(facts, winner)
    if conflict is not None:
        raise conflict
    unite(pending, shared)
    return advance(base, winner, pending)
