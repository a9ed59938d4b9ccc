"""A backend of OpenLineage on loopback, which keeps what it is sent."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LineageBackend:
    """Takes events.

    Attributes:
        events: in the order in which they came, each with the `path` of its request.
        headers: of the requests.
        status: that is answered.
        may_answer: is set while answers are given.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.may_answer = threading.Event()
        self.may_answer.set()
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                backend.may_answer.wait(30)
                backend.headers.append(dict(self.headers))
                backend.events.append({"path": self.path, **json.loads(body)})
                self.send_response(backend.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def states(self) -> list[tuple[str, str]]:
        """Type and job of each event."""
        return [(event["eventType"], event["job"]["name"]) for event in self.events]

    def close(self) -> None:
        """Take no more."""
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()
