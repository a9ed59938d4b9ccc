"""Report work to observers while it runs; do nothing without an observer.

Owns the list of observers, and ensures that they neither fail nor change the work. It uses no
library: the observers are in `telemetry`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol

logger: logging.Logger = logging.getLogger(__name__)

Fact = str | int | float | bool | None


class WorkKind(Enum):
    """The kind of the observed work."""

    OPERATION = auto()
    """An operation on a table: staged and committed, and evaluated again after a conflict."""
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
        name: of the work.
        facts: plain values by name; facts are added until the end.
        headers: of a request.
        subject: protocol and metadata of the table, if available.
        is_watched: whether there is an observer; compute expensive facts only then.
    """

    kind: WorkKind
    name: str
    facts: dict[str, Fact] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    subject: Any = None
    is_watched: bool = False


class Observer(Protocol):
    """An observer of work. An exception that it raises is logged, and the work continues."""

    def begin(self, work: ObservedWork) -> Any:
        """Handle the beginning of work; the return value is passed to `end`."""
        ...

    def end(self, work: ObservedWork, begun: Any, error: BaseException | None) -> None:
        """Handle the end of work, in the context in which the work began.

        Args:
            work: with all facts.
            begun: the result of `begin`.
            error: the exception that ended the work; None if it succeeded.
        """
        ...


_observers: tuple[Observer, ...] = ()
_lock = threading.Lock()


def watch(observer: Observer) -> None:
    """Add an observer, which sees all work of this process that begins from now on."""
    global _observers  # noqa: PLW0603 -- who watches a process is the process's state
    with _lock:
        _observers = (*_observers, observer)


def unwatch(observer: Observer) -> None:
    """Remove an observer; it still sees the end of work whose beginning it saw."""
    global _observers  # noqa: PLW0603 -- as above
    with _lock:
        _observers = tuple(one for one in _observers if one is not observer)


class observed:  # noqa: N801 -- a context manager, written as a function
    """Report the work of a `with` block to observers.

    Args:
        kind: of the work.
        name: of the work.
        headers: of a request.
        facts: those known at the beginning.

    Cost: a few microseconds without an observer.
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
        """Return the work, whose facts are completed while it runs."""
        for observer in _observers:
            self._work.is_watched = True
            try:
                self._begun.append((observer, observer.begin(self._work)))
            except Exception:  # the observer failed, not the work
                logger.warning("watching %s failed", self._work.name, exc_info=True)
        return self._work

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        """Notify the observers in reverse order, since each may have set a context."""
        for observer, begun in reversed(self._begun):
            try:
                observer.end(self._work, begun, error)
            except Exception:  # as above
                logger.warning("watching %s failed", self._work.name, exc_info=True)
