"""Waiting times between commit attempts, and when to give up."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from deltalog.clock import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_RETRIES: Final = 10_000
MAX_WAIT_MS: Final = 10 * 60 * 1000
_SHORTEST_SECONDS: Final = 0.01
_LONGEST_SECONDS: Final = 1.0


def _jitter() -> float:
    return random.random()  # noqa: S311  # looked up when called: a simulation has its own chance


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Exponential backoff with full jitter: a random time below a limit that doubles up to 1 s.

    Args:
        clock: tells the time and sleeps.
        jitter: returns a number from 0 to 1.
        max_retries: how many attempts may follow the first.
        max_wait_ms: time since the first attempt after which no other one begins.
    """

    clock: Clock = field(default_factory=SystemClock)
    jitter: Callable[[], float] = _jitter
    max_retries: int = MAX_RETRIES
    max_wait_ms: int = MAX_WAIT_MS
    started_ms: int = field(init=False)

    def __post_init__(self) -> None:
        """Record when the first attempt began."""
        self.started_ms = self.clock.now_ms()

    def wait(self, number: int) -> None:
        """Wait before the retry with this number, counted from 1."""
        limit = min(_LONGEST_SECONDS, _SHORTEST_SECONDS * 2 ** min(number, 10))
        self.clock.sleep(limit * self.jitter())

    def allows(self, number: int) -> bool:
        """Whether the retry with this number may begin."""
        waited_ms = self.clock.now_ms() - self.started_ms
        return number <= self.max_retries and waited_ms < self.max_wait_ms
