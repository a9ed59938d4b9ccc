"""The one source of time.

Everything that needs the present moment takes a `Clock`, or asks `now_ms`.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and lets it pass."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def now_ms() -> int:
    """Milliseconds since 1970, UTC, by the machine's clock."""
    return time.time_ns() // 1_000_000


class Stopwatch:
    """Tells how long something has taken, for the metrics of operations."""

    def __init__(self) -> None:
        self._started = time.perf_counter()

    def elapsed_ms(self) -> int:
        """Milliseconds since this was made."""
        return round((time.perf_counter() - self._started) * 1000)
