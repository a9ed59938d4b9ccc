"""What is in `_delta_log` now: one listing, from the hint or from the start.

Owns how the log is listed and where from. The choice of files is `segment`'s.

Protocol: Last Checkpoint File, Checkpoints
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.log.names import LOG_DIRECTORY, LogFile, LogFileKind, first_name_of
from deltalog.log.segment import LogListing, sort_listing

if TYPE_CHECKING:
    from deltalog.catalog import LogTail
    from deltalog.log.hint import LastCheckpointHint
    from deltalog.storage.store import Store


def list_log(
    store: Store,
    *,
    from_version: int | None = None,
    version: int | None = None,
    hint: LastCheckpointHint | None = None,
    log_tail: LogTail | None = None,
) -> LogListing:
    """The files of the log by kind.

    Args:
        store: of the table.
        from_version: list files of this version and later, whatever the hint says.
        version: the version that is wanted; None is the latest.
        hint: start at its checkpoint, if that can make `version`.
        log_tail: a catalog's newest commits; then nothing after them counts.

    Returns:
        A listing that starts at a checkpoint which is really there, or at version 0.

    Cost: one listing; two if the hint names a checkpoint that is gone.
    """
    if from_version is not None:
        return _list(store, from_version, log_tail)
    if hint is not None and hint.version > 0 and (version is None or hint.version <= version):
        listing = _list(store, hint.version, log_tail)
        if any(version is None or found.version <= version for found in listing.checkpoints):
            return listing
    return _list(store, 0, log_tail)


def _list(store: Store, first: int, log_tail: LogTail | None) -> LogListing:
    ratified = () if log_tail is None else log_tail.commits
    return sort_listing(
        store.list_from(LOG_DIRECTORY, first_name_of(first)),
        table=store.root,
        first=first,
        ratified=[
            LogFile(LogFileKind.COMMIT, commit.version, commit.file)
            for commit in ratified
            if commit.version >= first
        ],
        last=None if log_tail is None else log_tail.last_version,
    )
