"""What holds for a table whatever is done to it: bound once, and carried along.

Owns `TableContext`. A snapshot carries it, and a scan and a transaction carry their snapshot's, so
a function that needs a time zone or a clock takes it from there, and never from a keyword that a
caller may forget: values would change by it (a partition value without a zone read in one zone and
written in another).
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
    """Where a table is, and how its values, times and commits are understood; picklable.

    Args:
        store: of the table.
        time_zone: of timestamps and partition values that name none, as an IANA name or an offset.
        clock: tells the time and lets it pass.
        committer: makes commits happen; None is the store's own put-if-absent.
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
        """The present moment in UTC, by the clock of the context."""
        return utc_moment(self.clock.now_ms())

    @property
    def session(self) -> SqlSession:
        """The present moment and the time zone, for expressions; ask once for those of one verb."""
        return SqlSession(now=self.now, time_zone=self.time_zone)

    def with_log_tail(self, log_tail: LogTail | None) -> TableContext:
        """The same context with other newest commits."""
        return self if log_tail is self.log_tail else replace(self, log_tail=log_tail)

    def with_newest_log_tail(self) -> TableContext:
        """The same context with the newest commits that its committer knows, if it knows any.

        Cost: a request to the catalog, where one decides on the commits.
        """
        asked = None if self.committer is None else self.committer.log_tail(self.store)
        return self if asked is None else self.with_log_tail(asked)


def utc_context(store: Store) -> TableContext:
    """The context of a table whose zone-less values are in UTC."""
    return TableContext(store=store, time_zone="UTC")


# The interface between deltalog and a catalog that manages a table's commits.


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
    """What a client may do to a table whose commits a catalog decides on, if the catalog allows."""

    DATA_REORGANIZATION = "DATA_REORGANIZATION"
    """Write rows of the table once more: OPTIMIZE, REORG."""
    DATA_CLEANUP = "DATA_CLEANUP"
    """Delete files that no version within the retention needs: VACUUM."""
    METADATA_CLEANUP = "METADATA_CLEANUP"
    """Delete log files that only expired versions need, staged commits among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The newest commits of a table according to its catalog.

    Args:
        commits: ratified commits, ascending and without a gap.
        latest_version: of the table; a file published after it is not part of the table.
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
                f"a log tail holds every version once, ascending; found {versions}"
            )
        if versions and self.latest_version not in {None, versions[-1]}:
            raise InvalidInputError(
                f"the log tail ends at version {versions[-1]}, and the catalog's latest version "
                f"is {self.latest_version}"
            )

    @property
    def last_version(self) -> int | None:
        """The version at which the table ends: of the last commit, else `latest_version`."""
        return self.commits[-1].version if self.commits else self.latest_version


@runtime_checkable
class Catalog(Protocol):
    """Decides which commits of a table are valid.

    `deltalog.testing.InMemoryCatalog` is a small one for tests.
    """

    def latest(self, table: str) -> LogTail:
        """The newest commits of the table.

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
    """Makes commits happen, one per version."""

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """Make `data` the commit of `version`; where it is then.

        Raises:
            AlreadyExistsError: the version is taken, perhaps by this very commit.
            StorageError: perhaps it happened, perhaps not.
        """
        ...

    def log_tail(self, store: Store) -> LogTail | None:
        """The newest commits where a catalog knows them; None if the store's listing does."""
        ...
