"""What whoever watches commits is told of one: counts and names, no rows and no values of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltalog.observing import ObservedWork
    from deltalog.transaction.pending import PendingTransaction


def tell_commit(
    work: ObservedWork, pending: PendingTransaction, *, version: int, num_retries: int
) -> None:
    """Add what a commit holds to the facts of the work that made it.

    Args:
        work: that is watched.
        pending: the content of the commit.
        version: that it made.
        num_retries: attempts that lost before.

    Cost: nothing while nobody watches; else a sum over the new files.
    """
    if not work.is_watched:
        return
    work.subject = pending.configuration
    work.facts.update(
        version=version,
        num_retries=num_retries,
        is_skipped=False,
        num_added_files=len(pending.adds),
        num_added_bytes=sum(add.size_bytes for add in pending.adds),
        num_removed_files=sum(files.num_rows for files, _ in pending.removes),
        data_change=pending.data_change,
    )
    work.facts.update({f"metrics.{name}": value for name, value in pending.metrics.items()})
