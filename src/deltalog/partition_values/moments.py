"""Moments as texts, one at a time: every form that writers use, and time zones.

Protocol: Partition Value Serialization
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final
from zoneinfo import ZoneInfo

from deltalog.errors import InvalidInputError

EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # wall clock; the zone is added by hand
MICROSECOND: Final = dt.timedelta(microseconds=1)
_ANY_MOMENT: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?(Z|UTC|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)


def instant_micros(text: str, time_zone: str) -> int:
    """Microseconds since 1970 in UTC of a text with or without a zone.

    Raises:
        ValueError: the text is no date and time.
        OverflowError: the moment is not in the years 1 to 9999.
        InvalidInputError: there is no such time zone.
    """
    micros, zone = wall_clock_micros(text)
    wall_clock = EPOCH + dt.timedelta(microseconds=micros)
    # A moment that leaves the years 1 to 9999 overflows here.
    instant = wall_clock - offset_of(zone or time_zone, wall_clock)
    return (instant - EPOCH) // MICROSECOND


def wall_clock_micros(text: str) -> tuple[int, str | None]:
    """Microseconds of the wall clock since 1970, and the zone that the text names.

    Raises:
        ValueError: the text is no date and time.
    """
    match = _ANY_MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no date and time")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction = (match[7] or "").ljust(6, "0")
    if fraction[6:].strip("0"):
        raise ValueError(f"{text!r} is finer than a microsecond")
    moment = dt.datetime(year, month, day, hour, minute, second)  # noqa: DTZ001  # wall clock
    return (moment - EPOCH) // MICROSECOND + int(fraction[:6]), match[8]


def offset_of(zone: str, wall_clock: dt.datetime) -> dt.timedelta:
    """How far a zone is ahead of UTC at a wall-clock time.

    Raises:
        InvalidInputError: there is no such time zone.
    """
    if zone in {"Z", "UTC"}:
        return dt.timedelta(0)
    fixed = re.fullmatch(r"([+-])(\d{2}):?(\d{2})", zone)
    if fixed is not None:
        size = dt.timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        if size > dt.timedelta(hours=18):
            raise ValueError(f"{zone} is no offset from UTC")
        return -size if fixed[1] == "-" else size
    # In a gap, Python's offset is the one before it: the clock is put forward, as Java does.
    return wall_clock.replace(tzinfo=_zone(zone)).utcoffset() or dt.timedelta(0)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError) as error:
        raise InvalidInputError(
            f"there is no time zone {name!r}: expected an IANA name such as 'Europe/Berlin', "
            "or an offset such as '+02:00'"
        ) from error
