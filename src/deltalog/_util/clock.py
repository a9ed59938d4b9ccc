"""The clock. All code that needs the current time uses a `Clock` or `now_ms`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from deltalog._util.civil import moment_text


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
