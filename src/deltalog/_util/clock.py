"""The clock, and the calendar of all years.

All code that needs the current time uses a `Clock` or `now_ms`. The calendar is the proleptic
Gregorian one: Arrow's dates and timestamps have a larger range than Python's, which covers the
years 1 to 9999. Dates are numbers of days, and timestamps are numbers of microseconds since 1970.

Protocol: Partition Value Serialization, Per-file Statistics
"""

from __future__ import annotations

import datetime as dt
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Clock(Protocol):
    """A source of the current time, which can also wait."""

    def now_ms(self) -> int:
        """Return the current time in milliseconds since 1970, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the machine's time in milliseconds since 1970, UTC."""
        return now_ms()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def now_ms() -> int:
    """Return the machine's time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def utc_moment(moment_ms: int) -> datetime:
    """Return the datetime in UTC for milliseconds since 1970."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC)


def compact_moment(digits: str) -> datetime:
    """Return the datetime for `yyyyMMddHHmmssSSS` in UTC.

    Raises:
        ValueError: the string has another form.
    """
    if len(digits) != _COMPACT_DIGITS or not digits.isdecimal():
        raise ValueError(f"{digits!r} does not have {_COMPACT_DIGITS} digits")
    return datetime.strptime(f"{digits}000+0000", "%Y%m%d%H%M%S%f%z")


_COMPACT_DIGITS: Final = len("yyyyMMddHHmmssSSS")


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, in milliseconds since 1970, UTC; it may be out of Python's range."""

    ms: int

    def __str__(self) -> str:
        """Return the moment in ISO 8601, for any year."""
        return f"{moment_text(self.ms * 1000, sep='T', timespec='milliseconds')}Z"


class Stopwatch:
    """Measures the duration of an operation, for its metrics."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    def elapsed_ms(self) -> int:
        """Return the milliseconds since the stopwatch was created."""
        return round((time.perf_counter() - self._started) * 1000)


class WaitMeter:
    """Measures how long a thread works and how long it waits, for example for a disk.

    Args:
        elapsed: returns the elapsed time in seconds.
        worked: returns the processor time of the calling thread in seconds.
    """

    def __init__(
        self,
        elapsed: Callable[[], float] = time.perf_counter,
        worked: Callable[[], float] = time.thread_time,
    ) -> None:
        self._elapsed, self._worked = elapsed, worked
        self._work_seconds = self._wait_seconds = 0.0

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Measure what is done in the `with` block."""
        elapsed, worked = self._elapsed(), self._worked()
        try:
            yield
        finally:
            work = self._worked() - worked
            self._work_seconds += work
            self._wait_seconds += max(0.0, self._elapsed() - elapsed - work)

    @property
    def mostly_waits(self) -> bool:
        """Whether the thread has waited for longer than it worked, and for a noticeable time."""
        return self._wait_seconds > max(self._work_seconds, _NOTICEABLE_SECONDS)


_NOTICEABLE_SECONDS: Final = 0.01


# --- The calendar of all years


MICROS_PER_SECOND: Final = 1_000_000
MICROS_PER_DAY: Final = 86_400 * MICROS_PER_SECOND
# The number of days in 400 years, after which the calendar repeats, including the days of the week.
_ERA_DAYS: Final = 146_097
_ERA_US: Final = _ERA_DAYS * MICROS_PER_DAY
_TO_MARCH_OF_0: Final = 719_468
_DAYS_OF_MONTH: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # for local times
_MICROSECOND: Final = dt.timedelta(microseconds=1)
# The years 1 to 9999 without the first and the last day. For each local time in this range, the
# time in UTC is also in the years 1 to 9999.
_FIRST_US: Final = -62_135_596_800_000_000 + MICROS_PER_DAY
_LAST_US: Final = 253_402_300_799_999_999 - MICROS_PER_DAY


def days_from_civil(year: int, month: int, day: int) -> int | None:
    """Return the days since 1970 of a proleptic Gregorian date; None for an invalid date."""
    if not 1 <= month <= 12 or not 1 <= day <= days_in_month(year, month):
        return None
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _ERA_DAYS + day_of_era - _TO_MARCH_OF_0


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return the year, month and day of a number of days since 1970."""
    era, day_of_era = divmod(days + _TO_MARCH_OF_0, _ERA_DAYS)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march = (5 * day_of_year + 2) // 153
    month = march + 3 if march < 10 else march - 9
    day = day_of_year - (153 * march + 2) // 5 + 1
    return year_of_era + era * 400 + (month <= 2), month, day


def days_in_month(year: int, month: int) -> int:
    """Return the number of days in a month."""
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and is_leap else _DAYS_OF_MONTH[month - 1]


def date_text(days: int) -> str:
    """Return a date as Java writes it: `+12022-11-05`, `2024-01-31`, `-0044-03-15`."""
    year, month, day = civil_from_days(days)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def moment_text(micros: int, *, sep: str, timespec: str = "microseconds") -> str:
    """Return a timestamp as a string: the date, `sep`, and the time with precision `timespec`."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    clock = (_EPOCH + rest * _MICROSECOND).time()
    return f"{date_text(days)}{sep}{clock.isoformat(timespec=timespec)}"


def region_offset_micros(zone: ZoneInfo, local_micros: int) -> int:
    """Return a time zone's offset from UTC, in microseconds, for a local time.

    Before the year 1, a zone has its earliest offset. After 9999, it has the offset of the same day
    in a year that Python supports and that has the same calendar.
    """
    micros = local_micros
    if micros < _FIRST_US:
        micros += -((micros - _FIRST_US) // _ERA_US) * _ERA_US
    elif micros > _LAST_US:
        micros -= -((_LAST_US - micros) // _ERA_US) * _ERA_US
    # If a DST change skips the local time, Python and Java return the offset before the change.
    moment = (_EPOCH + micros * _MICROSECOND).replace(tzinfo=zone)
    return (moment.utcoffset() or dt.timedelta()) // _MICROSECOND
