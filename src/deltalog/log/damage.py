"""Say in the error of a damaged commit what to do about it.

Protocol: Delta Log Entries
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltalog.errors import MalformedLogError
from deltalog.log.listing import list_log
from deltalog.log.reader import naming_the_table, read_commits
from deltalog.log.segment import readable_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltalog.log.context import LogTail
    from deltalog.log.names import LogFile
    from deltalog.storage.store import Store


@contextmanager
def advising_on_damage(
    store: Store, commits: Iterable[LogFile], log_tail: LogTail | None
) -> Iterator[None]:
    """Make errors about damaged commits in the `with` block name the table and the way out.

    Args:
        store: the table's store.
        commits: the commits that are read in the block, oldest first.
        log_tail: the newest commits of a catalog-managed table.

    Cost: none without an error; otherwise see `note_readable_versions`.
    """
    try:
        with naming_the_table(store):
            yield
    except MalformedLogError as error:
        note_readable_versions(error, store, commits, log_tail)
        raise


def note_readable_versions(
    error: MalformedLogError, store: Store, commits: Iterable[LogFile], log_tail: LogTail | None
) -> None:
    """Add a note about the first damaged commit: the readable versions, and what to do.

    Cost: reads every commit up to the damaged one, and lists the log.
    """
    for file in commits:
        try:
            read_commits(store, [file])
        except MalformedLogError:
            listing = list_log(store, from_version=0, log_tail=log_tail)
            readable = readable_versions(listing, file.version)
            older = (
                ", or open one of these versions by DeltaTable(…, version=…)" if readable else ""
            )
            error.add_note(
                f"the commit of version {file.version} of {store.root}, {file.info.path}, "
                f"is damaged{readable}; restore this file from a backup{older}; `deltalog doctor` "
                "reports all damage"
            )
            return
