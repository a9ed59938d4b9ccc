"""Connections of the server's process: limits on their number and on idle time.

uvicorn limits neither the number of open connections nor the time within which a request must
arrive. This module adds both limits, and a filter that prevents flooding of the log. If there are
too many connections, the connection that has been idle longest is closed.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from deltalog.sharing.server.config import RequestLimits

BACKLOG: Final = 64
"""The maximum number of connections that wait to be accepted; asyncio may accept all at once."""

_LOG: Final = logging.getLogger("deltalog.sharing")
# The number of file descriptors that connections must not use, because files, tables and stores
# need them.
_RESERVED_FILES: Final = 64 + BACKLOG
_LEAST_CONNECTIONS: Final = 8


def most_connections(limits: RequestLimits) -> int:
    """Return the maximum number of open connections; the limit on open files may reduce it.

    First raises the process's limit on open files as far as the system permits.
    """
    try:
        import resource  # noqa: PLC0415 -- POSIX only
    except ImportError:  # pragma: no cover
        return limits.connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + _RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return limits.connections
    found = max(_LEAST_CONNECTIONS, soft - _RESERVED_FILES)
    _LOG.warning(
        "limits.connections: only %d connections are possible with %d open files (ulimit -n)",
        found,
        soft,
    )
    return found


class GuardedProtocol(H11Protocol):
    """A connection that is closed if no request arrives in time.

    Attributes:
        most_open: maximum number of open connections.
        header_seconds: function that returns the time within which the head of a request must
            arrive.
    """

    most_open: ClassVar[int]
    header_seconds: ClassVar[Callable[[], int]]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the new connection, and start the timer for its first request."""
        self._timer: asyncio.TimerHandle | None = None
        self._waits_since_s = time.monotonic()
        super().connection_made(transport)
        if len(self.connections) > self.most_open and not self._make_space():
            _LOG.warning("connections are refused: all permitted connections are busy")
            transport.abort()
            return
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received data; start the timer for the head of a new request."""
        super().data_received(data)
        if self.is_at_work:
            self._stop_timer()
        elif self._timer is None:  # the first bytes of a request
            self._start_timer()

    def on_response_complete(self) -> None:
        """Record when the connection became idle."""
        self._waits_since_s = time.monotonic()
        super().on_response_complete()

    @property
    def is_at_work(self) -> bool:
        """Whether a request has arrived whose response is not complete yet."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _make_space(self) -> bool:
        """Close the connection that has been idle longest; return False if none is idle."""
        others: list[Any] = [one for one in self.connections if one is not self]
        waiting = [one for one in others if not one.is_at_work]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda one: one._waits_since_s)  # noqa: SLF001 -- the same class
        # Discard the connection now, because more connections may arrive before `connection_lost`
        # is called.
        self.connections.discard(oldest)
        oldest.transport.abort()
        return True

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(type(self).header_seconds(), self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if not self.is_at_work:
            self.transport.abort()


def guarded_protocol(limits: Callable[[], RequestLimits], most: int) -> type[GuardedProtocol]:
    """Return the protocol class of connections with these limits.

    Args:
        limits: returns the limits of the current configuration.
        most: maximum number of open connections.
    """
    values = {"most_open": most, "header_seconds": staticmethod(lambda: limits().header_seconds)}
    return type("ConfiguredProtocol", (GuardedProtocol,), values)


class ThrottleFilter(logging.Filter):
    """Log filter that limits the number of similar records, and later reports how many it dropped.

    Args:
        most: maximum number of similar records in a period.
        seconds: length of a period.
        clock: returns monotonic seconds.
    """

    def __init__(
        self, most: int = 5, seconds: float = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        # Maps a logger and message template to the start of its current period and the number of
        # its records in this period.
        self._counts: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        key, now = (record.name, str(record.msg)[:200]), self._clock()
        with self._lock:
            began, count = self._counts.get(key, (now, 0))
            held_back = count - self._most
            if now - began >= self._seconds:
                began, count = now, 0
                if held_back > 0:
                    record.msg = f"{record.msg} (and {held_back} more like this before)"
            self._counts[key] = began, count + 1
        return count < self._most
