"""The inputs of an expression besides the rows: current time, time zone and text rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import datetime as dt


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlSession:
    """The current time and the time zone of expressions, like those of a Spark session.

    Args:
        now: the value of `current_timestamp()`, with its zone; None refuses that function.
        time_zone: the zone for conversions between `timestamp_ntz` and `timestamp`, as an IANA name
            or an offset.
    """

    now: dt.datetime | None
    time_zone: str


UTC_NAMES: Final = frozenset(
    {"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu"}
)
"""Names of the zone UTC; casts between UTC and no zone change no number."""

# Rules that a table stores must mean the same to every writer, so they use neither.
RULES_OF_TABLES: Final = SqlSession(now=None, time_zone="UTC")


# How strings are compared; the caller of `resolve` chooses.


class TextRules(Enum):
    """How strings are compared."""

    COLLATIONS = "collations"
    """By the collation of their column, or the one that COLLATE names."""
    VALUES = "values"
    """By collations, but the value itself must have none: an engine compares it by bytes later."""
    BYTES = "bytes"
    """By bytes, for engines without collations, which compare strings so themselves."""
    NONE = "none"
    """By another engine, which evaluates the same condition: collations are refused."""
