"""Opening a table: the latest version, a version, or a moment.

Protocol: Snapshots
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalog.errors import InvalidInputError
from deltalog.snapshot.snapshot import Snapshot
from deltalog.snapshot.state import open_log

if TYPE_CHECKING:
    from deltalog.catalog import LogTail
    from deltalog.storage.store import Store


def load_snapshot(
    store: Store,
    *,
    version: int | None = None,
    timestamp_ms: int | None = None,
    log_tail: LogTail | None = None,
) -> Snapshot:
    """The table at its latest version, at `version`, or as it was at a moment.

    Args:
        store: of the table.
        version: which version.
        timestamp_ms: milliseconds since 1970, UTC; not together with `version`.
        log_tail: the newest commits, for a table whose catalog decides on them.

    Raises:
        TableNotFoundError: there is no table.
        VersionNotFoundError: the version or the moment is after the latest one.
        MalformedLogError: the log cannot make the version; its leaves say why.

    Cost: hint, one listing, the commits after the checkpoint, a few small leaves of the
    checkpoint. Nothing per file.
    """
    if timestamp_ms is not None:
        raise InvalidInputError("time travel by timestamp is not there yet")
    state, protocol, metadata = open_log(store, version, log_tail=log_tail)
    return Snapshot(store, state, protocol=protocol, metadata=metadata, log_tail=log_tail)
