"""In-commit timestamps: from which version commits carry their own time.

Protocol: In-Commit Timestamps
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalog.errors import InvalidMetadataError

if TYPE_CHECKING:
    from deltalog.actions.properties import TableProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class InCommitTimestamps:
    """From when on the time of a commit is `commitInfo.inCommitTimestamp`, not its file's time.

    Args:
        version: the first such version.
        timestamp_ms: the time of that version, or None if it is version 0.
    """

    version: int = 0
    timestamp_ms: int | None = None

    def covers(self, version: int) -> bool:
        """Whether the commit of this version carries its own time."""
        return version >= self.version


def enablement(properties: TableProperties, *, supported: bool) -> InCommitTimestamps | None:
    """From when on commits carry their own time, or None if they do not.

    Args:
        properties: of the table.
        supported: whether the protocol has the feature; without it the property has no effect.

    Raises:
        InvalidMetadataError: only one of version and time is recorded; they go together.
    """
    if not supported or not properties.enable_in_commit_timestamps:
        return None
    version = properties.in_commit_timestamp_enablement_version
    timestamp_ms = properties.in_commit_timestamp_enablement_timestamp
    if (version is None) != (timestamp_ms is None):
        raise InvalidMetadataError(
            "in-commit timestamps: expected both delta.inCommitTimestampEnablementVersion and "
            f"delta.inCommitTimestampEnablementTimestamp, found {version} and {timestamp_ms}"
        )
    return InCommitTimestamps(version=version or 0, timestamp_ms=timestamp_ms)


def next_timestamp_ms(now_ms: int, previous_ms: int | None) -> int:
    """The time of a new commit: later than the one before, whatever the clock says."""
    return now_ms if previous_ms is None else max(now_ms, previous_ms + 1)
