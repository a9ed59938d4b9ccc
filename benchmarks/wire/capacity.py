"""The capacity of the server and the proxy, to recognise measurements that are limited by them.

Signed URLs are requested over plain sockets, 16 at once, so that the client needs little time.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.wire.server import ACCESS_KEY, BUCKET, REGION, SECRET_KEY

_CONNECTIONS = 16
_SMALL_BYTES = 1_000
_LARGE_BYTES = 100_000_000
_SMALL_REQUESTS = 8_000
_LARGE_REQUESTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The capacity of one port.

    Args:
        requests_per_second: with objects of 1,000 bytes.
        bytes_per_second: with objects of 100 MB.
    """

    requests_per_second: float
    bytes_per_second: float


def capacity(directory: Path, port: int) -> Capacity:
    """Measure a port with objects that are created in the served directory."""
    small, large = directory / "capacity-small", directory / "capacity-large"
    small.write_bytes(os.urandom(_SMALL_BYTES))
    large.write_bytes(os.urandom(_LARGE_BYTES // 100) * 100)
    try:
        quick = _seconds(_signed(small.name, port), port, _SMALL_REQUESTS)
        wide = _seconds(_signed(large.name, port), port, _LARGE_REQUESTS)
    finally:
        small.unlink()
        large.unlink()
    return Capacity(
        requests_per_second=_SMALL_REQUESTS / quick,
        bytes_per_second=_LARGE_REQUESTS * _LARGE_BYTES / wide,
    )


def _signed(name: str, port: int) -> str:
    """Return path and query of a signed URL."""
    import botocore.session
    from botocore.config import Config

    client = botocore.session.get_session().create_client(
        "s3",
        region_name=REGION,
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )
    parts = urlsplit(client.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": name}))
    return f"{parts.path}?{parts.query}"


def _seconds(target: str, port: int, requests: int) -> float:
    request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    shares: Sequence[int] = [requests // _CONNECTIONS] * _CONNECTIONS
    start = time.perf_counter()
    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        list(threads.map(lambda share: _ask(port, request, share), shares))
    return time.perf_counter() - start


def _ask(port: int, request: bytes, times: int) -> None:
    buffer = bytearray(1_048_576)
    with socket.create_connection(("127.0.0.1", port)) as end:
        for _ in range(times):
            end.sendall(request)
            missing = -1
            while missing:
                count = end.recv_into(buffer)
                assert count, "the connection ended before the answer did"
                missing = _missing(bytes(buffer[:count])) if missing < 0 else missing - count


def _missing(data: bytes) -> int:
    """Return the number of missing bytes of a response that begins with these bytes."""
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head[:200]
    lines = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    return int(lines[b"content-length"]) - len(body)
