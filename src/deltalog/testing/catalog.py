"""A catalog in memory: the smallest one that keeps the protocol's promises.

A reference for those who write a real one, and something for tests to commit through.

Protocol: Catalog-managed tables
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from deltalog.catalog import LogTail, MaintenanceOperation, RatifiedCommit
from deltalog.errors import AlreadyExistsError, ObjectNotFoundError
from deltalog.log.names import commit_path
from deltalog.transaction.committer import publish_commit

if TYPE_CHECKING:
    from collections.abc import Collection

    from deltalog.storage.store import Store


class InMemoryCatalog:
    """Ratifies staged commits in order, one per version. Threads may share it.

    Args:
        allowed: the maintenance operations that it allows; all by default.
    """

    def __init__(
        self, allowed: Collection[MaintenanceOperation] = tuple(MaintenanceOperation)
    ) -> None:
        self._allowed = frozenset(allowed)
        self._lock = threading.Lock()
        self._latest: dict[str, int] = {}
        self._unpublished: dict[str, list[RatifiedCommit]] = {}

    def latest(self, table: str) -> LogTail:
        """As `Catalog`."""
        with self._lock:
            return LogTail(
                commits=tuple(self._unpublished.get(table, ())),
                latest_version=self._latest.get(table),
                allowed=self._allowed,
            )

    def propose(self, table: str, commit: RatifiedCommit) -> None:
        """As `Catalog`."""
        with self._lock:
            next_version = self._latest.get(table, -1) + 1
            if commit.version < next_version:
                raise AlreadyExistsError(f"version {commit.version} of {table} is ratified already")
            if commit.version > next_version:
                raise ObjectNotFoundError(
                    f"cannot ratify version {commit.version} of {table}: the next is {next_version}"
                )
            self._latest[table] = commit.version
            if commit.file.path != commit_path(commit.version):
                self._unpublished.setdefault(table, []).append(commit)

    def register(self, table: str, version: int) -> None:
        """Take over a table whose commits up to `version` are published."""
        with self._lock:
            self._latest[table] = version

    def publish(self, store: Store) -> list[int]:
        """Copy ratified commits to the names of published ones; the versions.

        Raises:
            MalformedLogError: another commit is published as one of these versions.
        """
        with self._lock:
            waiting = list(self._unpublished.get(store.root, ()))
        for commit in waiting:
            publish_commit(store, commit.version, store.read(commit.file.path))
        with self._lock:
            known = self._unpublished.get(store.root, [])
            self._unpublished[store.root] = [one for one in known if one not in waiting]
        return [commit.version for commit in waiting]

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a catalog in memory stays in its process")
