"""The server's process: connections that say nothing, signals, and what a kill leaves behind."""

from __future__ import annotations

import http.client
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.sharing.server.connections import ThrottleFilter
from tests.support.sharing import PREFIX, TOKEN, path_of, small_config

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
STARTED = (
    "import resource, sys; "
    "files = int(sys.argv.pop(1)); "
    "files and resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)); "
    "from deltalog.sharing.__main__ import main; main()"
)


class Process:
    """A server as a process of its own, with its log in a file."""

    def __init__(self, home: Path, config: dict[str, Any], files: int = 0) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.path = home / "c.json"
        self.log = home / "log"
        self.config = {**config, "port": self.port, "host": "127.0.0.1"}
        self.path.write_text(json.dumps(self.config))
        os.utime(self.path, (1_600_000_000, 1_600_000_000))
        command = [sys.executable, "-c", STARTED, str(files), "serve", str(self.path)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stderr=log)
        for _ in range(1200):
            assert self.process.poll() is None, self.log.read_text()
            with suppress(OSError):
                if self.get("/health") == 200:
                    return
            time.sleep(0.05)
        raise AssertionError("the server did not start")

    def get(self, target: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", target, headers={"Authorization": f"Bearer {TOKEN}"})
            return connection.getresponse().status
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def file_url(self) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        connection.request("POST", f"{PREFIX}{path_of('s.d.t')}/query", headers=headers)
        lines = connection.getresponse().read().splitlines()
        connection.close()
        url: str = next(json.loads(line)["file"]["url"] for line in lines if b'{"file"' in line)
        return url


@contextmanager
def _running(home: Path, config: dict[str, Any], files: int = 0) -> Iterator[Process]:
    home.mkdir(exist_ok=True)
    server = Process(home, config, files)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def _config(table: Path, limits: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    shares = [
        {
            "name": "s",
            "schemas": [{"name": "d", "tables": [{"name": "t", "location": str(table), **more}]}],
        }
    ]
    return small_config(shares=shares, limits=limits or {})


def test_silent_connections_stop_nobody(tmp_path: Path) -> None:
    with _running(tmp_path, _config(tmp_path / "t"), files=200) as server, ExitStack() as open_ones:
        for _ in range(260):
            with suppress(OSError):
                open_ones.enter_context(server.connect())
        assert [server.get("/health") for _ in range(5)] == [200] * 5
        assert server.process.poll() is None
        assert server.log.stat().st_size < 100_000


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_who_sends_no_request_is_hung_up_on(tmp_path: Path, sent: bytes) -> None:
    config = _config(tmp_path / "t", {"headerSeconds": 1})
    with _running(tmp_path, config) as server, server.connect() as one:
        one.sendall(sent)
        assert one.recv(100) == b""


def test_a_connection_is_kept_for_the_next_request(tmp_path: Path) -> None:
    config = _config(tmp_path / "t", {"headerSeconds": 1})
    with _running(tmp_path, config) as server:
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
    with _running(tmp_path, _config(tmp_path / "t")) as server:
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


def test_a_stalled_download_holds_up_no_end(tmp_path: Path) -> None:
    noise = [os.urandom(1 << 20) for _ in range(40)]
    write_deltalake(tmp_path / "t", pa.table({"a": pa.array(noise, pa.binary())}))
    config = _config(tmp_path / "t", {"graceSeconds": 1, "sendSeconds": 600})
    with _running(tmp_path, config) as server:
        target = "/" + server.file_url().partition("://")[2].partition("/")[2]
        with server.connect() as one:
            one.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert one.recv(10).startswith(b"HTTP/1.1 2")  # and no more is read
            server.process.terminate()
            assert server.process.wait(30) == 0


def test_a_hang_up_reloads_at_once(tmp_path: Path) -> None:
    with _running(tmp_path, _config(tmp_path / "t")) as server:
        assert server.get(f"{PREFIX}/shares/new") == 404
        server.config["shares"].append({"name": "new"})
        server.path.write_text(json.dumps(server.config))
        server.process.send_signal(signal.SIGHUP)
        for _ in range(200):
            if "the configuration is reloaded" in server.log.read_text():
                break
            time.sleep(0.02)
        assert server.get(f"{PREFIX}/shares/new") == 200
        server.path.write_text("{")
        server.process.send_signal(signal.SIGHUP)
        for _ in range(200):
            if "is not reloaded" in server.log.read_text():
                break
            time.sleep(0.02)
        assert server.get(f"{PREFIX}/shares/new") == 200


def test_the_cache_of_a_killed_server_is_removed(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1, 2]}))
    cache = tmp_path / "cache"
    cache.mkdir()
    config = {**_config(tmp_path / "t", rowFilter="a < 9"), "cacheDirectory": str(cache)}
    with _running(tmp_path / "one", config) as server:
        server.file_url()
        (killed,) = cache.iterdir()
    with _running(tmp_path / "two", config) as server:
        server.file_url()
        (living,) = cache.iterdir()
        assert living != killed
        with _running(tmp_path / "three", config) as other:
            other.file_url()
            assert living in cache.iterdir()  # its server is at work
        assert server.process.poll() is None
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert living not in cache.iterdir()
