"""Open the log of a table, and fall back to other files if one of them cannot be used.

Protocol: Action Reconciliation, Checkpoints
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from deltalog.errors import (
    CheckpointUnreadableError,
    LogGapError,
    MalformedLogError,
    ObjectNotFoundError,
)
from deltalog.log.listing import list_for_version, list_log
from deltalog.log.reader import read_commits
from deltalog.log.segment import build_segment, readable_versions
from deltalog.snapshot.state import LogState

if TYPE_CHECKING:
    from deltalog.actions.model import Metadata, Protocol
    from deltalog.catalog import LogTail
    from deltalog.context import TableContext

logger: logging.Logger = logging.getLogger(__name__)


def open_log(
    context: TableContext, version: int | None = None
) -> tuple[LogState, Protocol, Metadata]:
    """Open the log at `version`, or the latest one, and read protocol and metadata.

    Raises:
        TableNotFoundError, VersionNotFoundError: there is no such table or version.
        MalformedLogError: the version cannot be built from the log; its subclasses say why.

    Cost: the hint, one listing, the commits after the checkpoint, and of the checkpoint its
    footer and the leaves of two actions. Two listings if the hint is stale.
    """
    store, log_tail = context.store, context.log_tail
    listing = list_for_version(store, version, log_tail=log_tail)
    try:
        segment = build_segment(listing, version)
    except LogGapError:
        # List all, so that the error names all readable versions, not only those since the hint.
        segment = build_segment(list_log(store, from_version=0, log_tail=log_tail), version)
    state = LogState(store, segment)
    while True:
        try:
            return state, *state.read_protocol_and_metadata()
        except (CheckpointUnreadableError, ObjectNotFoundError) as error:
            state = other_way(state, error, log_tail)
        except MalformedLogError as error:
            note_readable_versions(error, state, log_tail)
            raise


def note_readable_versions(
    error: MalformedLogError, state: LogState, log_tail: LogTail | None
) -> None:
    """Note which versions are readable despite a damaged commit. Cost: every commit again."""
    for file in state.segment.commits:
        try:
            read_commits(state.store, [file])
        except MalformedLogError:
            listing = list_log(state.store, from_version=0, log_tail=log_tail)
            error.add_note(
                f"the commit of version {file.version} of {state.store.root} is damaged"
                f"{readable_versions(listing, file.version)}"
            )
            return


def other_way(
    state: LogState,
    error: CheckpointUnreadableError | ObjectNotFoundError,
    log_tail: LogTail | None,
) -> LogState:
    """Build the same version from other files: an older or newer checkpoint, or all commits.

    Raises:
        CheckpointUnreadableError: no other files can replace the checkpoint.
        ObjectNotFoundError: no other files can replace a deleted commit.
    """
    unreadable = dict(state.unreadable)
    if isinstance(error, CheckpointUnreadableError):
        if state.segment.checkpoint is None:
            raise error
        unreadable[state.segment.checkpoint.name] = str(error)
    logger.warning("reading %s from other files: %s", state.store.root, error)
    listing = list_log(state.store, from_version=0, log_tail=log_tail)
    segment = build_segment(listing, state.segment.version, unreadable=unreadable)
    if segment == state.segment:
        raise error
    return LogState(state.store, segment, unreadable=unreadable)
