"""The context of a table: the settings that apply to all operations on it.

A snapshot has a context; scans and transactions use the context of their snapshot. So functions get
the time zone and the clock from the context, not from an argument that a caller may forget.
Otherwise a partition value without a time zone could be written and read in different zones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from deltalog._util.clock import Clock, SystemClock, utc_moment
from deltalog.errors import InvalidInputError
from deltalog.expressions.sql_session import SqlSession

if TYPE_CHECKING:
    from datetime import datetime

    from deltalog._util.paths import FileInfo
    from deltalog.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableContext:
    """The store of a table, and the settings of all operations on it; picklable.

    Args:
        store: store of the table.
        time_zone: time zone of timestamps and partition values without a zone, as an IANA name or
            an offset.
        clock: returns the current time, and sleeps.
        committer: makes commits; None means the store's put-if-absent.
        log_tail: the newest commits, for a table whose catalog decides which commits are part of
            it; None if the table was opened by its path.
    """

    store: Store
    time_zone: str
    clock: Clock = field(default_factory=SystemClock)
    committer: Committer | None = None
    log_tail: LogTail | None = None

    @property
    def now(self) -> datetime:
        """Return the current time in UTC, from the context's clock."""
        return utc_moment(self.clock.now_ms())

    @property
    def session(self) -> SqlSession:
        """Return the current time and the time zone for the expressions of one operation."""
        return SqlSession(now=self.now, time_zone=self.time_zone)

    def with_log_tail(self, log_tail: LogTail | None) -> TableContext:
        """Return the same context with another log tail."""
        return self if log_tail is self.log_tail else replace(self, log_tail=log_tail)

    def with_newest_log_tail(self) -> TableContext:
        """Return the same context with the newest log tail from its committer, if there is one.

        Cost: for a catalog-managed table, a request to the catalog.
        """
        asked = None if self.committer is None else self.committer.log_tail(self.store)
        return self if asked is None else self.with_log_tail(asked)


def utc_context(store: Store) -> TableContext:
    """Return a context in which values without a time zone are in UTC."""
    return TableContext(store=store, time_zone="UTC")


# --- Interface to catalogs that manage a table's commits


@dataclass(frozen=True, slots=True, kw_only=True)
class RatifiedCommit:
    """A commit that the catalog has accepted.

    Args:
        version: version of the commit.
        file: the file with the actions, usually in `_delta_log/_staged_commits/`.
    """

    version: int
    file: FileInfo


class MaintenanceOperation(Enum):
    """Maintenance of a catalog-managed table, which needs the catalog's permission."""

    DATA_REORGANIZATION = "DATA_REORGANIZATION"
    """Rewrite rows of the table: OPTIMIZE, REORG."""
    DATA_CLEANUP = "DATA_CLEANUP"
    """Delete files that no version within the retention period needs: VACUUM."""
    METADATA_CLEANUP = "METADATA_CLEANUP"
    """Delete log files that only expired versions need, including staged commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The newest commits of a table according to its catalog.

    Args:
        commits: ratified commits, in ascending order and without gaps.
        latest_version: the table's latest version. Published commits of later versions are not part
            of the table.
        allowed: the maintenance operations that the catalog allows clients to run.

    Raises:
        InvalidInputError: a version is missing, repeated, or after `latest_version`.
    """

    commits: tuple[RatifiedCommit, ...] = ()
    latest_version: int | None = None
    allowed: frozenset[MaintenanceOperation] = frozenset()

    def __post_init__(self) -> None:
        """Check that the versions have no gaps and end at `latest_version`."""
        versions = [commit.version for commit in self.commits]
        if versions and versions != list(range(versions[0], versions[0] + len(versions))):
            raise InvalidInputError(
                f"expected a log tail with ascending versions and no gaps, found {versions}"
            )
        if versions and self.latest_version not in {None, versions[-1]}:
            raise InvalidInputError(
                "expected a log tail that ends at the catalog's latest version "
                f"{self.latest_version}, found one that ends at version {versions[-1]}"
            )

    @property
    def last_version(self) -> int | None:
        """The last version of the table, from the last commit or else `latest_version`."""
        return self.commits[-1].version if self.commits else self.latest_version


@runtime_checkable
class Catalog(Protocol):
    """Decides which commits of a table are valid.

    `deltalog.testing.InMemoryCatalog` is a simple implementation for tests.
    """

    def latest(self, table: str) -> LogTail:
        """Return the newest commits of the table.

        Args:
            table: location of the table, as in `Store.root`.
        """
        ...

    def propose(self, table: str, commit: RatifiedCommit) -> None:
        """Propose a staged commit as the next version of the table.

        Raises:
            AlreadyExistsError: another commit is ratified for this version.
            StorageError: the outcome is unknown; the same proposal may be sent again.
        """
        ...


class Committer(Protocol):
    """Makes commits, at most one for each version."""

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """Commit `data` as `version`, and return the file of the commit.

        Raises:
            AlreadyExistsError: the version already exists, perhaps from an earlier request for this
                commit.
            StorageError: the commit may or may not have been made.
        """
        ...

    def log_tail(self, store: Store) -> LogTail | None:
        """Return the newest commits from a catalog; None without a catalog."""
        ...
