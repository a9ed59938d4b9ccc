"""Clean up after a transaction that was not committed: delete its files.

Best effort: no commit names the files, so vacuum would remove them, too.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltalog.errors import CommitOutcomeUnknownError, DeltaError
from deltalog.transaction.pending import PendingTransaction

if TYPE_CHECKING:
    from collections.abc import Iterator

logger: logging.Logger = logging.getLogger(__name__)


@contextmanager
def discarding(pending: PendingTransaction) -> Iterator[None]:
    """Delete the transaction's own files if the block fails and no commit can name them.

    An interrupt such as Ctrl-C may arrive during the commit request; then the files stay. Before
    the request was sent, they are deleted.
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
    """Delete the transaction's own files: it was not committed."""
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
