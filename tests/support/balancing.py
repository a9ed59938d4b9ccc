"""A balancer on loopback that sends every request to the next of several servers."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress


class RoundRobin:
    """Request by request to the next server, whoever sends it.

    Connections end after one request, so that no client stays with a server.

    Args:
        ports: of the servers, on loopback.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self.counts = dict.fromkeys(ports, 0)
        self._next = itertools.cycle(ports)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Accept no more."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                piece = client.recv(65536)
                if not piece:
                    return
                head += piece
            with self._lock:
                port = next(self._next)
                self.counts[port] += 1
            fields, _, body = head.partition(b"\r\n\r\n")
            kept = [
                one for one in fields.split(b"\r\n") if not one.lower().startswith(b"connection:")
            ]
            with socket.create_connection(("127.0.0.1", port)) as server:
                server.sendall(b"\r\n".join([*kept, b"Connection: close"]) + b"\r\n\r\n" + body)
                upload = threading.Thread(target=_copy, args=[client, server], daemon=True)
                upload.start()
                _copy(server, client)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)


@contextmanager
def balanced(ports: Sequence[int]) -> Iterator[RoundRobin]:
    """A balancer for the servers at these ports."""
    found = RoundRobin(ports)
    try:
        yield found
    finally:
        found.close()
