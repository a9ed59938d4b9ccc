"""One attempt to commit a version, and finding out whether an ambiguous attempt succeeded.

Owns ambiguous outcomes: a store may report an error although the commit was made, and a repeated
request finds the file that its own first copy created. The version is read back, and its `txnId`
tells whose commit it is. Sending the same bytes for the same version again is safe: at most one of
the requests creates the file.

Protocol: Delta Log Entries
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, Final

from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    CatalogError,
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

logger: logging.Logger = logging.getLogger(__name__)

_TRIES: Final = 4


class _Found(Enum):
    """Whose commit a version holds."""

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
    """Try to write `data` as the commit of `version`.

    Returns:
        The file of the commit; None if another writer's commit has the version.

    Raises:
        StorageError: the store refused; the commit was certainly not made.
        CommitOutcomeUnknownError: it cannot be found out whether the commit was made.
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
        # "Nothing there" proves a failure only if no earlier request can still arrive.
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
    """Whether a failed request cannot take effect later: it was refused, or the store is local."""
    # The commit that exists may be our own first copy: no proof of failure.
    if isinstance(error, AlreadyExistsError):
        return False
    if isinstance(error, AccessDeniedError):
        return True
    if isinstance(error, CatalogError):
        return error.was_refused
    return isinstance(store, NativeStore) and store.native_path(commit_path(version)) is not None


def _look(
    committer: Committer, store: Store, version: int, txn_id: str
) -> tuple[_Found, FileInfo | None]:
    """Read a version back and compare its `txnId` with ours."""
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
