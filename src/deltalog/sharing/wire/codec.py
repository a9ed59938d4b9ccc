"""Timestamps of the sharing protocol ⇄ milliseconds since 1970, UTC.

Protocol: Timestamp Format
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from deltalog.errors import MalformedMessageError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def parse_timestamp(text: str, where: str = "timestamp") -> int:
    """Milliseconds since 1970 of an ISO 8601 text with a zone; fractions are cut.

    Raises:
        MalformedMessageError: it is no moment, or has no zone (ledger SHARE-TS-01).
    """
    try:
        # Without a zone, and so also without a time of day, the difference is a TypeError.
        return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND
    except (ValueError, TypeError, OverflowError):
        raise MalformedMessageError(
            f"{where}: expected a time such as 2022-01-01T00:00:00Z, found {text[:60]!r}"
        ) from None


def encode_timestamp(milliseconds: int) -> str:
    """ISO 8601 in UTC; milliseconds are written where there are any."""
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    unit = "milliseconds" if milliseconds % 1000 else "seconds"
    return moment.isoformat(timespec=unit).replace("+00:00", "Z")
