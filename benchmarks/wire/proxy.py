"""A proxy that gives a server on this machine the latency and bandwidth of an object store.

`python -m benchmarks.wire.proxy HOST:PORT` prints its ports as JSON, and ends when its standard
input is closed. All bytes pass unchanged, including headers: a signature covers `Host`, so the
server must receive the client's value. Each request is delayed by the latency. The bytes per second
of each connection are limited in each direction. Opening a connection adds no delay.

The proxy supports the features that clients of object stores use: HTTP/1.1 without pipelining,
bodies with a length, in chunks or until the end of the connection, and interim responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field

from benchmarks.wire.traffic import Exchange

BYTES_PER_SECOND = 100_000_000.0
_BURST_BYTES = 262_144  # what may pass at once after a pause, as from the buffers of a network
_BUFFER_BYTES = 262_144
_MOST_HEAD_BYTES = 65_536
_WITHOUT_BODY = frozenset({204, 304})


class Disconnected(Exception):  # noqa: N818  # nothing went wrong: they went
    """A side closed its connection."""


@dataclass(slots=True)
class Network:
    """The settings of the network, and the requests that passed."""

    latency_s: float = 0.0
    bytes_per_second: float = BYTES_PER_SECOND
    exchanges: list[Exchange] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first line and the headers of a message, with their statements about the body.

    Args:
        raw: the bytes, including the empty line at the end.
        first: the words of the first line.
        headers: by lower-case name.
    """

    raw: bytes
    first: tuple[str, ...]
    headers: dict[str, str]

    @property
    def status(self) -> int:
        """The status of a response."""
        return int(self.first[1])

    @property
    def body_bytes(self) -> int | None:
        """The length of the body; None if it is sent in chunks, -1 if no header states it."""
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            return None
        return int(self.headers.get("content-length", "-1"))

    @property
    def asks_leave(self) -> bool:
        """Whether the client sends the body only after an interim response."""
        return self.headers.get("expect", "").lower() == "100-continue"

    @property
    def is_last(self) -> bool:
        """Whether the connection is closed after this message."""
        return self.headers.get("connection", "").lower() == "close"


def parse_head(raw: bytes) -> Head:
    """Parse the bytes up to and including the empty line."""
    first, *lines = raw.decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    return Head(raw=raw, first=tuple(first.split(" ", 2)), headers=headers)


class Pace:
    """Limits the bytes per second, as a token bucket."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._free_at_s = 0.0

    async def take(self, count: int) -> None:
        """Wait until that many bytes may have passed."""
        rate = self._network.bytes_per_second
        if not rate:
            return
        now = asyncio.get_running_loop().time()
        self._free_at_s = max(self._free_at_s, now - _BURST_BYTES / rate) + count / rate
        if self._free_at_s > now:
            await asyncio.sleep(self._free_at_s - now)


class Side:
    """One end of a connection: its unprocessed bytes, and the limit for its reads."""

    def __init__(self, end: socket.socket, network: Network) -> None:
        self.socket = end
        self._pace = Pace(network)
        self._rest = bytearray()
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._loop = asyncio.get_running_loop()

    async def head(self) -> Head | None:
        """Return the next head; None if the connection ends before it."""
        while (at := self._rest.find(b"\r\n\r\n")) < 0:
            if len(self._rest) > _MOST_HEAD_BYTES:
                raise Disconnected
            count = await self._loop.sock_recv_into(self.socket, self._buffer)
            if not count:
                return None
            self._rest += self._buffer[:count]
        return parse_head(self._taken(at + 4))

    async def send(self, data: bytes | memoryview) -> None:
        """Write to this end."""
        await self._loop.sock_sendall(self.socket, data)

    async def pieces(self, count: int | None) -> AsyncIterator[tuple[bytes | memoryview, int]]:
        """Yield a body with a length, in chunks (None) or until the end (-1).

        Each piece has the number of its bytes without the framing of chunks. Use a piece before
        the next one is requested.
        """
        if count is None:
            async for found in self._chunks():
                yield found
            return
        missing = count
        while missing:
            data = await self._some(min(missing, _BUFFER_BYTES) if count > 0 else _BUFFER_BYTES)
            if not data:
                if count < 0:
                    return
                raise Disconnected
            missing -= len(data)
            yield data, len(data)

    async def _chunks(self) -> AsyncIterator[tuple[bytes | memoryview, int]]:
        while True:
            line = await self._line()
            yield line, 0
            length = int(line.split(b";")[0], 16)
            if length == 0:
                break
            async for found in self.pieces(length):
                yield found
            yield await self._line(), 0
        while (line := await self._line()) != b"\r\n":  # trailers
            yield line, 0
        yield line, 0

    async def _line(self) -> bytes:
        while (at := self._rest.find(b"\r\n")) < 0:
            count = await self._loop.sock_recv_into(self.socket, self._buffer)
            if not count:
                raise Disconnected
            self._rest += self._buffer[:count]
        return self._taken(at + 2)

    async def _some(self, most: int) -> bytes | memoryview:
        """Read at most this many bytes; empty at the end. Use them before the next read."""
        if self._rest:
            data: bytes | memoryview = self._taken(most)
        else:
            count = await self._loop.sock_recv_into(self.socket, self._buffer[:most])
            data = self._buffer[:count]
        await self._pace.take(len(data))
        return data

    def _taken(self, count: int) -> bytes:
        data = bytes(self._rest[:count])
        del self._rest[:count]
        return data


class Link:
    """The connection of a client, and the corresponding connection to the server."""

    def __init__(
        self, client: socket.socket, server: tuple[str, int], network: Network, number: int
    ) -> None:
        self._client = Side(client, network)
        self._address = server
        self._server: Side | None = None
        self._network = network
        self._number = number
        self._loop = asyncio.get_running_loop()

    async def serve(self) -> None:
        """Forward requests and responses until a side closes its connection."""
        try:
            with contextlib.suppress(Disconnected, OSError):
                while (request := await self._client.head()) is not None:
                    if not await self._exchange(request):
                        break
        finally:
            self._client.socket.close()
            if self._server is not None:
                self._server.socket.close()

    async def _exchange(self, request: Head) -> bool:
        """Forward a request and its response; return whether another request may follow."""
        now = self._loop.time()
        method, target, *_ = request.first
        passing = Exchange(
            method=method,
            target=target,
            byte_range=request.headers.get("range", ""),
            start_s=now,
            end_s=now,
            connection=self._number,
        )
        self._network.exchanges.append(passing)
        server = await self._connected()
        await asyncio.sleep(self._network.latency_s)
        await server.send(request.raw)
        body = asyncio.ensure_future(self._pass_up(request, server, passing))
        try:
            answer = await self._pass_down(request, server, passing)
            # A server that answers without leave for the body, or goes, does not want it.
            is_whole = not answer.is_last and passing.waits == 1 + request.asks_leave
            if is_whole:
                await body
        finally:
            body.cancel()
            await asyncio.gather(body, return_exceptions=True)
        return is_whole and not request.is_last and not _ends_with(request, answer)

    async def _pass_up(self, request: Head, server: Side, passing: Exchange) -> None:
        count = request.body_bytes
        try:
            async for data, body_bytes in self._client.pieces(0 if count == -1 else count):
                passing.bytes_up += body_bytes
                await server.send(data)
        except (Disconnected, OSError):
            # Or the answer would be waited for for ever.
            with contextlib.suppress(OSError):
                server.socket.shutdown(socket.SHUT_RDWR)
            raise

    async def _pass_down(self, request: Head, server: Side, passing: Exchange) -> Head:
        while (answer := await server.head()) is not None:
            if 100 <= answer.status < 200:  # leave to send the body: it took a way forth and back
                passing.waits += 1
                await self._client.send(answer.raw)
                await asyncio.sleep(self._network.latency_s)
                continue
            # All is written down before the client can know: it may ask what was seen at once.
            passing.status, passing.end_s = answer.status, self._loop.time()
            await self._client.send(answer.raw)
            if _has_body(request, answer):
                async for data, body_bytes in server.pieces(answer.body_bytes):
                    passing.bytes_down += body_bytes
                    passing.end_s = self._loop.time()
                    await self._client.send(data)
            return answer
        raise Disconnected

    async def _connected(self) -> Side:
        """Return the server's side; open it again if the server closed the idle connection."""
        if self._server is not None and _is_closed(self._server.socket):
            self._server.socket.close()
            self._server = None
        if self._server is None:
            end = _socket()
            await self._loop.sock_connect(end, self._address)
            self._server = Side(end, self._network)
        return self._server


def _has_body(request: Head, answer: Head) -> bool:
    return request.first[0] != "HEAD" and answer.status not in _WITHOUT_BODY


def _ends_with(request: Head, answer: Head) -> bool:
    """Return whether the body of a response ends with the connection."""
    return _has_body(request, answer) and answer.body_bytes == -1


def _is_closed(end: socket.socket) -> bool:
    try:
        return not end.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _socket() -> socket.socket:
    end = socket.socket()
    end.setblocking(False)  # noqa: FBT003  # positional in the standard library
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end


def _listening() -> socket.socket:
    end = socket.create_server(("127.0.0.1", 0), backlog=1024)
    end.setblocking(False)  # noqa: FBT003  # positional in the standard library
    return end


class Proxy:
    """The proxy, with both ports.

    Args:
        server: host and port of the server.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._network = Network()
        self._door, self._control = _listening(), _listening()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port: int = self._door.getsockname()[1]
        self.control_port: int = self._control.getsockname()[1]

    async def run(self) -> None:
        """Serve until cancelled."""
        control = await asyncio.start_server(self._answer, sock=self._control)
        async with control:
            loop = asyncio.get_running_loop()
            number = 0
            while True:
                client, _ = await loop.sock_accept(self._door)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                link = Link(client, self._server, self._network, number)
                number += 1
                task = asyncio.create_task(link.serve())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        network = self._network
        while line := await reader.readline():
            question = json.loads(line)
            answer: dict[str, object] = {}
            if "latency_ms" in question:
                network.latency_s = float(question["latency_ms"]) / 1_000
            if "bytes_per_second" in question:
                network.bytes_per_second = float(question["bytes_per_second"])
            if "reset" in question:
                network.exchanges = []
            if "exchanges" in question:
                answer["exchanges"] = [asdict(one) for one in network.exchanges]
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()


async def _main(server: tuple[str, int]) -> None:
    proxy = Proxy(server)
    print(json.dumps({"port": proxy.port, "control_port": proxy.control_port}), flush=True)
    running = asyncio.create_task(proxy.run())
    # Whoever started this holds the other end, so it ends with them however they end.
    await asyncio.to_thread(sys.stdin.buffer.read)
    running.cancel()
    os._exit(0)


if __name__ == "__main__":
    _host, _, _port = sys.argv[1].rpartition(":")
    asyncio.run(_main((_host, int(_port))))
