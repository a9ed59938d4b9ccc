"""Open the log of a table, and fall back to other files if some are unusable.

This module also checks whether the log still contains the version of a snapshot. Meanwhile the
table may have been deleted, recreated at the same location or rolled back, or old commits may have
been cleaned up. A version is recognised by the first bytes of its commit, which contain the writer,
the time and the transaction.

Protocol: Action Reconciliation, Checkpoints
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from deltalog.errors import (
    CheckpointUnreadableError,
    LogGapError,
    MalformedLogError,
    NoMetadataError,
    NoProtocolError,
    ObjectNotFoundError,
)
from deltalog.log.listing import list_for_version, list_log, list_newer
from deltalog.log.reader import with_readable_versions
from deltalog.log.segment import LogListing, build_segment
from deltalog.log.snapshot.state import LogState
from deltalog.storage.pool import map_in_pool
from deltalog.storage.store import is_local, is_peeking

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog._util.paths import FileInfo
    from deltalog.log.context import LogTail, TableContext
    from deltalog.protocol.actions.model import Metadata, Protocol

logger: logging.Logger = logging.getLogger(__name__)


def open_log(
    context: TableContext, version: int | None = None
) -> tuple[LogState, Protocol, Metadata]:
    """Open the log at `version`, or at the latest version, and read protocol and metadata.

    Raises:
        TableNotFoundError, VersionNotFoundError: there is no such table or version.
        MalformedLogError: the version cannot be built from the log; subclasses name the reason.

    Cost: reads `_last_checkpoint`, lists once (twice if `_last_checkpoint` is out of date), and
    reads the commits after the checkpoint, the footer of the checkpoint, and its protocol and
    metadata.
    """
    store, log_tail = context.store, context.log_tail
    listing = list_for_version(store, version, log_tail=log_tail)
    try:
        segment = build_segment(listing, version)
    except LogGapError:
        # List the whole log, so that the error message contains all readable versions.
        segment = build_segment(list_log(store, from_version=0, log_tail=log_tail), version)
    state = LogState(store, segment)
    while True:
        try:
            protocol, metadata = state.read_protocol_and_metadata()
            if state.segment.used_compactions:
                from deltalog.log.snapshot.totals import check_table  # noqa: PLC0415  # rarely needed

                check_table(state, protocol, metadata)
        except (CheckpointUnreadableError, ObjectNotFoundError) as error:
            state = other_way(state, error, log_tail)
        except MalformedLogError as error:
            state = way_around(state, error, log_tail)
        else:
            return state, protocol, metadata


def way_around(state: LogState, error: MalformedLogError, log_tail: LogTail | None) -> LogState:
    """Build the same version without a damaged compaction or checkpoint.

    Raises:
        MalformedLogError: `error` with the readable versions, if a commit is damaged or no other
            files can be used.
    """
    lacks_table = isinstance(error, NoProtocolError | NoMetadataError)
    with suppress(MalformedLogError):
        if state.segment.used_compactions or (lacks_table and state.checkpoint is not None):
            return other_way(state, CheckpointUnreadableError(str(error)), log_tail)
    if state.store.root not in str(error):
        error = error.with_message(f"cannot read the log of {state.store.root}: {error}")
    commits = state.segment.commits
    raise with_readable_versions(error, state.store, commits, log_tail) from error.__cause__


def other_way(
    state: LogState,
    error: CheckpointUnreadableError | ObjectNotFoundError,
    log_tail: LogTail | None,
) -> LogState:
    """Build the same version from other files.

    First commits replace compactions; then another checkpoint, or all commits, replace the
    checkpoint.

    Raises:
        CheckpointUnreadableError: no other files can replace the checkpoint.
        ObjectNotFoundError: no other files can replace a deleted commit.
    """
    unreadable = dict(state.unreadable)
    if isinstance(error, CheckpointUnreadableError):
        names = [file.info.name for file in state.segment.used_compactions]
        if not names and state.segment.checkpoint is not None:
            names = [state.segment.checkpoint.name]
        if not names:
            raise error
        unreadable |= dict.fromkeys(names, str(error))
    logger.warning("reading %s from other files: %s", state.store.root, error)
    listing = list_log(state.store, from_version=0, log_tail=log_tail)
    segment = build_segment(listing, state.segment.version, unreadable=unreadable)
    if segment == state.segment:
        raise error
    other = LogState(state.store, segment, unreadable=unreadable, head=state.head)
    other.totals = state.totals
    return other


def is_in_place(context: TableContext, state: LogState, *, knows_time: bool) -> bool:
    """Return whether the log still contains a version; always true for catalog-managed tables.

    Args:
        context: the table's context.
        state: the state of the log at the version.
        knows_time: whether the state contains the modification time of the version's commit.

    Cost: one request.
    """
    if context.log_tail is not None or context.committer is not None:
        return True
    target, checkpoint = state.segment.target_commit, state.segment.checkpoint
    store = context.store
    try:
        if target is not None and state.head:
            return store.read_ranges(target.path, [(0, len(state.head))]) == [state.head]
        if target is not None:
            return is_same_commit(target, store.stat(target.path), knows_time=knows_time)
        if checkpoint is not None:  # the commit was cleaned up
            return is_same_commit(checkpoint.files[0], store.stat(checkpoint.files[0].path))
    except ObjectNotFoundError:
        return False
    return False


def is_listed(state: LogState, listing: LogListing, *, knows_time: bool) -> bool:
    """Return whether a listing may be of the same log from which a version was read.

    If a version was cleaned up, so were all versions before it.

    Args:
        state: the state of the log at the version.
        listing: a listing of the log, which starts at or before the version.
        knows_time: see `is_in_place`.
    """
    version, known = state.segment.version, state.segment.target_commit
    found = listing.commits.get(version)
    if known is None:
        return True
    if found is None:
        return listing.begins and min(listing.commits, default=version) >= version
    return is_same_commit(known, found.info, knows_time=knows_time)


def list_after(
    context: TableContext, state: LogState, *, knows_time: bool, is_long: bool
) -> LogListing | None:
    """List the log after a version; None if the log no longer contains the version.

    Args:
        context: the context of the table, with the newest log tail.
        state: see `is_in_place`.
        knows_time: see `is_in_place`.
        is_long: whether to list all files, to find a newer checkpoint.

    Cost: a request for the version's commit, and the requests of `list_newer`; or one listing.
    """
    store, log_tail, version = context.store, context.log_tail, state.segment.version
    known = state.segment.target_commit
    if known is None:
        return None
    # File times may be rounded to seconds, or unknown for commits of this process. Then compare the
    # first bytes of the commit.
    is_doubtful = not knows_time or is_peeking(store)
    if is_doubtful and state.head and log_tail is None:
        newer: Callable[[], LogListing] = partial(list_newer, store, version + 1, expected=1)
        if is_long:
            newer = partial(list_log, store, from_version=version)
        look = partial(is_in_place, context, state, knows_time=knows_time)
        if is_local(store):
            return newer() if look() else None
        looks: list[Callable[[], Any]] = [look, newer]
        is_there, listing = map_in_pool(lambda ask: ask(), looks)
        return listing if is_there else None
    if is_long:
        listing = list_log(store, from_version=version, log_tail=log_tail)
    else:
        listing = list_newer(store, version, log_tail=log_tail)
    now = listing.commits.get(version)
    # The known commit was cleaned up, or another table has replaced the table.
    if now is None or not is_same_commit(known, now.info, knows_time=knows_time):
        return None
    return listing


def is_same_commit(one: FileInfo, other: FileInfo, *, knows_time: bool = True) -> bool:
    """Return whether the entries of two listings may be the same commit."""
    # When a staged commit is published, its path and its modification time change. Then compare
    # only the sizes.
    if one.path != other.path or not knows_time:
        return one.size_bytes == other.size_bytes
    return one == other
