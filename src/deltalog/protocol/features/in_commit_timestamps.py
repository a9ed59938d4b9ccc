"""In-commit timestamps: the version in which they were enabled, and the time of a new commit.

Protocol: In-Commit Timestamps
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError, InvalidMetadataError

if TYPE_CHECKING:
    from deltalog.protocol.actions.properties import TableProperties

_LAST_MS: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InCommitTimestamps:
    """The first version whose commit has an in-commit timestamp; all later commits have one.

    Args:
        version: the first version with an in-commit timestamp.
        timestamp_ms: the time of that version; None for version 0.
    """

    version: int = 0
    timestamp_ms: int | None = None

    def covers(self, version: int) -> bool:
        """Return whether the commit of this version has an in-commit timestamp."""
        return version >= self.version


def enablement(properties: TableProperties, *, supported: bool) -> InCommitTimestamps | None:
    """Return the first version with an in-commit timestamp; None if they are not enabled.

    Args:
        properties: properties of the table.
        supported: whether the protocol has the feature; without it the property has no effect.

    Raises:
        InvalidMetadataError: only one of enablement version and timestamp is set.
    """
    if not supported or not properties.enable_in_commit_timestamps:
        return None
    # Both properties are absent if version 0 enabled the feature (requirement B-22).
    version = properties.in_commit_timestamp_enablement_version
    timestamp_ms = properties.in_commit_timestamp_enablement_timestamp
    if (version is None) != (timestamp_ms is None):
        raise InvalidMetadataError(
            "in-commit timestamps: expected both delta.inCommitTimestampEnablementVersion and "
            f"delta.inCommitTimestampEnablementTimestamp, found {version} and {timestamp_ms}"
        )
    return InCommitTimestamps(version=version or 0, timestamp_ms=timestamp_ms)


def next_timestamp_ms(now_ms: int, previous_ms: int | None) -> int:
    """Return the time of a new commit, which is later than the previous commit's time.

    Raises:
        InvalidInputError: a later time would exceed 64 bits.
    """
    if previous_ms is not None and previous_ms >= _LAST_MS:
        raise InvalidInputError(
            f"cannot commit after a version with the in-commit timestamp {previous_ms}: a later "
            "timestamp does not fit 64 bits"
        )
    return now_ms if previous_ms is None else max(now_ms, previous_ms + 1)
