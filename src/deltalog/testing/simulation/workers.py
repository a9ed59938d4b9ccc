"""Several workers over one store, one call at a time, in an order that somebody chooses.

Each worker is a thread that stops before every call of its store or catalog. Whoever holds the
`Worker` grants the next call, and may do harm to it. So only one thread runs at any time.
"""

from __future__ import annotations

import contextlib
import enum
import sys
import threading
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from deltalog.cached import cached_property
from deltalog.errors import DeltaError, InternalError, StorageError
from deltalog.testing.catalog import InMemoryCatalog
from deltalog.testing.stalls import StallWatch, all_stacks
from deltalog.testing.stores import _Wrapper

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from deltalog.catalog import LogTail, RatifiedCommit
    from deltalog.storage.store import Store

_Result = TypeVar("_Result")
_LOOK_SECONDS = 1.0
_FREED: set[str] = set()


class Fate(enum.Enum):
    """What becomes of one call."""

    FINE = "it is done"
    REFUSED = "nothing is done, and an error comes back"
    LOST = "it is done, and an error comes back"
    CRASH_BEFORE = "the process dies before it is done"
    CRASH_AFTER = "the process dies after it was done"
    TWICE = "the request is sent twice, and the second answer comes back"
    DELAYED = "an error comes back, and it is done some time later"
    TORN = "a listing lacks its newest file"
    TORN_MIDDLE = "a listing lacks a file in the middle"
    TORN_SHORT = "a listing ends in the middle"


HARMS = [fate for fate in Fate if fate is not Fate.FINE]
_TORN = {Fate.TORN, Fate.TORN_MIDDLE, Fate.TORN_SHORT}
_SENT = {Fate.TWICE, Fate.DELAYED}
_MAY_BE_SENT_AGAIN = {"put_if_absent", "propose"}
_LISTINGS = {"list_from", "list_all"}


def free_cached_properties() -> None:
    """Let two threads compute one cached property at once, as Python 3.12 and later do.

    Before, one lock for all objects of the class is held meanwhile, and a worker that is stopped
    in there would stop all others.
    """
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("deltalog.") and name not in _FREED:
            _FREED.add(name)
            _free(module)


def _free(module: ModuleType) -> None:
    for cls in vars(module).values():
        if isinstance(cls, type):
            for value in vars(cls).values():
                if isinstance(value, cached_property) and hasattr(value, "lock"):
                    value.lock = nullcontext()


def can_happen(fate: Fate, verb: str) -> bool:
    """Whether a fate can come to a call of a verb."""
    if fate in _TORN:
        return verb in _LISTINGS
    return fate not in _SENT or verb in _MAY_BE_SENT_AGAIN


class CrashedError(BaseException):
    """The process is dead: nobody catches this, nothing is reported."""


@dataclass
class CommonStore:
    """What all workers share: a store, and requests that are still under way."""

    store: Store
    delayed: list[Callable[[], Any]] = field(default_factory=list)

    def deliver(self) -> None:
        """The oldest delayed request arrives; nobody hears its answer."""
        with contextlib.suppress(DeltaError):
            self.delayed.pop(0)()


class SteppedStore(_Wrapper):
    """Stops before each call until the worker is granted a step."""

    def __init__(self, shared: CommonStore, worker: Worker) -> None:
        super().__init__(shared.store)
        self.worker = worker

    def _pass(
        self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result], data: bytes = b""
    ) -> _Result:
        del data
        return self.worker.call(verb, paths, act)


class SteppedCatalog:
    """A catalog whose calls are steps of a worker, as those of its store are."""

    def __init__(self, catalog: InMemoryCatalog, worker: Worker) -> None:
        self._catalog = catalog
        self._worker = worker

    def latest(self, table: str) -> LogTail:
        """As `Catalog`."""
        return self._worker.call("latest", (table,), lambda: self._catalog.latest(table))

    def propose(self, table: str, commit: RatifiedCommit) -> None:
        """As `Catalog`."""
        path = commit.file.path
        self._worker.call("propose", (path,), lambda: self._catalog.propose(table, commit))


class Worker:
    """A piece of work in a thread of its own.

    Args:
        shared: what it shares with others.
        work: gets the store.
    """

    def __init__(self, shared: CommonStore, work: Callable[[SteppedStore], Any]) -> None:
        self.at: tuple[str, tuple[str, ...]] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done: bool = False
        self.steps: int = 0
        self._fate = Fate.FINE
        self._is_killed = False
        self._shared = shared
        self._go = threading.Semaphore(0)
        self._arrived = threading.Semaphore(0)
        store = SteppedStore(shared, self)
        self._thread = threading.Thread(target=self._run, args=(work, store), daemon=True)
        self._thread.start()
        self._wait()

    def _run(self, work: Callable[[SteppedStore], Any], store: SteppedStore) -> None:
        try:
            self.result = work(store)
        except BaseException as error:  # noqa: BLE001  # whoever holds the worker looks at it
            self.error = error
        self.is_done = True
        self._arrived.release()

    def call(self, verb: str, paths: tuple[str, ...], act: Callable[[], _Result]) -> _Result:
        """Wait for a step; then do what was asked for, or what its fate makes of it."""
        fate = self._stop_at(verb, paths)
        if fate is Fate.FINE or not can_happen(fate, verb):
            return act()
        if fate in _TORN:
            listing: _Result = _torn(act(), fate)
            return listing
        if fate is Fate.TWICE:
            act()
            return act()
        if fate is Fate.CRASH_BEFORE:
            raise CrashedError
        if fate is Fate.DELAYED:
            self._shared.delayed.append(act)
        elif fate is not Fate.REFUSED:
            act()
        if fate is Fate.CRASH_AFTER:
            raise CrashedError
        raise StorageError(f"cannot {verb} {paths[:1]}: {fate.value} (injected)")

    def _stop_at(self, verb: str, paths: tuple[str, ...]) -> Fate:
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
        """Let the worker make one call and go on to the next."""
        if self.is_done:
            raise InternalError("a worker that is done has no next step")
        self.steps += 1
        self._fate = fate
        if fate in {Fate.CRASH_BEFORE, Fate.CRASH_AFTER}:
            # What runs after the crash (a `finally`) reaches no store.
            self._go.release()
            self._wait()
            self.kill()
            return
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
        stalls = StallWatch()
        while not self._arrived.acquire(timeout=_LOOK_SECONDS):
            if stalls.has_stalled():
                raise InternalError(f"the worker hangs after {self.at}:\n{all_stacks()}")
        if self.is_done:
            self._thread.join()


def _torn(listing: Any, fate: Fate) -> Any:
    if fate is Fate.TORN_SHORT:
        del listing[(len(listing) + 1) // 2 :]
    elif len(listing) > 1:
        del listing[-1 if fate is Fate.TORN else len(listing) // 2]
    return listing
