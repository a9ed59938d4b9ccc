"""Several workers over one store, one store call at a time, in an order that a test chooses.

Each worker is a thread that stops before every call of its store. Whoever holds the `Worker` grants
the next call, and may do harm to it.
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from deltalog.errors import DeltaError, StorageError
from deltalog.storage.store import Store
from deltalog.testing.stores import _Wrapper

_Result = TypeVar("_Result")
_PATIENCE_SECONDS = 60.0


class Fate(enum.Enum):
    """What becomes of one store call."""

    FINE = "it is done"
    REFUSED = "nothing is done, and an error comes back"
    LOST = "it is done, and an error comes back"
    CRASH_BEFORE = "the process dies before it is done"
    CRASH_AFTER = "the process dies after it was done"
    TWICE = "the request is sent twice, and the second answer comes back"
    DELAYED = "an error comes back, and it is done some time later"
    TORN = "a listing lacks its newest file"
    TORN_MIDDLE = "a listing lacks a file in the middle"


HARMS = [fate for fate in Fate if fate is not Fate.FINE]


def free_cached_properties(*classes: type) -> None:
    """Let two threads compute one cached property at once, as Python 3.12 and later do.

    Before, one lock for all objects of the class is held meanwhile, and a worker that is stopped
    in there would stop all others.
    """
    for cls in classes:
        for value in vars(cls).values():
            if isinstance(value, cached_property) and hasattr(value, "lock"):
                value.lock = nullcontext()


class CrashedError(BaseException):
    """The process is dead: nobody catches this, nothing is reported."""


@dataclass
class SharedStore:
    """What all workers share: a store, and requests that are still under way."""

    store: Store
    delayed: list[Callable[[], Any]] = field(default_factory=list)

    def deliver(self) -> None:
        """The oldest delayed request arrives; nobody hears its answer."""
        with contextlib.suppress(DeltaError):
            self.delayed.pop(0)()


class _SteppedStore(_Wrapper):
    """Stops before each call until the worker is granted a step."""

    def __init__(self, shared: SharedStore, worker: Worker) -> None:
        super().__init__(shared.store)
        self._shared = shared
        self._worker = worker

    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        del data
        fate = self._worker.stop_at(verb, paths)
        if fate is Fate.FINE:
            return act()
        if fate is Fate.CRASH_BEFORE:
            raise CrashedError
        if fate is Fate.DELAYED and verb == "put_if_absent":
            self._shared.delayed.append(act)
        elif fate is Fate.TWICE and verb == "put_if_absent":
            act()
            return act()
        elif fate in {Fate.TORN, Fate.TORN_MIDDLE} and verb == "list_from":
            listing: _Result = _torn(act(), fate)
            return listing
        elif fate in {Fate.LOST, Fate.CRASH_AFTER}:
            act()
            if fate is Fate.CRASH_AFTER:
                raise CrashedError
        elif fate is not Fate.REFUSED:
            return act()  # that harm cannot come to this call
        raise StorageError(f"cannot {verb} {paths[:1]}: {fate.value} (injected)")


def _torn(listing: Any, fate: Fate) -> Any:
    if len(listing) > 1:
        del listing[-1 if fate is Fate.TORN else len(listing) // 2]
    return listing


class Worker:
    """A piece of work in a thread of its own.

    Args:
        shared: what it shares with others.
        work: gets the store.
    """

    def __init__(self, shared: SharedStore, work: Callable[[Store], Any]) -> None:
        self.at: tuple[str, tuple[str, ...]] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self.steps = 0
        self._fate = Fate.FINE
        self._is_killed = False
        self._go = threading.Semaphore(0)
        self._arrived = threading.Semaphore(0)
        store = _SteppedStore(shared, self)
        self._thread = threading.Thread(target=self._run, args=(work, store), daemon=True)
        self._thread.start()
        self._wait()

    def _run(self, work: Callable[[Store], Any], store: Store) -> None:
        try:
            self.result = work(store)
        except BaseException as error:  # noqa: BLE001  # it is what the test looks at
            self.error = error
        self.is_done = True
        self._arrived.release()

    def stop_at(self, verb: str, paths: tuple[str, ...]) -> Fate:
        """Called by the worker's store: wait for a step."""
        if self._is_killed and not self.is_done:
            raise CrashedError
        if self.is_done or threading.current_thread() is not self._thread:
            return Fate.FINE  # a snapshot that outlives its worker; a helper of the worker's
        self.at = verb, paths
        self._arrived.release()
        self._go.acquire()
        if self._is_killed:
            raise CrashedError
        return self._fate

    def step(self, fate: Fate = Fate.FINE) -> None:
        """Let the worker make one store call and go on to the next."""
        assert not self.is_done
        self.steps += 1
        self._fate = fate
        if fate in {Fate.CRASH_BEFORE, Fate.CRASH_AFTER}:
            # What runs after the crash (a `finally`) reaches no store.
            self._go.release()
            self._wait_for_death()
            return
        self._go.release()
        self._wait()

    def _wait_for_death(self) -> None:
        self._wait()
        self._is_killed = True
        while not self.is_done:
            self._go.release()
            self._wait()

    def finish(self) -> None:
        """Let the worker go on to its end, unharmed."""
        while not self.is_done:
            self.step()

    def kill(self) -> None:
        """End the worker where it stands."""
        self._is_killed = True
        while not self.is_done:
            self._go.release()
            self._wait()

    def _wait(self) -> None:
        assert self._arrived.acquire(timeout=_PATIENCE_SECONDS), "the worker hangs"
        if self.is_done:
            self._thread.join()


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
