"""Whether this process can answer: what a balancer asks before it sends requests here.

Owns that asking is cheap and says nothing: one check at a time, its result kept for a second, and a
bound on the wait. Why a process is not ready is in its log, by names of tables and kinds of errors.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio

from deltalog.errors import DeltaError
from deltalog.sharing.server.faults import Fault
from deltalog.sharing.server.recipients import Recipient
from deltalog.sharing.server.tables import TableName, tables_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalog.sharing.server.config import ServerConfig
    from deltalog.sharing.server.endpoints import Server

_LOG: Final = logging.getLogger("deltalog.sharing")
# Whoever asks more often gets the answer of the check before.
_KEEP_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.01
_OPERATOR: Final = Recipient("", None)


@dataclass
class _Check:
    """A check at work, or done."""

    began_s: float
    done_s: float | None = None
    problem: str | None = None


class Readiness:
    """Checks whether tables can be read; a thread of its own does it.

    Args:
        current: returns the server of the current configuration.

    Attributes:
        is_known_ready: what the last check found; None before the first one.
    """

    def __init__(self, current: Callable[[], Server]) -> None:
        self.is_known_ready: bool | None = None
        self._current = current
        self._lock = threading.Lock()
        self._check: _Check | None = None
        self._told: str | None = None

    async def is_ready(self) -> bool:
        """Whether the tables of `readiness.tables` were read within `readiness.timeoutSeconds`.

        A check that hangs is not begun again: until it ends, the process is not ready.

        Cost: one listing for each of the tables, once a second at most.
        """
        check = self._running_or_new()
        seconds = self._current().services.config.readiness.timeout_seconds
        while check.done_s is None:
            left = check.began_s + seconds - time.monotonic()
            if left <= 0:
                return self._conclude(f"no answer in {seconds} s")
            await anyio.sleep(min(_LOOK_SECONDS, left))
        return self._conclude(check.problem)

    def _running_or_new(self) -> _Check:
        with self._lock:
            known, now = self._check, time.monotonic()
            if known is not None and (known.done_s is None or now - known.done_s < _KEEP_SECONDS):
                return known
            check = self._check = _Check(now)
        # A thread that waits for a store must not keep the process.
        threading.Thread(target=self._look, args=[check], daemon=True).start()
        return check

    def _look(self, check: _Check) -> None:
        try:
            check.problem = _problem(self._current())
        except Exception as error:  # noqa: BLE001 -- whatever it is, the process is not ready
            check.problem = type(error).__name__
        check.done_s = time.monotonic()

    def _conclude(self, problem: str | None) -> bool:
        with self._lock:
            before, self._told = self._told, problem
            was_ready, self.is_known_ready = self.is_known_ready, problem is None
        if problem is not None and problem != before:
            _LOG.warning("not ready: %s", problem)
        elif problem is None and not was_ready and before is not None:
            _LOG.info("ready again")
        return problem is None


def _problem(server: Server) -> str | None:
    """Return what keeps the process from answering; None if nothing does."""
    config = server.services.config
    if _has_views(config) and not os.access(
        config.cache_directory or tempfile.gettempdir(), os.W_OK | os.X_OK
    ):
        return "cacheDirectory cannot be written to"
    for name in config.readiness.tables:
        try:
            server.tables.table(_OPERATOR, TableName(*name.rsplit(".", 2))).latest()
        except (DeltaError, Fault) as error:
            # The error's own text may name a location.
            return f"{name}: {type(error).__name__}"
    return None


def _has_views(config: ServerConfig) -> bool:
    return any(table.is_view for share in config.shares for _, table in tables_of(share))
