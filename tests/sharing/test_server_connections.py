"""Connections: how many there are, which is closed for another, how long they may say nothing."""

from __future__ import annotations

import http.client
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.sharing.server.connections import ThrottleFilter
from tests.support.sharing import PREFIX, TOKEN, path_of
from tests.support.sharing_process import ServerProcess, config_of, running_server

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


def test_silent_connections_stop_nobody(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, config_of(tmp_path / "t"), files=200) as server,
        ExitStack() as open_ones,
    ):
        for _ in range(260):
            with suppress(OSError):
                open_ones.enter_context(server.connect())
        assert [server.get("/health") for _ in range(5)] == [200] * 5
        assert server.process.poll() is None
        assert server.log.stat().st_size < 100_000


def _connected(server: ServerProcess) -> http.client.HTTPConnection:
    """A connection that has been used, and waits for another request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    _use(connection)
    return connection


def _use(connection: http.client.HTTPConnection) -> None:
    connection.request("GET", "/health")
    assert connection.getresponse().read() == b'{"status":"ok"}'


@contextmanager
def _at_work(server: ServerProcess) -> Iterator[socket.socket]:
    """A connection whose request has begun: the server waits for two bytes of its body."""
    with server.connect() as one:
        head = (
            f"POST {PREFIX}{path_of('s.d.t')}/query HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {TOKEN}",
            "Content-Length: 2",
            "Expect: 100-continue",
        )
        one.sendall("\r\n".join((*head, "", "")).encode())
        assert one.recv(1000).startswith(b"HTTP/1.1 100 ")
        yield one


def test_the_connection_that_has_waited_longest_makes_room(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    config = config_of(tmp_path / "t", {"connections": 3})
    with running_server(tmp_path, config) as server, _at_work(server) as oldest:
        first, second = _connected(server), _connected(server)
        _use(first)
        third = _connected(server)
        assert second.sock.recv(100) == b""
        _use(first)
        oldest.sendall(b"{}")
        assert oldest.recv(100).startswith(b"HTTP/1.1 200 ")
        for one in (first, second, third):
            one.close()


def test_connections_at_work_make_no_room(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    config = config_of(tmp_path / "t", {"connections": 1})
    with running_server(tmp_path, config) as server, _at_work(server) as one:
        with server.connect() as another:
            assert another.recv(100) == b""
        assert "connections are refused" in server.log.read_text()
        one.sendall(b"{}")
        assert one.recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_who_sends_no_request_is_hung_up_on(tmp_path: Path, sent: bytes) -> None:
    config = config_of(tmp_path / "t", {"headerSeconds": 1})
    with running_server(tmp_path, config) as server, server.connect() as one:
        one.sendall(sent)
        assert one.recv(100) == b""


def test_a_connection_is_kept_for_the_next_request(tmp_path: Path) -> None:
    config = config_of(tmp_path / "t", {"headerSeconds": 1})
    with running_server(tmp_path, config) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for _ in range(2):
            connection.request("GET", "/health")
            assert connection.getresponse().read() == b'{"status":"ok"}'
            time.sleep(1.2)  # longer than a request may take to begin, once it has begun
        # The second request began on the first one's connection, and then said no more.
        assert connection.sock is not None
        connection.sock.sendall(b"GET /health HTT")
        assert connection.sock.recv(100) == b""
        connection.close()


def test_damaged_requests_fill_no_log(tmp_path: Path) -> None:
    with running_server(tmp_path, config_of(tmp_path / "t")) as server:
        for _ in range(300):
            with server.connect() as one:
                one.sendall(b"\x16\x03\x01 no http\r\n\r\n")
                one.recv(100)
        assert server.log.read_text().count("Invalid HTTP request") <= 10


def test_records_of_one_kind_are_held_back() -> None:
    now = [0.0]
    throttle = ThrottleFilter(2, 60, lambda: now[0])

    def passes(text: str, *values: object) -> str | None:
        record = logging.LogRecord("x", logging.WARNING, "", 0, text, values, None)
        return record.getMessage() if throttle.filter(record) else None

    assert [passes("no %s", number) for number in range(5)] == ["no 0", "no 1", None, None, None]
    assert passes("another") == "another"
    now[0] = 61.0
    assert passes("no %s", 5) == "no 5 (and 3 more like this before)"
    assert passes("no %s", 6) == "no 6"
