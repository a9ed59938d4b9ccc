"""The context of a table: the settings that apply to all work on it.

Owns `TableContext`. A snapshot has a context; a scan and a transaction use their snapshot's. So a
function gets its time zone or clock from there, and never from a keyword that a caller may forget.
Otherwise a partition value without a zone could be read in one zone and written in another.
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
    """A table's location, and how its values, times and commits are interpreted; picklable.

    Args:
        store: the table's store.
        time_zone: IANA name or offset, for timestamps and partition values without a time zone.
        clock: returns the current time, and sleeps.
        committer: publishes commits; None uses the store's own put-if-absent.
        log_tail: the newest commits, for a table whose catalog decides on them; None if the table
            was opened by its path.
    """

    store: Store
    time_zone: str
    clock: Clock = field(default_factory=SystemClock)
    committer: Committer | None = None
    log_tail: LogTail | None = None

    @property
    def now(self) -> datetime:
        """Return the current time in UTC, by the context's clock."""
        return utc_moment(self.clock.now_ms())

    @property
    def session(self) -> SqlSession:
        """Return current time and time zone for expressions; call it once for each operation."""
        return SqlSession(now=self.now, time_zone=self.time_zone)

    def with_log_tail(self, log_tail: LogTail | None) -> TableContext:
        """Return the same context with other newest commits."""
        return self if log_tail is self.log_tail else replace(self, log_tail=log_tail)

    def with_newest_log_tail(self) -> TableContext:
        """Return the same context with the newest commits from its committer, if it has any.

        Cost: a request to the catalog, if one decides on the commits.
        """
        asked = None if self.committer is None else self.committer.log_tail(self.store)
        return self if asked is None else self.with_log_tail(asked)


def utc_context(store: Store) -> TableContext:
    """Return the context of a table whose zone-less values are in UTC."""
    return TableContext(store=store, time_zone="UTC")


# --- the interface to a catalog that manages a table's commits


@dataclass(frozen=True, slots=True, kw_only=True)
class RatifiedCommit:
    """A commit that the catalog has accepted.

    Args:
        version: the table version that it makes.
        file: where its actions are, usually in `_delta_log/_staged_commits/`.
    """

    version: int
    file: FileInfo


class MaintenanceOperation(Enum):
    """Maintenance of a catalog-managed table, which needs the catalog's permission."""

    DATA_REORGANIZATION = "DATA_REORGANIZATION"
    """Rewrite rows of the table: OPTIMIZE, REORG."""
    DATA_CLEANUP = "DATA_CLEANUP"
    """Delete files that no version within the retention needs: VACUUM."""
    METADATA_CLEANUP = "METADATA_CLEANUP"
    """Delete log files that only expired versions need, staged commits among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The newest commits of a table according to its catalog.

    Args:
        commits: ratified commits, ascending and without a gap.
        latest_version: the table's latest version; files published after it do not belong to it.
        allowed: the maintenance operations that the catalog allows its clients.

    Raises:
        InvalidInputError: a version is missing, repeated, or after `latest_version`.
    """

    commits: tuple[RatifiedCommit, ...] = ()
    latest_version: int | None = None
    allowed: frozenset[MaintenanceOperation] = frozenset()

    def __post_init__(self) -> None:
        """Check that the versions are contiguous and end at `latest_version`."""
        versions = [commit.version for commit in self.commits]
        if versions and versions != list(range(versions[0], versions[0] + len(versions))):
            raise InvalidInputError(
                f"a log tail must contain every version once, ascending; found {versions}"
            )
        if versions and self.latest_version not in {None, versions[-1]}:
            raise InvalidInputError(
                "expected a log tail that ends at the catalog's latest version "
                f"{self.latest_version}, found one that ends at version {versions[-1]}"
            )

    @property
    def last_version(self) -> int | None:
        """The last version of the table: that of the last commit, else `latest_version`."""
        return self.commits[-1].version if self.commits else self.latest_version


@runtime_checkable
class Catalog(Protocol):
    """Decides which commits of a table are valid.

    `deltalog.testing.InMemoryCatalog` is a small one for tests.
    """

    def latest(self, table: str) -> LogTail:
        """Return the newest commits of the table.

        Args:
            table: its location, as in `Store.root`.
        """
        ...

    def propose(self, table: str, commit: RatifiedCommit) -> None:
        """Propose a staged commit as the version after the latest.

        Raises:
            AlreadyExistsError: another commit is ratified for that version.
            StorageError: the outcome is unknown; the same proposal may be sent again.
        """
        ...


class Committer(Protocol):
    """Publishes commits, at most one per version."""

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """Make `data` the commit of `version`, and return its file.

        Raises:
            AlreadyExistsError: the version is taken, perhaps by this same commit.
            StorageError: the commit may or may not have happened.
        """
        ...

    def log_tail(self, store: Store) -> LogTail | None:
        """Return the newest commits from a catalog; None if the store's listing shows them."""
        ...
