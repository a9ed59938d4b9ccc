"""Load a snapshot: the latest, by version number, or by timestamp.

Protocol: Snapshots
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError, TableNotFoundError, VersionNotFoundError
from deltalog.log.history import find_version_at
from deltalog.log.listing import list_log
from deltalog.snapshot.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    from deltalog.context import TableContext


def load_snapshot(
    context: TableContext, *, version: int | None = None, timestamp_ms: int | None = None
) -> Snapshot:
    """Load the latest version of a table, the given version, or that at a timestamp.

    Args:
        context: of the table; its committer is asked for the newest commits.
        version: the version to load.
        timestamp_ms: milliseconds since 1970, UTC; not together with `version`.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: the version is after the latest one; the timestamp is before the first
            one, or in the future.
        MalformedLogError: the version cannot be built from the log; its subclasses say why.

    Cost: hint, one listing, the commits after the checkpoint, a few small leaves of the
    checkpoint. Nothing per file.
    """
    context = context.with_newest_log_tail()
    if timestamp_ms is not None:
        if version is not None:
            raise InvalidInputError("expected a version or a moment to read at, found both")
        version = find_version(context, timestamp_ms)
    try:
        return open_snapshot(context, version)
    except TableNotFoundError as error:
        if error.log_begins:
            raise
        from deltalog.log.absence import absent_table  # noqa: PLC0415  # there is a table, mostly

        raise absent_table(context.store) from None


def load_if_any(context: TableContext) -> Snapshot | None:
    """Load the latest version of a table; None if no log begins at its location.

    Args:
        context: as for `load_snapshot`.

    Raises:
        TableNotFoundError: there is a part of a log: a checkpoint that is incomplete.
        MalformedLogError: as for `load_snapshot`.

    Cost: as for `load_snapshot`; one listing if there is no table.
    """
    try:
        return open_snapshot(context.with_newest_log_tail())
    except TableNotFoundError as error:
        if error.log_begins:
            raise
        return None


def find_version(
    context: TableContext, timestamp_ms: int, *, latest: Snapshot | None = None
) -> int:
    """Find the version that the table had at a timestamp.

    A timestamp after the last commit gives the latest version, unless it is in the future.

    Args:
        context: of the table.
        timestamp_ms: milliseconds since 1970, UTC.
        latest: the latest version, if it is loaded already.

    Raises:
        VersionNotFoundError: the timestamp is before the first version that can be read, or in the
            future.

    Cost: opening the latest version, one listing of the whole log, and with in-commit timestamps
    a request per step of a binary search.
    """
    latest = latest or load_snapshot(context)
    return find_version_at(
        context.store,
        list_log(context.store, from_version=0, log_tail=context.log_tail),
        timestamp_ms,
        in_commit_timestamps=latest.configuration.in_commit_timestamps,
        now_ms=context.clock.now_ms(),
    )


def in_place(snapshot: Snapshot) -> Snapshot:
    """The same snapshot, if the log still has its version; else the latest of the same table.

    Whoever writes on top of a version that was read some time ago asks first: the name of the next
    version is free, too, where the table is gone, was created anew, was set back, or cleaned up.

    Raises:
        TableNotFoundError: the table is gone, or is another one.

    Cost: one request; if the version is gone, also those of opening the table.
    """
    return snapshot if snapshot.is_in_place() else snapshot.refresh(same_table=True)


def checked_in_place(snapshot: Snapshot, operation: str) -> Snapshot:
    """The same snapshot; refuses to write files for a version that the log has no more.

    Args:
        snapshot: the version.
        operation: what is to be done, as a verb: `write a checkpoint of`.

    Raises:
        TableNotFoundError: the table is gone, or is another one.
        VersionNotFoundError: the version is gone.

    Cost: as `in_place`.
    """
    if (latest := in_place(snapshot)) is not snapshot:
        raise VersionNotFoundError(
            f"cannot {operation} version {snapshot.version} of {snapshot.store.root}: the log has "
            f"another commit of it by now, or none; the latest version is {latest.version}"
        )
    return snapshot
