"""The inputs of an expression besides the rows: the current time and the time zone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import datetime as dt


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlSession:
    """The current time and the time zone of expressions, as of a session of Spark.

    Args:
        now: the value of `current_timestamp()`, with its zone; None refuses that function.
        time_zone: of values of `timestamp_ntz` where a `timestamp` is expected, and the other way:
            an IANA name or an offset.
    """

    now: dt.datetime | None
    time_zone: str


UTC_NAMES: Final = frozenset(
    {"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu"}
)
"""Names of the zone UTC: between it and no zone, a cast changes no number."""

# Rules that a table stores mean the same to every writer, so they have neither.
RULES_OF_TABLES: Final = SqlSession(now=None, time_zone="UTC")


# By what strings are compared: a choice of those who resolve expressions.


class TextRules(Enum):
    """By what strings are compared."""

    COLLATIONS = "collations"
    """The collation of their column, or that which COLLATE names."""
    VALUES = "values"
    """The same, for a value that is compared by bytes later: no text with a collation."""
    BYTES = "bytes"
    """Their bytes, as engines do that know no collations, and have them compared so."""
    NONE = "none"
    """Another engine's, which computes the same: what a collation might decide is refused."""
