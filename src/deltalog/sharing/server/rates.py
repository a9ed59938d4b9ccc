"""How many requests a recipient may send.

Owns the count: so many a minute, of which all may come at once.
"""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

from deltalog.sharing.server.faults import too_many

if TYPE_CHECKING:
    from collections.abc import Callable


class RateLimit:
    """Counts requests by recipient; threads may share it.

    Args:
        per_minute: how many; 0 is no limit.
        clock: seconds that only grow.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Count one request.

        Raises:
            Fault: 429: there were too many; `Retry-After` tells when the next one may come.
        """
        if not self._per_minute:
            return
        now, rate = self._clock(), self._per_minute / 60
        with self._lock:
            left, since = self._left.get(name, (float(self._per_minute), now))
            left = min(self._per_minute, left + (now - since) * rate)
            if left >= 1:
                self._left[name] = (left - 1, now)
                return
            self._left[name] = (left, now)
        raise too_many(math.ceil((1 - left) / rate))
