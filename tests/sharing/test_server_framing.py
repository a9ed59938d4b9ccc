"""Requests whose end is doubtful, and clients that leave in the middle of theirs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.sharing.server.application import app
from tests.support.sharing import PREFIX, TOKEN, path_of
from tests.support.sharing_process import ServerProcess, config_of, running_server

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

QUERY = f"{PREFIX}{path_of('s.d.t')}/query"
NEXT = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("server")
    write_deltalake(home / "t", pa.table({"a": [1]}))
    with running_server(home, config_of(home / "t")) as server:
        yield server


def answers(server: ServerProcess, data: bytes) -> bytes:
    """All that the server says until it closes the connection."""
    with server.connect() as connection:
        connection.settimeout(20)
        connection.sendall(data)
        found = b""
        while piece := connection.recv(65536):
            found += piece
        return found


def post(*lines: str, path: str = QUERY, body: bytes = b"", token: str = TOKEN) -> bytes:
    head = (f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", *lines)
    return "\r\n".join((*head, "", "")).encode() + body


CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.parametrize("path", [QUERY, "/health", f"{PREFIX}/nothing", f"{PREFIX}/shares"])
@pytest.mark.parametrize("token", [TOKEN, "wrong"])
@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 2", CHUNKED),
        (CHUNKED, "Content-Length: 2"),
        ("Content-Length: 7", "transfer-encoding: Chunked"),
        ("Content-Length: 99999999999999", CHUNKED),
        ("Content-Length: 0", CHUNKED),
        ("Content-Length: 2", "Transfer-Encoding:", "  chunked"),
        ("Content-Length: 2", "Transfer-Encoding: identity"),
        ("Content-Length: 2", "Transfer-Encoding: gzip, chunked"),
        ("Content-Length: 2", CHUNKED, CHUNKED),
        ("Content-Length: 2", "Transfer-Encoding: chunked, chunked"),
        ("Content-Length: 2", "Content-Length: 5"),
        ("Content-Length: +5",),
        ("Content-Length: 0x2",),
        ("Content-Length: -1",),
        ("Content-Length: 2, 5",),
        (CHUNKED, CHUNKED),
        ("Transfer-Encoding: identity, chunked",),
        ("Transfer-Encoding : chunked",),
    ],
)
def test_a_doubtful_end_closes_the_connection(
    server: ServerProcess, lines: tuple[str, ...], token: str, path: str
) -> None:
    """Whatever follows is no request of its own."""
    found = answers(server, post(*lines, path=path, token=token, body=b"0\r\n\r\n" + NEXT))
    assert found.count(b"HTTP/1.1 ") == 1
    assert found.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413", b"HTTP/1.1 501"))
    assert b'{"status":"ok"}' not in found


def test_requests_that_say_once_how_long_they_are_keep_it(server: ServerProcess) -> None:
    last = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    plain = post("Content-Length: 2", body=b"{}")
    chunked = post(CHUNKED, body=b"2\r\n{}\r\n0\r\n\r\n")
    found = answers(server, plain + chunked + last)
    assert [found.count(text) for text in (b"HTTP/1.1 200", b'{"status":"ok"}')] == [3, 1]


@pytest.mark.parametrize(
    "data",
    [
        post("Content-Length: 50", body=b'{"limitHint"'),
        post("Content-Length: 50"),
        post(CHUNKED, body=b'5\r\n{"lim'),
        post(CHUNKED, body=b"ff\r\n"),
        post("Content-Length: 50", body=b"{}")[:40],
    ],
)
def test_a_client_that_leaves_during_its_request_is_no_defect(
    server: ServerProcess, data: bytes
) -> None:
    before = len(audit(server))
    with server.connect() as connection:
        connection.sendall(data)
        time.sleep(0.2)  # what has come is read before the connection is lost
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert server.get("/health") == 200
    for _ in range(200):
        if [line for line in audit(server)[before:] if line["status"] != 200]:
            break
        if not data.endswith(b"\r\n") and b"\r\n\r\n" not in data:
            break  # no request at all
        time.sleep(0.05)
    assert {line["status"] for line in audit(server)[before:]} <= {200, 499}
    assert "failed" not in server.log.read_text()


def audit(server: ServerProcess) -> list[dict[str, Any]]:
    lines = server.log.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.parametrize("stage", ["before the body", "within it", "while it is answered"])
def test_in_any_server_of_asgi(
    stage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    config = config_of(tmp_path / "t")
    application, sent = app(config), []
    pieces: list[dict[str, Any]] = []
    if stage != "before the body":
        more = stage == "within it"
        pieces.append({"type": "http.request", "body": b"{}", "more_body": more})

    async def receive() -> Any:
        if pieces:
            return pieces.pop(0)
        if stage == "while it is answered":
            await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if stage == "while it is answered":
            raise ConnectionResetError("the client is gone")
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": QUERY,
        "raw_path": QUERY.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"x"), (b"authorization", f"Bearer {TOKEN}".encode())],
        "client": ("127.0.0.1", 1),
        "server": ("x", 80),
    }
    with caplog.at_level("INFO", "deltalog.sharing"):
        asyncio.run(application(scope, receive, send))  # type: ignore[arg-type]
    assert [one.get("status") for one in sent if "status" in one] in ([], [499])
    assert not [one for one in caplog.records if "failed" in one.getMessage()]
