"""Metrics of the server in Prometheus' text format.

Labels are endpoints and statuses only: no recipient and no table is named.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# Upper bounds of the histogram, in seconds.
_BOUNDS: Final = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Gauge:
    """A value of this moment.

    Args:
        name: without the common beginning.
        text: what it is.
        value: of this moment.
    """

    name: str
    text: str
    value: int


class Metrics:
    """Counts requests; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, int], int] = defaultdict(int)
        self._times: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_BOUNDS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)
        self._sent_bytes = 0
        self._files = 0
        self._running = 0

    def begin(self) -> None:
        """Count a request that starts."""
        with self._lock:
            self._running += 1

    def end(self, action: str, status: int, seconds: float, sent_bytes: int, files: int) -> None:
        """Count a request that ended."""
        with self._lock:
            self._running -= 1
            self._requests[action, status] += 1
            self._times[action][bisect_left(_BOUNDS, seconds)] += 1
            self._seconds[action] += seconds
            self._sent_bytes += sent_bytes
            self._files += files

    def text(self, gauges: Iterable[Gauge] = ()) -> str:
        """Return all metrics.

        Args:
            gauges: what others know.
        """
        with self._lock:
            lines = [
                *_head("requests_total", "counter", "Requests by endpoint and status."),
                *(
                    f'deltalog_sharing_requests_total{{action="{action}",status="{status}"}} {n}'
                    for (action, status), n in sorted(self._requests.items())
                ),
                *_head("request_seconds", "histogram", "How long requests took."),
                *(line for action in sorted(self._times) for line in self._histogram(action)),
                *_single("sent_bytes_total", "counter", "Bytes of bodies.", self._sent_bytes),
                *_single("told_files_total", "counter", "Files in answers.", self._files),
                *_single("running_requests", "gauge", "Requests at work.", self._running),
            ]
            for one in gauges:
                lines += _single(one.name, "gauge", one.text, one.value)
        return "\n".join(lines) + "\n"

    def _histogram(self, action: str) -> list[str]:
        name, total = "deltalog_sharing_request_seconds", 0
        lines = []
        for bound, count in zip([*map(str, _BOUNDS), "+Inf"], self._times[action], strict=True):
            total += count
            lines.append(f'{name}_bucket{{action="{action}",le="{bound}"}} {total}')
        return [
            *lines,
            f'{name}_sum{{action="{action}"}} {self._seconds[action]:.6f}',
            f'{name}_count{{action="{action}"}} {total}',
        ]


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP deltalog_sharing_{name} {text}", f"# TYPE deltalog_sharing_{name} {kind}"]


def _single(name: str, kind: str, text: str, value: int) -> list[str]:
    return [*_head(name, kind, text), f"deltalog_sharing_{name} {value}"]
