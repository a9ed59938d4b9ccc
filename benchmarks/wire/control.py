"""The control connection to the proxy: settings, and the requests that passed through it.

One connection, one JSON object a line in each direction.
"""

from __future__ import annotations

import json
import socket
from types import TracebackType
from typing import Any, Self

from benchmarks.wire.traffic import Exchange


class Control:
    """A connection to the proxy's second port.

    Args:
        port: on this machine.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._lines.close()
        self._socket.close()

    def set_latency(self, latency_ms: float) -> None:
        """Set the delay of later requests."""
        self._ask({"latency_ms": latency_ms})

    def set_bandwidth(self, bytes_per_second: float) -> None:
        """Limit the bytes per second of a connection in each direction; 0 removes the limit."""
        self._ask({"bytes_per_second": bytes_per_second})

    def reset(self) -> None:
        """Forget all finished requests. Requests in progress are recorded when they end."""
        self._ask({"reset": True})

    def exchanges(self) -> list[Exchange]:
        """Return the requests that ended since the last reset, in the order of their start."""
        found = [Exchange(**one) for one in self._ask({"exchanges": True})["exchanges"]]
        return sorted(found, key=lambda one: one.start_s)

    def _ask(self, question: dict[str, object]) -> dict[str, Any]:
        self._socket.sendall(json.dumps(question).encode() + b"\n")
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer
