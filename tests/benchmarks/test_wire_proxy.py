from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from benchmarks.wire.control import Control
from benchmarks.wire.proxy import parse_head
from benchmarks.wire.server import proxy_before
from benchmarks.wire.traffic import counted
from deltalog.storage import open_store
from tests.support.emulators import Emulator

MANY = 8
WHOLE = bytes(range(256)) * 8_192  # two megabytes


class _Origin(BaseHTTPRequestHandler):
    """Answers with what it was sent, or with `WHOLE`, in the ways that HTTP/1.1 has."""

    protocol_version = "HTTP/1.1"
    barrier = threading.Barrier(MANY)
    hosts: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.hosts.append(self.headers["Host"])
        match self.path:
            case "/together":
                self.barrier.wait(timeout=60)
                self._answer(b"all are here")
            case "/chunks":
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for at in range(0, len(WHOLE), 100_000):
                    piece = WHOLE[at : at + 100_000]
                    self.wfile.write(b"%x;note=1\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\nX-Trailer: yes\r\n\r\n")
            case "/until-the-end":
                self.send_response(200)
                self.end_headers()
                self.wfile.write(WHOLE)
                self.close_connection = True
            case "/nothing":
                self.send_response(204)
                self.end_headers()
            case _:
                self._answer(WHOLE)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(WHOLE)))
        self.end_headers()

    def do_PUT(self) -> None:
        if self.path == "/refused":  # before its body was read
            self.send_response(412)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
        else:
            self._answer(self._body())

    def _body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while length := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - inherited name
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that go away are what a test is about."""


@dataclass(frozen=True, slots=True)
class Proxied:
    port: int
    control: Control


@pytest.fixture(scope="module")
def running() -> Iterator[Proxied]:
    with _Server(("127.0.0.1", 0), _Origin) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            with proxy_before(server.server_port) as ports, Control(ports["control_port"]) as door:
                yield Proxied(ports["port"], door)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def proxy(running: Proxied) -> Proxied:
    running.control.set_latency(1)
    running.control.set_bandwidth(0)
    running.control.reset()
    return running


@pytest.fixture
def client(proxy: Proxied) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=60)
    yield connection
    connection.close()


def asked(connection: http.client.HTTPConnection, path: str, method: str = "GET") -> bytes:
    connection.request(method, path)
    return connection.getresponse().read()


def test_a_head_is_what_it_says() -> None:
    head = parse_head(b"GET /a?b=c:d HTTP/1.1\r\nHOST:x:1\r\nTransfer-Encoding: Chunked\r\n\r\n")
    assert head.first == ("GET", "/a?b=c:d", "HTTP/1.1")
    assert head.headers == {"host": "x:1", "transfer-encoding": "Chunked"}
    assert head.body_bytes is None
    assert not head.is_last
    answer = parse_head(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n")
    assert (answer.status, answer.body_bytes, answer.is_last) == (404, -1, True)


def test_bodies_come_whole_however_they_are_framed(
    proxy: Proxied, client: http.client.HTTPConnection
) -> None:
    for path in ("/length", "/chunks", "/until-the-end", "/length"):
        assert asked(client, path) == WHOLE
    assert asked(client, "/nothing") == b""
    assert asked(client, "/length", "HEAD") == b""
    found = proxy.control.exchanges()
    assert [one.status for one in found] == [200, 200, 200, 200, 204, 200]
    assert [one.bytes_down for one in found] == [*[len(WHOLE)] * 4, 0, 0]
    assert [one.method for one in found] == [*["GET"] * 5, "HEAD"]


def test_bodies_go_whole_however_they_are_framed(
    proxy: Proxied, client: http.client.HTTPConnection
) -> None:
    client.request("PUT", "/x", body=WHOLE)
    assert client.getresponse().read() == WHOLE
    pieces = (WHOLE[at : at + 70_000] for at in range(0, len(WHOLE), 70_000))
    client.request("PUT", "/x", body=pieces, encode_chunked=True)
    assert client.getresponse().read() == WHOLE
    found = proxy.control.exchanges()
    assert [(one.bytes_up, one.bytes_down) for one in found] == [(len(WHOLE), len(WHOLE))] * 2
    assert counted(found).connections == 1


def test_leave_to_send_a_body_is_passed_on_and_waited_for(proxy: Proxied) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as end:
        lines = end.makefile("rb")
        for _ in range(2):
            end.sendall(
                b"PUT /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
            )
            assert lines.readline().startswith(b"HTTP/1.1 100")
            assert lines.readline() == b"\r\n"
            end.sendall(b"bytes")
            assert lines.readline().startswith(b"HTTP/1.1 200")
            while lines.readline() != b"\r\n":
                pass
            assert lines.read(5) == b"bytes"
        lines.close()
    assert [one.waits for one in proxy.control.exchanges()] == [2, 2]


def test_an_answer_before_the_body_reaches_the_client(
    proxy: Proxied, client: http.client.HTTPConnection
) -> None:
    client.putrequest("PUT", "/refused")
    client.putheader("Content-Length", "5")
    client.endheaders()
    assert client.getresponse().status == 412
    assert [one.status for one in proxy.control.exchanges()] == [412]


def test_the_server_gets_the_host_that_was_signed(
    proxy: Proxied, client: http.client.HTTPConnection
) -> None:
    _Origin.hosts.clear()
    asked(client, "/length")
    assert _Origin.hosts == [f"127.0.0.1:{proxy.port}"]


def test_one_after_the_other_over_any_connection_are_as_many_rounds(proxy: Proxied) -> None:
    for _ in range(5):
        other = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=60)
        for _ in range(3):
            asked(other, "/length")
        other.close()
    found = counted(proxy.control.exchanges())
    assert (found.requests, found.rounds, found.most_under_way) == (15, 15, 1)
    assert found.connections == 5


def test_those_that_wait_for_each_other_are_one_round(proxy: Proxied) -> None:
    def together(_: int) -> bytes:
        other = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=60)
        try:
            return asked(other, "/together")
        finally:
            other.close()

    with ThreadPoolExecutor(MANY) as threads:
        assert list(threads.map(together, range(MANY))) == [b"all are here"] * MANY
    found = counted(proxy.control.exchanges())
    assert (found.requests, found.rounds, found.most_under_way) == (MANY, 1, MANY)


def test_no_request_is_shorter_than_the_latency(
    proxy: Proxied, client: http.client.HTTPConnection
) -> None:
    proxy.control.set_latency(30)
    asked(client, "/nothing")
    (found,) = proxy.control.exchanges()
    assert found.end_s - found.start_s >= 0.03


def test_no_answer_is_quicker_than_the_bandwidth(
    proxy: Proxied, client: http.client.HTTPConnection
) -> None:
    proxy.control.set_bandwidth(10_000_000)
    assert asked(client, "/length") == WHOLE
    (found,) = proxy.control.exchanges()
    at_once_bytes = 262_144
    assert found.end_s - found.start_s >= (len(WHOLE) - at_once_bytes) / 10_000_000 * 0.99


def test_a_client_that_goes_away_leaves_the_others_served(
    proxy: Proxied, client: http.client.HTTPConnection
) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as end:
        end.sendall(b"PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 500\r\n\r\nonly a part")
    assert asked(client, "/length") == WHOLE


@pytest.mark.emulator
def test_a_store_behind_it_holds_what_was_put(s3: Emulator) -> None:
    port = int(s3.endpoint.rsplit(":", 1)[1])
    with proxy_before(port) as ports, Control(ports["control_port"]) as control:
        control.set_latency(1)
        through = {**s3.options, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['port']}"}
        store = open_store(s3.url, through)
        store.put("a b.bin", WHOLE)
        store.put_if_absent("_delta_log/0.json", b"{}")
        assert store.read("a b.bin") == WHOLE
        assert store.read_ranges("a b.bin", [(5, 9), (1_000_000, 1_500_000)]) == [
            WHOLE[5:9],
            WHOLE[1_000_000:1_500_000],
        ]
        assert [file.path for file in store.list_from("_delta_log", "")] == ["_delta_log/0.json"]
        kinds = counted(control.exchanges()).kinds
    assert kinds["PUT"] == 2
    assert kinds["GET"] == 3
    assert kinds["LIST"] >= 1
    assert open_store(s3.url, s3.options).read("a b.bin") == WHOLE
