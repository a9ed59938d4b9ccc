"""Committers: they create a version with the store's put-if-absent, or through a catalog.

Of all commits that writers propose for a version, a committer accepts exactly one (see
`log.context.Committer`). `commit_loop` handles commits that are not accepted.

Protocol: Delta Log Entries; Catalog-managed tables
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.clock import Clock, SystemClock, now_ms
from deltalog._util.paths import FileInfo
from deltalog.errors import (
    AlreadyExistsError,
    CommitFailedError,
    MalformedLogError,
    ObjectNotFoundError,
)
from deltalog.log.context import Catalog, LogTail, RatifiedCommit
from deltalog.log.history import commit_info_of
from deltalog.log.names import STAGED_DIRECTORY, commit_path
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.storage.store import Store


class FileSystemCommitter:
    """Commits with put-if-absent: only one writer can create the commit file of a version."""

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """Create the commit file in `_delta_log`; see `Committer.commit`."""
        path = commit_path(version)
        store.put_if_absent(path, data)
        return FileInfo(path, len(data), now_ms())

    def log_tail(self, _store: Store) -> LogTail | None:
        """Return None: there is no catalog."""
        return None


class CatalogCommitter:
    """Commits through a catalog: writes a staged commit, then the catalog ratifies it.

    Args:
        catalog: catalog of the table.

    Protocol: Catalog-managed tables (Staged Commits)
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """Stage the commit and propose it to the catalog; see `Committer.commit`."""
        # Publish version 0 directly, because the catalog does not have the table yet.
        if version == 0:
            file = FileInfo(commit_path(0), len(data), now_ms())
            store.put_if_absent(file.path, data)
        else:
            file = stage_commit(store, version, data, lambda: self.log_tail(store))
        self.catalog.propose(store.root, RatifiedCommit(version=version, file=file))
        return file

    def log_tail(self, store: Store) -> LogTail | None:
        """Return the newest commits in the catalog; see `Committer.log_tail`."""
        return self.catalog.latest(store.root)


def stage_commit(
    store: Store, version: int, data: bytes, log_tail: Callable[[], LogTail | None]
) -> FileInfo:
    """Write a staged commit for a catalog to ratify; return its file.

    Args:
        store: store of the table.
        version: version of the commit.
        data: content of the commit.
        log_tail: requests the newest commits from the catalog.

    Raises:
        AlreadyExistsError: the catalog has ratified another commit of that version.
        CommitFailedError: the log contains a published commit of that version that the catalog
            lacks, because the catalog was rolled back. The new commit could never be published.

    Cost: two requests at the same time.
    """
    path = f"{STAGED_DIRECTORY}/{version:020d}.{uuid.uuid4()}.json"
    asked: list[Callable[[], Any]] = [
        lambda: _is_published(store, version),
        lambda: store.put_if_absent(path, data),
    ]
    is_published, _ = map_in_pool(lambda ask: ask(), asked)
    if is_published:
        tail = log_tail()
        last = None if tail is None else tail.last_version
        if last is None or last >= version:
            raise AlreadyExistsError(f"version {version} of {store.root} is already ratified")
        raise CommitFailedError(
            f"cannot commit version {version} of {store.root}: version {last} is the latest in its "
            f"catalog, but {commit_path(version)!r} already exists; the catalog was rolled back or "
            "has lost commits; nothing was committed; register the published commits in the "
            "catalog, or move them away if they should not be part of the table"
        )
    return FileInfo(path, len(data), now_ms())


def _is_published(store: Store, version: int) -> bool:
    try:
        store.stat(commit_path(version))
    except ObjectNotFoundError:
        return False
    return True


def publish_commit(store: Store, version: int, data: bytes) -> None:
    """Copy a ratified commit to its final path in `_delta_log`, unless it is already there.

    Raises:
        MalformedLogError: another commit has the path; it is not changed.
    """
    path = commit_path(version)
    try:
        store.put_if_absent(path, data)
    except AlreadyExistsError:
        if not _is_same(store.read(path), data, version):
            raise MalformedLogError(
                f"cannot publish version {version} of {store.root}: {path!r} exists, but its "
                "content differs from the commit that the table's catalog has ratified: the "
                "catalog was rolled back, or has lost commits; only readers that use the catalog "
                f"see the ratified version {version}"
            ) from None


def _is_same(found: bytes, ratified: bytes, version: int) -> bool:
    """Return whether two byte strings are the same commit: equal, or with the same `txnId`."""
    if found == ratified:
        return True
    try:
        ids = [commit_info_of(data, version).get("txnId") for data in (found, ratified)]
    except MalformedLogError:
        return False
    return ids[0] is not None and ids[0] == ids[1]


# --- Waiting times and limits of commit attempts


MAX_RETRIES: Final = 10_000
MAX_WAIT_MS: Final = 10 * 60 * 1000
_SHORTEST_SECONDS: Final = 0.01
_LONGEST_SECONDS: Final = 1.0


def _jitter() -> float:
    return random.random()  # noqa: S311  # not for cryptography; simulations replace `random`


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Exponential backoff with full jitter: a random time below a limit that doubles up to 1 s.

    Args:
        clock: returns the time and sleeps.
        jitter: returns a number from 0 to 1.
        max_retries: the maximum number of attempts after the first.
        max_wait_ms: no attempt begins later than this time after the first attempt.
    """

    clock: Clock = field(default_factory=SystemClock)
    jitter: Callable[[], float] = _jitter
    max_retries: int = MAX_RETRIES
    max_wait_ms: int = MAX_WAIT_MS
    started_ms: int = field(init=False)

    def __post_init__(self) -> None:
        """Record when the first attempt began."""
        self.started_ms = self.clock.now_ms()

    def wait(self, number: int) -> None:
        """Wait before the retry with this number, counted from 1."""
        limit = min(_LONGEST_SECONDS, _SHORTEST_SECONDS * 2 ** min(number, 10))
        self.clock.sleep(limit * self.jitter())

    def allows(self, number: int) -> bool:
        """Return whether the retry with this number, counted from 1, may begin."""
        waited_ms = self.clock.now_ms() - self.started_ms
        return number <= self.max_retries and waited_ms < self.max_wait_ms
