"""What is left of a transaction that came to nothing: its files are removed.

Nothing names them, so this is courtesy: vacuum would find them, too.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltalog.errors import CommitOutcomeUnknownError, DeltaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.transaction.pending import PendingTransaction

logger = logging.getLogger(__name__)


@contextmanager
def discarding(pending: PendingTransaction) -> Iterator[None]:
    """Remove the transaction's own files if the block fails, and they are surely not needed.

    Whatever is no ordinary exception may have come while the commit was on its way; before that
    it has ended the work, as Ctrl-C does.
    """
    try:
        yield
    except CommitOutcomeUnknownError:
        raise
    except BaseException as error:
        is_known = isinstance(error, Exception) or not pending.is_sent
        if is_known and not pending.is_committed:
            discard(pending)
        raise


def discard(pending: PendingTransaction) -> None:
    """Remove the transaction's own files: it did not become a commit."""
    try:
        pending.store.delete_many(pending.own_paths)
    except DeltaError as error:
        logger.warning(
            "%d files of a failed %s stay in %s until vacuum finds them: %s",
            len(pending.own_paths),
            pending.operation,
            pending.store.root,
            error,
        )
