"""The seam for tables whose commits a catalog decides on.

Owns what a catalog hands in (the ratified commits that may not be published in `_delta_log` yet),
what it is asked (to ratify one more), and who makes commits happen. Knows no catalog and opens no
connection.

Protocol: Catalog-managed tables
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from deltalog.paths import FileInfo
    from deltalog.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RatifiedCommit:
    """A commit that the catalog has accepted.

    Args:
        version: the table version that it makes.
        file: where its actions are, usually in `_delta_log/_staged_commits/`.
    """

    version: int
    file: FileInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The newest commits of a table, as its catalog tells them.

    Args:
        commits: ratified commits without a hole, by version.
        latest_version: the table's version; what is published after it does not count.

    Raises:
        InvalidInputError: a version is missing, twice, or after `latest_version`.
    """

    commits: tuple[RatifiedCommit, ...] = ()
    latest_version: int | None = None

    def __post_init__(self) -> None:
        """Refuse a tail that cannot be one."""
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
        """The table's latest version as far as the catalog told it."""
        return self.commits[-1].version if self.commits else self.latest_version


@runtime_checkable
class Catalog(Protocol):
    """Whoever decides which commits of a table count.

    `deltalog.testing.InMemoryCatalog` is a small one, to try things with.
    """

    def latest(self, table: str) -> LogTail:
        """The newest commits of the table.

        Args:
            table: its location, as `Store.root` tells it.
        """
        ...

    def propose(self, table: str, commit: RatifiedCommit) -> None:
        """Ask that a staged commit become the version right after the latest.

        Raises:
            AlreadyExistsError: another commit has been ratified for that version.
            StorageError: the answer is not known; the same proposal may be sent again.
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
