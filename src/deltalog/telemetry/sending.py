"""Events on their way to a backend, by a thread of their own.

Owns that whoever has an event never waits: a bounded number is kept, and what is too much is
dropped and counted. After a fork the thread is begun anew.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable

logger: logging.Logger = logging.getLogger(__name__)

_MOST_EVENTS: Final = 1000
_CLOSE_SECONDS: Final = 5.0


class Sender:
    """Sends events in the order in which they come.

    Args:
        emit: sends one event; it may take its time, and fail.
    """

    def __init__(self, emit: Callable[[Any], object]) -> None:
        self._emit = emit
        self._events: deque[Any] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._is_busy = False
        self._has_thread = False
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            known = ref(self)
            os.register_at_fork(after_in_child=lambda: _forked(known()))

    def send(self, event: Any) -> None:
        """Take an event; one that is too many is dropped."""
        with self._changed:
            if self._is_closed:
                return
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._run, name="deltalog-lineage", daemon=True).start()
            if len(self._events) >= _MOST_EVENTS:
                logger.warning("a lineage event is dropped: %d wait", len(self._events))
                return
            self._events.append(event)
            self._changed.notify_all()

    def close(self) -> None:
        """Send what waits, for a few seconds at most, and take no more."""
        atexit.unregister(self.close)
        end_s = time.monotonic() + _CLOSE_SECONDS
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            while self._events or self._is_busy:
                left = end_s - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    logger.warning("%d lineage events were not sent", len(self._events))
                    return

    def forget(self) -> None:
        """After a fork: what waits is the first process's to send, and its thread is not here."""
        self._events = deque()
        self._changed = threading.Condition()
        self._is_busy = self._has_thread = False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._events or self._is_closed)
                if not self._events:
                    return
                event = self._events.popleft()
                self._is_busy = True
            try:
                self._emit(event)
            except Exception as error:  # noqa: BLE001 -- a backend may fail as it likes
                logger.warning("a lineage event was not sent: %s", type(error).__name__)
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()


def _forked(sender: Sender | None) -> None:
    if sender is not None:
        sender.forget()
