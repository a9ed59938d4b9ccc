"""The server's process: signals, and what a kill leaves behind."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from tests.support.sharing import PREFIX
from tests.support.sharing_process import config_of, running_server

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")


def test_a_stalled_download_holds_up_no_end(tmp_path: Path) -> None:
    noise = [os.urandom(1 << 20) for _ in range(40)]
    write_deltalake(tmp_path / "t", pa.table({"a": pa.array(noise, pa.binary())}))
    config = config_of(tmp_path / "t", {"graceSeconds": 1, "sendSeconds": 600})
    with running_server(tmp_path, config) as server:
        target = "/" + server.file_url().partition("://")[2].partition("/")[2]
        with server.connect() as one:
            one.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert one.recv(10).startswith(b"HTTP/1.1 2")  # and no more is read
            server.process.terminate()
            assert server.process.wait(30) == 0


def test_a_hang_up_reloads_at_once(tmp_path: Path) -> None:
    with running_server(tmp_path, config_of(tmp_path / "t")) as server:
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


@pytest.mark.slow("kills a process")
def test_the_cache_of_a_killed_server_is_removed(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1, 2]}))
    cache = tmp_path / "cache"
    cache.mkdir()
    config = {**config_of(tmp_path / "t", rowFilter="a < 9"), "cacheDirectory": str(cache)}
    with running_server(tmp_path / "one", config) as server:
        server.file_url()
        (killed,) = cache.iterdir()
    with running_server(tmp_path / "two", config) as server:
        server.file_url()
        (living,) = cache.iterdir()
        assert living != killed
        with running_server(tmp_path / "three", config) as other:
            other.file_url()
            assert living in cache.iterdir()  # its server is at work
        assert server.process.poll() is None
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert living not in cache.iterdir()
