"""The sharing server as a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.sharing import PREFIX, TOKEN, path_of, small_config

STARTED = (
    "import resource, sys; "
    "files = int(sys.argv.pop(1)); "
    "files and resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)); "
    "from deltalog.sharing.__main__ import main; main()"
)


class ServerProcess:
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
        """The status of an answer, on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", target, headers={"Authorization": f"Bearer {TOKEN}"})
            return connection.getresponse().status
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        """A connection on which nothing is said yet."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def file_url(self) -> str:
        """The signed URL of a file of the table."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        connection.request("POST", f"{PREFIX}{path_of('s.d.t')}/query", headers=headers)
        lines = connection.getresponse().read().splitlines()
        connection.close()
        url: str = next(json.loads(line)["file"]["url"] for line in lines if b'{"file"' in line)
        return url


@contextmanager
def running_server(home: Path, config: dict[str, Any], files: int = 0) -> Iterator[ServerProcess]:
    """A server that is killed in the end."""
    home.mkdir(exist_ok=True)
    server = ServerProcess(home, config, files)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def config_of(table: Path, limits: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    """The configuration of a server of one table."""
    shares = [
        {
            "name": "s",
            "schemas": [{"name": "d", "tables": [{"name": "t", "location": str(table), **more}]}],
        }
    ]
    return small_config(shares=shares, limits=limits or {})
