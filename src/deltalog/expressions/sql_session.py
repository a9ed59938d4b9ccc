"""The inputs of an expression other than the rows: current time, time zone and text rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import datetime as dt


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlSession:
    """The current time and the time zone for expressions, like those of a Spark session.

    Args:
        now: the value of `current_timestamp()`, with its zone; if None, that function is refused.
        time_zone: the zone for conversions between `timestamp_ntz` and `timestamp`, as an IANA name
            or an offset.
    """

    now: dt.datetime | None
    time_zone: str


UTC_NAMES: Final = frozenset(
    {"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu"}
)
"""Names of UTC, in which TIMESTAMP and TIMESTAMP_NTZ have the same stored number."""

# Expressions in a table's metadata must have the same value for every writer. So they cannot use
# the clock or a session's time zone.
RULES_OF_TABLES: Final = SqlSession(now=None, time_zone="UTC")


# --- How strings are compared: an argument of `resolve`


class TextRules(Enum):
    """How strings are compared."""

    COLLATIONS = "collations"
    """Compare by the column's collation, or by the collation after COLLATE."""
    VALUES = "values"
    """Like `COLLATIONS`, but refuse results with a collation, because the engine compares bytes."""
    BYTES = "bytes"
    """Compare bytes, for engines that have no collations."""
    NONE = "none"
    """Refuse collations, because an engine without collations may evaluate the same condition."""
