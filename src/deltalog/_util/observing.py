"""Work that others may watch while it is done: nothing unless somebody asks for it.

Owns who watches, and that watching neither fails work nor changes it. Knows no library and decides
nothing of what becomes of what is seen: `telemetry` has the observers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from types import TracebackType

logger: logging.Logger = logging.getLogger(__name__)

Fact = str | int | float | bool | None


class WorkKind(Enum):
    """What kind of work is seen."""

    OPERATION = auto()
    """An operation on a table: staged and committed, evaluated anew after a conflict."""
    COMMIT = auto()
    """One commit with its attempts."""
    AFTER_COMMIT = auto()
    """One step after a commit."""
    REQUEST = auto()
    """A request that the sharing server answers."""
    ANSWER = auto()
    """A piece of the work for a request, in a thread."""


@dataclass(slots=True, eq=False)
class ObservedWork:
    """A piece of work, from its beginning to its end.

    Args:
        kind: of the work.
        name: of what is done.
        facts: plain values by name; more are known at the end than at the beginning.
        headers: of a request.
        subject: protocol and metadata of the table, where they are at hand.
        is_watched: somebody sees it; facts that cost something are for them.
    """

    kind: WorkKind
    name: str
    facts: dict[str, Fact] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    subject: Any = None
    is_watched: bool = False


class Observer(Protocol):
    """Sees work. Whatever it raises is logged, and the work goes on."""

    def begin(self, work: ObservedWork) -> Any:
        """See that work begins; what is returned is handed to `end`."""
        ...

    def end(self, work: ObservedWork, begun: Any, error: BaseException | None) -> None:
        """See that work has ended, in the same context in which it began.

        Args:
            work: with all of its facts.
            begun: what `begin` returned.
            error: by which the work ended; None if it is done.
        """
        ...


_observers: tuple[Observer, ...] = ()
_lock = threading.Lock()


def watch(observer: Observer) -> None:
    """Let an observer see all work of this process that begins from now on."""
    global _observers  # noqa: PLW0603 -- who watches a process is the process's state
    with _lock:
        _observers = (*_observers, observer)


def unwatch(observer: Observer) -> None:
    """Let an observer see no more work; what it has seen begin it sees end."""
    global _observers  # noqa: PLW0603 -- as above
    with _lock:
        _observers = tuple(one for one in _observers if one is not observer)


class observed:  # noqa: N801 -- a context manager, written as a function
    """The work of a `with` block, which observers see.

    Args:
        kind: of the work.
        name: of what is done.
        headers: of a request.
        facts: that are known at the beginning.

    Cost: a few microseconds while nobody watches.
    """

    __slots__ = ("_begun", "_work")

    def __init__(
        self,
        kind: WorkKind,
        name: str,
        *,
        headers: Mapping[str, str] | None = None,
        **facts: Fact,
    ) -> None:
        self._work = ObservedWork(kind, name, facts, headers or {})
        self._begun: list[tuple[Observer, Any]] = []

    def __enter__(self) -> ObservedWork:
        """The work, whose facts are filled in while it is done."""
        for observer in _observers:
            self._work.is_watched = True
            try:
                self._begun.append((observer, observer.begin(self._work)))
            except Exception:  # it is the observer's fault, and not that of the work
                logger.warning("watching %s failed", self._work.name, exc_info=True)
        return self._work

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Tell the observers, the last one first, since each may have set a context."""
        for observer, begun in reversed(self._begun):
            try:
                observer.end(self._work, begun, error)
            except Exception:  # as above
                logger.warning("watching %s failed", self._work.name, exc_info=True)
