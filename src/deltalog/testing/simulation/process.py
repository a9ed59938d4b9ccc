"""What a process gets from its machine: time, chance and names, here from the seed of a simulation.

Owns the machines of a simulation and their clocks, which differ. While `simulated` lasts, the
functions of the standard library that deltalog asks (the clock, `random`, `secrets.choice`,
`uuid4`) answer threads that are `on` a machine from it, and all other threads as ever.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog.storage.pool import alone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.clock import Clock


@dataclass
class SteadyClock:
    """A clock for many: every look at it lets a millisecond pass, and waiting takes no time."""

    time_ms: int = 1_700_000_000_000

    def now_ms(self) -> int:
        """Later than before."""
        self.time_ms += 1
        return self.time_ms

    def sleep(self, seconds: float) -> None:
        """Only the time passes."""
        self.time_ms += int(seconds * 1000)


class Machine:
    """Where a process runs.

    Args:
        clock: the true time.
        chance: decides its random numbers and names.
        skew_ms: how far its clock is ahead.
    """

    def __init__(self, clock: Clock, chance: random.Random, skew_ms: int = 0) -> None:
        self._clock = clock
        self.skew_ms = skew_ms
        self._answers: dict[str, Callable[..., Any]] = {
            "time_ns": self._time_ns,
            "perf_counter": lambda: self._time_ns() / 1e9,
            "sleep": clock.sleep,
            "random": chance.random,
            "choice": chance.choice,
            "uuid4": lambda: uuid.UUID(int=chance.getrandbits(128), version=4),
        }

    def _time_ns(self) -> int:
        return (self._clock.now_ms() + self.skew_ms) * 1_000_000

    def answer(self, name: str) -> Callable[..., Any]:
        """The machine's own function of this name."""
        return self._answers[name]

    @contextmanager
    def on(self) -> Iterator[None]:
        """Let the calling thread be on this machine; it does all of its work itself."""
        before = getattr(_HERE, "machine", None)
        _HERE.machine = self
        try:
            with alone():
                yield
        finally:
            _HERE.machine = before


@contextmanager
def simulated() -> Iterator[None]:
    """Let machines answer the threads that are on them, everywhere in this process."""
    with _LOCK:
        saved = [(module, name, getattr(module, name)) for module, name in _ASKED]
        for module, name, real in saved:
            setattr(module, name, _door(name, real))
        try:
            yield
        finally:
            for module, name, real in saved:
                setattr(module, name, real)


def _door(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def ask(*arguments: Any) -> Any:
        machine: Machine | None = getattr(_HERE, "machine", None)
        return (real if machine is None else machine.answer(name))(*arguments)

    return ask


_HERE: Final = threading.local()
_LOCK: Final = threading.RLock()
_ASKED: Final = (
    (time, "time_ns"),
    (time, "perf_counter"),
    (time, "sleep"),
    (random, "random"),
    (secrets, "choice"),
    (uuid, "uuid4"),
)
