"""One attempt at a version, and the truth about it when the store does not tell.

Owns ambiguous outcomes: an error may come back although the commit was made, and a request that
was sent twice finds the file of its own first copy. The commit's `txnId` tells whose it is. The
same bytes may be sent for the same version again and again: at most one of the requests creates
the file.

Protocol: Delta Log Entries
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, Final

from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CommitOutcomeUnknownError,
    MalformedLogError,
    ObjectNotFoundError,
    StorageError,
)
from deltalog.log.history import commit_info_of
from deltalog.log.names import commit_path
from deltalog.paths import FileInfo
from deltalog.storage.store import NativeStore

if TYPE_CHECKING:
    from deltalog.catalog import Committer
    from deltalog.storage.store import Store
    from deltalog.transaction.backoff import Backoff

logger = logging.getLogger(__name__)

_TRIES: Final = 4


class _Found(Enum):
    """What stands at a version."""

    OURS = "our commit"
    THEIRS = "another commit"
    NOTHING = "no commit"
    UNKNOWN = "nobody knows"


def attempt(
    committer: Committer,
    store: Store,
    version: int,
    data: bytes,
    *,
    txn_id: str,
    backoff: Backoff,
) -> FileInfo | None:
    """Try to make `data` the commit of `version`.

    Returns:
        Where the commit is; None if another one has the version.

    Raises:
        StorageError: the store refused, and the commit was certainly not made.
        CommitOutcomeUnknownError: nobody knows whether it was.
    """
    error: StorageError | None = None
    may_arrive = False
    for number in range(_TRIES):
        if number:
            backoff.wait(number)
        try:
            return committer.commit(store, version, data)
        except AlreadyExistsError as taken:
            error = taken
        except StorageError as failure:
            logger.warning("commit of version %d of %s: %s", version, store.root, failure)
            error = failure
        found, file = _look(committer, store, version, txn_id)
        if found is _Found.OURS:
            return file
        if found is _Found.THEIRS:
            return None
        is_final = _is_final(error, store, version)
        if found is _Found.NOTHING and is_final and not may_arrive:
            raise error
        may_arrive = may_arrive or not is_final
    raise CommitOutcomeUnknownError(
        f"the commit of version {version} of {store.root} may or may not have happened: the store "
        f"failed {_TRIES} times, last with: {error}; look for txnId {txn_id!r} in the table's "
        "history before you repeat the operation",
        version=version,
        txn_id=txn_id,
    ) from error


def _is_final(error: StorageError, store: Store, version: int) -> bool:
    """Whether a failed request cannot arrive later: it was refused, or never left the machine."""
    if isinstance(error, AlreadyExistsError):
        return False
    if isinstance(error, AccessDeniedError):
        return True
    return isinstance(store, NativeStore) and store.native_path(commit_path(version)) is not None


def _look(
    committer: Committer, store: Store, version: int, txn_id: str
) -> tuple[_Found, FileInfo | None]:
    """Whose commit stands at a version."""
    try:
        path = _path_of(committer, store, version)
        if path is None:
            return _Found.NOTHING, None
        data = store.read(path)
        found = commit_info_of(data, version).get("txnId")
    except ObjectNotFoundError:
        return _Found.NOTHING, None
    except MalformedLogError:
        return _Found.THEIRS, None
    except StorageError as error:
        logger.warning("reading version %d of %s back: %s", version, store.root, error)
        return _Found.UNKNOWN, None
    if found == txn_id:
        return _Found.OURS, FileInfo(path, len(data), 0)
    return _Found.THEIRS, None


def _path_of(committer: Committer, store: Store, version: int) -> str | None:
    tail = committer.log_tail(store)
    if tail is None:
        return commit_path(version)
    for commit in tail.commits:
        if commit.version == version:
            return commit.file.path
    last = tail.last_version
    return None if last is None or version > last else commit_path(version)
