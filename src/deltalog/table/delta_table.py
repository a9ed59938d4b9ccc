"""`DeltaTable`: what users hold.

Its verbs stand in files of their own, each a class that adds some: `reading` (questions to one
snapshot), `writing` (creating, committing, altering), `changing` (rows), `care` (the table whole),
`tending` (what differs, what is wrong, what comes).
"""

from __future__ import annotations

from deltalog.table.tending import TendedTable


class DeltaTable(TendedTable):
    """A Delta table: its rows, its history, and what changes them.

    The object stands on one snapshot at a time. Reads see that snapshot until
    `update_incremental` or `load_as_version` moves the object on; what changes the table moves it
    on to the version that it made. It may be shared by threads, pickled, and used after a fork.

    Args:
        table_uri: path or URL; `table@v3` and `table@20240131120000000` name a version or a
            moment, unless a directory of that very name is there. A `Store` works too.
        version: number, timestamp text (ISO 8601) or datetime; None is the latest.
        storage_options: for the file system: the usual names of the cloud SDKs and of deltalake,
            or fsspec's own; or a callable that gives them anew when credentials expire.
        filesystem: an fsspec or pyarrow file system to use instead.
        log_tail: the newest commits, for a table whose commits a catalog decides on.
        default_timezone: of partition values that carry no zone.
        without_files: accepted for deltalake's users; file columns are read on demand anyway.
        log_buffer_size: accepted likewise.
        skip_stats: accepted likewise.

    Raises:
        TableNotFoundError: there is no Delta table.
        VersionNotFoundError: the version is not there, or not any more.
        MalformedLogError: the log breaks the protocol; the leaves say how.

    Cost: one hint, one listing, the commits after the checkpoint, a few leaves of the checkpoint.
    """
