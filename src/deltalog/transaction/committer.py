"""Who makes a commit happen: the store's put-if-absent, or the table's catalog.

Owns the two ways. A committer promises that of all commits proposed for one version exactly one
is ever made (`catalog.Committer`); what happens to the others is for `commit`.

Protocol: Delta Log Entries; Catalog-managed tables
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from deltalog.catalog import RatifiedCommit
from deltalog.clock import now_ms
from deltalog.log.names import STAGED_DIRECTORY, commit_path
from deltalog.paths import FileInfo

if TYPE_CHECKING:
    from deltalog.catalog import Catalog, LogTail
    from deltalog.storage.store import Store


class FileSystemCommitter:
    """The store decides: a commit is a file that only one writer can create."""

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """As `Committer`."""
        path = commit_path(version)
        store.put_if_absent(path, data)
        return FileInfo(path, len(data), now_ms())

    def log_tail(self, _store: Store) -> LogTail | None:
        """As `Committer`."""
        return None


class CatalogCommitter:
    """The catalog decides: a commit is staged under a name of its own, and then ratified.

    Args:
        catalog: of the table.

    Protocol: Catalog-managed tables (Staged Commits)
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """As `Committer`."""
        # No catalog knows of a table before it is there: its first commit is published at once.
        path = f"{STAGED_DIRECTORY}/{version:020d}.{uuid.uuid4()}.json"
        if version == 0:
            path = commit_path(0)
        store.put_if_absent(path, data)
        file = FileInfo(path, len(data), now_ms())
        self.catalog.propose(store.root, RatifiedCommit(version=version, file=file))
        return file

    def log_tail(self, store: Store) -> LogTail | None:
        """As `Committer`."""
        return self.catalog.latest(store.root)
