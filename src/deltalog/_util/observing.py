"""Notify observers, such as OpenTelemetry, of the beginning and end of operations and requests.

An error of an observer does not affect the observed work. The observers are in `telemetry`, so this
module needs no further library.
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
    """An operation on a table, including its commits and retries."""
    COMMIT = auto()
    """One commit, including its attempts."""
    AFTER_COMMIT = auto()
    """One post-commit hook."""
    REQUEST = auto()
    """A request that the sharing server answers."""
    ANSWER = auto()
    """A part of the work for a request that has its own thread."""


@dataclass(slots=True, eq=False)
class ObservedWork:
    """An operation, commit or request that observers are notified of.

    Args:
        kind: the kind of work.
        name: the name of the work.
        facts: name of an attribute → value. More facts are added while the work runs.
        headers: the headers of a request.
        subject: the protocol and metadata of the table, if available.
        is_watched: whether there is an observer. Expensive facts are computed only then.
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
            work: the work with all facts.
            begun: the result of `begin`.
            error: the exception that ended the work; None if it succeeded.
        """
        ...


_observers: tuple[Observer, ...] = ()
_lock = threading.Lock()


def watch(observer: Observer) -> None:
    """Add an observer, which is notified of all work of this process that begins from now on."""
    global _observers  # noqa: PLW0603 -- observers belong to the process
    with _lock:
        _observers = (*_observers, observer)


def unwatch(observer: Observer) -> None:
    """Remove an observer. It is still notified of the end of work that has already begun."""
    global _observers  # noqa: PLW0603 -- as above
    with _lock:
        _observers = tuple(one for one in _observers if one is not observer)


class observed:  # noqa: N801 -- a context manager, written as a function
    """Report the work of a `with` block to observers.

    Args:
        kind: the kind of work.
        name: the name of the work.
        headers: the headers of a request.
        facts: the facts that are known at the beginning.

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
            except Exception:  # an error in an observer must not affect the work
                logger.warning("watching %s failed", self._work.name, exc_info=True)
        return self._work

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, *_: object
    ) -> None:
        """Notify the observers in reverse order, because each observer may have set a context."""
        for observer, begun in reversed(self._begun):
            try:
                observer.end(self._work, begun, error)
            except Exception:  # as above
                logger.warning("watching %s failed", self._work.name, exc_info=True)
