"""Committers: the store's put-if-absent, or the table's catalog, decides who gets a version.

Owns both. A committer promises that of all commits proposed for a version exactly one is ever made
(`catalog.Committer`); what happens to the others is decided in `commit_loop`.

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
    """Commits by put-if-absent: only one writer can create the file of a version."""

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """As `Committer`."""
        path = commit_path(version)
        store.put_if_absent(path, data)
        return FileInfo(path, len(data), now_ms())

    def log_tail(self, _store: Store) -> LogTail | None:
        """As `Committer`."""
        return None


class CatalogCommitter:
    """Commits through a catalog: stage the commit under a unique name, then have it ratified.

    Args:
        catalog: of the table.

    Protocol: Catalog-managed tables (Staged Commits)
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """As `Committer`."""
        # A catalog cannot ratify for a table that it does not know yet: version 0 is published.
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
