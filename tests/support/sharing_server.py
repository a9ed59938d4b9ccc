"""A sharing server on loopback that answers what a test tells it to, and notes what it is asked."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

NDJSON = "application/x-ndjson; charset=utf-8"
JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    target: str = ""

    @property
    def json(self) -> Any:
        """The body's value."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to give; one that is `cut` ends in the middle of its body."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None


def lines(
    *objects: object, version: int | None = 0, headers: Mapping[str, str] | None = None
) -> Answer:
    """An answer about a table: one line an object."""
    body = b"".join(
        one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in objects
    )
    told = {} if version is None else {"Delta-Table-Version": str(version)}
    return Answer(200, body, {"Content-Type": NDJSON, **told, **(headers or {})})


def listed(items: Sequence[object] | None, token: str | None = None) -> Answer:
    """A page of a listing."""
    body: dict[str, Any] = {} if items is None else {"items": list(items)}
    if token is not None:
        body["nextPageToken"] = token
    return Answer(200, json.dumps(body).encode(), {"Content-Type": JSON})


def fault(status: int, code: str = "", message: str = "", **headers: str) -> Answer:
    """An error as the protocol has it."""
    body = json.dumps({"errorCode": code, "message": message}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, body, {"Content-Type": "application/json", **named})


class ScriptedServer:
    """Answers by method and path: each answer of a list once, the last one for ever.

    Attributes:
        asked: every request, in order.
        files: bytes by path, given whole or in ranges.
        denied: paths whose requests are refused with 403.
        plain: nothing is compressed, even for clients that accept it.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.files: dict[str, bytes] = {}
        self.denied: set[str] = set()
        self.plain = False
        self._answers: dict[str, list[Answer | Callable[[Asked], Answer]]] = {}
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server._serve(self)

            do_POST = do_HEAD = do_GET  # noqa: N815  # the library's names

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def endpoint(self) -> str:
        """The sharing endpoint of its profile."""
        return f"{self.url}/delta-sharing"

    def profile(self, **more: Any) -> dict[str, Any]:
        """A profile for it."""
        return {
            "shareCredentialsVersion": 1,
            "endpoint": self.endpoint + "/",
            "bearerToken": "token-1",
            **more,
        }

    def on(self, request: str, *answers: Answer | Callable[[Asked], Answer]) -> None:
        """Answer `GET /shares`, with the prefix left out."""
        method, path = request.split(" ", 1)
        self._answers[f"{method} /delta-sharing{path}"] = list(answers)

    def on_table(self, request: str, *answers: Answer | Callable[[Asked], Answer]) -> None:
        """Answer `POST query` of the table `s.d.t`."""
        method, name = request.split(" ", 1)
        self.on(f"{method} /shares/s/schemas/d/tables/t/{name}", *answers)

    def at(self, path: str, *answers: Answer | Callable[[Asked], Answer]) -> None:
        """Answer any method at a path outside of the prefix."""
        for method in ("GET", "POST"):
            self._answers[f"{method} {path}"] = list(answers)

    def paths(self, end: str = "") -> list[str]:
        """The requests whose path ends so."""
        return [f"{one.method} {one.path}" for one in self.asked if one.path.endswith(end)]

    def find(self, end: str) -> list[Asked]:
        """The requests whose path ends so, whole."""
        return [one for one in self.asked if one.path.endswith(end)]

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        size = int(handler.headers.get("Content-Length", 0))
        asked = Asked(
            handler.command,
            parts.path,
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            {name.lower(): value for name, value in handler.headers.items()},
            handler.rfile.read(size),
            handler.path,
        )
        with self._lock:
            self.asked.append(asked)
            script = self._answers.get(f"{asked.method} {asked.path}")
            answer = None
            if script:
                answer = script.pop(0) if len(script) > 1 else script[0]
        if answer is None:
            answer = self._file(asked)
        elif callable(answer):
            answer = answer(asked)
        self._send(handler, answer, asked)

    def _file(self, asked: Asked) -> Answer:
        data = self.files.get(asked.path)
        if asked.path in self.denied:
            return Answer(403, b"expired")
        if data is None:
            return fault(404, "RESOURCE_DOES_NOT_EXIST", "nothing here")
        wanted = asked.headers.get("range", "")
        if not wanted:
            return Answer(200, data)
        start, _, end = wanted.removeprefix("bytes=").partition("-")
        if int(start) >= len(data):
            return Answer(416)
        part = data[int(start) : int(end) + 1]
        span = f"bytes {start}-{int(start) + len(part) - 1}/{len(data)}"
        return Answer(206, part, {"Content-Range": span})

    def _send(self, handler: BaseHTTPRequestHandler, answer: Answer, asked: Asked) -> None:
        body, headers = answer.body, dict(answer.headers)
        if (
            "gzip" in asked.headers.get("accept-encoding", "")
            and answer.cut is None
            and not self.plain
        ):
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        handler.send_response(answer.status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if answer.cut is not None:
            handler.wfile.write(body[: answer.cut])
            handler.close_connection = True
        elif asked.method != "HEAD":
            handler.wfile.write(body)
