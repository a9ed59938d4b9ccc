"""Winning commits: what conflict rules need to know of a commit that took our version.

Protocol: Delta Log Entries
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog.features.identity_columns import IDENTITY_TAG
from deltalog.log.reader import parse_commits

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from deltalog.actions import DomainMetadata, Metadata, Protocol
    from deltalog.log.names import LogFile
    from deltalog.log.reader import CommitTable


@dataclass(frozen=True, slots=True, kw_only=True)
class WinningCommit:
    """A commit that took the version that our transaction attempted.

    Args:
        file: its file in the log.
        data: its bytes.
        actions: its parsed actions.
    """

    file: LogFile
    data: bytes
    actions: CommitTable

    @property
    def version(self) -> int:
        """Its version."""
        return self.file.version

    @property
    def info(self) -> Mapping[str, Any]:
        """Its `commitInfo`; empty if it has none."""
        return self.actions.commit_infos.get(self.version, {})

    @property
    def operation(self) -> str:
        """The operation that its `commitInfo` names."""
        return str(self.info.get("operation", "an unnamed operation"))

    @property
    def is_blind_append(self) -> bool:
        """Whether its `commitInfo` says so; a commit that says nothing counts as none."""
        return self.info.get("isBlindAppend") is True

    @property
    def changes_identity_marks_only(self) -> bool:
        """Whether its metadata only moves the high water marks of identity columns."""
        tags = self.info.get("tags")
        return isinstance(tags, dict) and str(tags.get(IDENTITY_TAG, "")).lower() == "true"

    @property
    def protocol(self) -> Protocol | None:
        """The protocol that it sets."""
        return self.actions.protocols[-1][1] if self.actions.protocol_nodes else None

    @property
    def metadata(self) -> Metadata | None:
        """The metadata that it sets."""
        return self.actions.metadatas[-1][1] if self.actions.metadata_nodes else None

    @property
    def domains(self) -> Mapping[str, DomainMetadata]:
        """The domains that it sets or removes."""
        return {domain.domain: domain for _, domain in self.actions.domains}

    @property
    def app_versions(self) -> Mapping[str, int]:
        """The applications whose progress it records."""
        return {txn.app_id: txn.version for _, txn in self.actions.txns}

    @property
    def adds(self) -> pa.Table:
        """The files that it adds."""
        return self.actions.adds

    @property
    def removes(self) -> pa.Table:
        """The files that it removes."""
        return self.actions.removes


def parse_winner(file: LogFile, data: bytes) -> WinningCommit:
    """Parse a commit.

    Raises:
        MalformedLogError: the bytes are no commit.
    """
    return WinningCommit(
        file=file, data=data, actions=parse_commits([(file, data)], commit_infos=True)
    )
