"""The S3 server and its proxy, as processes that end with their parent process.

The server is versitygw, a Go program. It serves a directory, in which tables are created and
copied; it checks signatures, and supports conditional puts. The program is found in `PATH`, where
`make bench-wire` installs it, or at the path in DELTALOG_S3_SERVER.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "tables"
ACCESS_KEY, SECRET_KEY, REGION = "benchmark", "benchmark-secret", "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A running server and its proxy.

    Args:
        directory: contains the objects of `BUCKET` as files.
        server_port: port of the server itself, without latency.
        port: port of the proxy.
        control_port: control port of the proxy, see `benchmarks.wire.control`.
    """

    directory: Path
    server_port: int
    port: int
    control_port: int


def options(port: int) -> dict[str, str]:
    """Return storage options for a port of the server, which both libraries accept."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "allow_http": "true",
    }


@contextmanager
def running(directory: Path) -> Iterator[Wire]:
    """Run the server for the folder `BUCKET` of `directory`, and its proxy, during the block."""
    program = _program()
    (directory / BUCKET).mkdir(parents=True, exist_ok=True)
    server_port = _free_port()
    with ExitStack() as stack:
        said = stack.enter_context(tempfile.TemporaryFile())
        server = subprocess.Popen(
            [
                program,
                *("--port", f"127.0.0.1:{server_port}", "--access", ACCESS_KEY),
                *("--secret", SECRET_KEY, "--region", REGION, "--keep-alive", "--quiet"),
                # Files that the builders put there have no ETag of their own.
                *("posix", "--default-etag", "built", str(directory)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        stack.callback(_end, server)
        if not _listens(server_port, server):
            said.seek(0)
            message = f"the S3 server did not start: {said.read().decode()}"
            raise SystemExit(message)
        proxy = stack.enter_context(proxy_before(server_port))
        yield Wire(directory=directory / BUCKET, server_port=server_port, **proxy)


@contextmanager
def proxy_before(server_port: int) -> Iterator[dict[str, int]]:
    """Run a proxy for a server on this machine; yield its `port` and `control_port`."""
    proxy = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.wire.proxy", f"127.0.0.1:{server_port}"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert proxy.stdin is not None
    assert proxy.stdout is not None
    try:
        ports: dict[str, int] = json.loads(proxy.stdout.readline())
        yield ports
    finally:
        proxy.stdin.close()
        proxy.wait(timeout=30)
        proxy.stdout.close()


def _program() -> str:
    places = (
        os.environ.get("DELTALOG_S3_SERVER"),
        shutil.which("versitygw"),
        str(ROOT / ".cache" / "wire" / "versitygw"),
    )
    for place in places:
        if place and Path(place).is_file():
            return place
    message = "there is no versitygw; `make bench-wire` gets it"
    raise SystemExit(message)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Return whether a port accepts connections within 30 seconds."""
    for _ in range(300):
        if process.poll() is not None:
            return False
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.1)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(timeout=30)
