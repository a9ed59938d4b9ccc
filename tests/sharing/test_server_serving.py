"""The server as a process."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa

from deltalog import write_deltalake
from tests.support.sharing import small_config
from tests.support.sharing_process import running_server


def test_the_server_runs_from_its_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = tmp_path / "c.json"
    tables = [{"name": "t", "location": str(tmp_path / "t")}]
    shares = [{"name": "s", "schemas": [{"name": "d", "tables": tables}]}]
    recipients = [{"name": "alice", "token": "${TOKEN}", "shares": "all"}]
    more = {"recipients": recipients, "port": port, "host": "127.0.0.1"}
    path.write_text(json.dumps(small_config(shares=shares, **more)))
    command = [sys.executable, "-m", "deltalog.sharing", "serve", str(path)]
    environment = {**os.environ, "TOKEN": "token-of-alice"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as server:
        try:
            _wait(port, server)
            found = _get(port, "/delta-sharing/shares/s/schemas/d/tables/t/version")
        finally:
            server.terminate()
            assert server.stderr is not None
            logged = server.stderr.read().decode()
    assert found["delta-table-version"] == "0"
    assert "server" not in found
    lines = [json.loads(line) for line in logged.splitlines() if line.startswith("{")]
    assert lines[-1]["action"] == "get_version"
    assert "token-of-alice" not in logged


def test_a_table_that_does_not_exist_is_logged(tmp_path: Path) -> None:
    missing = {"name": "t", "location": str(tmp_path / "t")}
    shares = [{"name": "s", "schemas": [{"name": "d", "tables": [missing]}]}]
    with running_server(tmp_path / "home", small_config(shares=shares)) as server:
        for _ in range(1200):
            log = server.log.read_text()
            if "s.d.t" in log:
                break
            time.sleep(0.05)
    assert "the table s.d.t cannot be shared: cannot open" in log


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        path.write_text(json.dumps(small_config(host="127.0.0.1", port=port)))
        command = [sys.executable, "-m", "deltalog.sharing", "serve", str(path)]
        ended = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert ended.returncode == 2
    last = ended.stderr.decode().splitlines()[-1]
    assert f"cannot listen on 127.0.0.1:{port}: the port is in use; stop the program" in last
    assert "Errno" not in ended.stderr.decode()
    assert "Traceback" not in ended.stderr.decode()


def _get(port: int, target: str) -> dict[str, str]:
    """The headers of an answer that is a success."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", target, headers={"Authorization": "Bearer token-of-alice"})
        answer = connection.getresponse()
        assert answer.status == 200
        return {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError):
            _get(port, "/health")
            return
        assert server.poll() is None, "the server ended"
        time.sleep(0.05)
    raise AssertionError("the server did not start")
