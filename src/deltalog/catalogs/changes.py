"""What a commit changes that catalogs keep a copy of: metadata, protocol, domains, its counts.

Owns the committer of tables whose commits are files: it tells a catalog what has changed, after the
commit, and never fails the commit over that.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from deltalog.errors import DeltaError
from deltalog.features.row_ids import ROW_TRACKING_DOMAIN
from deltalog.log.names import LogFile, LogFileKind, commit_path
from deltalog.paths import FileInfo
from deltalog.transaction.committer import FileSystemCommitter
from deltalog.transaction.winners import WinningCommit, parse_winner

if TYPE_CHECKING:
    from deltalog.catalog import LogTail
    from deltalog.storage.store import Store

logger: logging.Logger = logging.getLogger(__name__)


def read_commit(version: int, data: bytes) -> WinningCommit:
    """The actions of a commit that is being made.

    Raises:
        MalformedLogError: the bytes are no commit.
    """
    file = FileInfo(commit_path(version), len(data), 0)
    return parse_winner(LogFile(LogFileKind.COMMIT, version, file), data)


def changes_table(commit: WinningCommit) -> bool:
    """Whether a commit changes what a catalog shows of a table, and not rows alone."""
    is_other = commit.metadata is not None or commit.protocol is not None
    return is_other or bool(commit.domains.keys() - {ROW_TRACKING_DOMAIN})


class Teller(Protocol):
    """Whoever tells a catalog what a commit changed; picklable."""

    def tell(self, store: Store, commit: WinningCommit) -> None:
        """Tell it."""
        ...


@dataclass(frozen=True, slots=True)
class FollowedCommitter:
    """Commits by put-if-absent, and tells a catalog what changed.

    Args:
        teller: tells it; a failure is logged, because the commit stands.
    """

    teller: Teller

    def commit(self, store: Store, version: int, data: bytes) -> FileInfo:
        """As `Committer`."""
        file = FileSystemCommitter().commit(store, version, data)
        try:
            commit = read_commit(version, data)
            if version > 0 and changes_table(commit):
                self.teller.tell(store, commit)
        except DeltaError as error:
            logger.warning(
                "version %d of %s stands, and its catalog does not know of it: %s",
                version,
                store.root,
                error,
            )
        return file

    def log_tail(self, _store: Store) -> LogTail | None:
        """As `Committer`: the store's listing knows the newest commits."""
        return None
