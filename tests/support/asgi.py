"""Asking an ASGI application in this process, and serving one over loopback."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import orjson

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

Json = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """What an application answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_complete: bool = True

    def json(self) -> Any:
        """The body as one document."""
        return orjson.loads(self.body)

    def lines(self) -> list[Json]:
        """The body as newline-delimited documents."""
        return [orjson.loads(line) for line in self.body.splitlines()]


def ask(
    app: ASGIApp,
    method: str,
    target: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    client: str = "127.0.0.1",
) -> Reply:
    """One request, answered in this thread.

    Args:
        app: the application.
        method: of HTTP.
        target: path and query as they go over the wire.
        headers: of the request.
        body: of the request.
        client: address that the request comes from.
    """
    return asyncio.run(ask_async(app, method, target, headers=headers, body=body, client=client))


async def ask_async(
    app: ASGIApp,
    method: str,
    target: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    client: str = "127.0.0.1",
) -> Reply:
    """As `ask`, for who has an event loop already."""
    path, _, query = target.partition("?")
    fields = {"host": "sharing.test", **(headers or {})}
    if body and "transfer-encoding" not in fields:
        fields["content-length"] = str(len(body))
    scope: Json = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.encode("utf-8", "replace"),
        "root_path": "",
        "headers": [
            (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in fields.items()
        ],
        "client": (client, 50000),
        "server": ("sharing.test", 80),
    }
    sent: list[Message] = []
    pieces = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if pieces:
            return pieces.pop()
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = next((one for one in sent if one["type"] == "http.response.start"), None)
    bodies = [one for one in sent if one["type"] == "http.response.body"]
    return Reply(
        status=0 if start is None else start["status"],
        headers={} if start is None else _fields(start["headers"]),
        body=b"".join(one.get("body", b"") for one in bodies),
        is_complete=bool(bodies) and not bodies[-1].get("more_body", False),
    )


def _fields(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """The application over loopback; gives its URL."""
    import uvicorn

    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
