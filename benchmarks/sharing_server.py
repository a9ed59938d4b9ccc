"""Load test of the sharing server: `python -m benchmarks.sharing_server [SECONDS]`.

200 clients on this machine list, query and download continuously. The results are the errors, the
number of requests, and the server's memory at the beginning and at the end. The workloads
`share-first-line` and `share-lines` measure the speed of responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import aiohttp
import pyarrow as pa

from deltalog import write_deltalake

CLIENTS = 200
PORT = 8731
TOKEN = "token-of-the-benchmark"  # noqa: S105 - of a benchmark
BASE = f"http://127.0.0.1:{PORT}/delta-sharing"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def write_config(directory: Path) -> Path:
    """Write a configuration that shares the table."""
    tables = [{"name": "small", "location": str(directory / "small")}]
    config = {
        "port": PORT,
        "shares": [{"name": "s", "schemas": [{"name": "d", "tables": tables}]}],
        "recipients": [{"name": "somebody", "shares": "all", "token": TOKEN}],
    }
    path = directory / "sharing.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    return path


def resident_mebibytes(process: int) -> int:
    """Return the memory of a process."""
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS"))


async def load(seconds: float, process: int) -> None:
    """Run `CLIENTS` clients for a time."""
    done: Counter[str] = Counter()
    memory: list[int] = []
    end = time.monotonic() + seconds

    async def watch() -> None:
        while time.monotonic() < end:
            await asyncio.sleep(seconds / 12)
            memory.append(resident_mebibytes(process))

    async def client(session: aiohttp.ClientSession, number: int) -> None:
        while time.monotonic() < end:
            await one_round(session, number, done)

    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        await asyncio.gather(watch(), *(client(session, number) for number in range(CLIENTS)))
    print(f"{CLIENTS} clients, {seconds:.0f} s: {dict(done)}; memory {memory[0]}…{memory[-1]} MiB")


async def one_round(session: aiohttp.ClientSession, number: int, done: Counter[str]) -> None:
    """List, query, download."""
    try:
        async with session.get(f"{BASE}/shares/s/all-tables", headers=HEADERS) as answer:
            answer.raise_for_status()
            await answer.read()
        query = f"{BASE}/shares/s/schemas/d/tables/small/query"
        async with session.post(query, headers=HEADERS, json={}) as answer:
            answer.raise_for_status()
            lines = (await answer.text()).splitlines()[2:]
        url = json.loads(lines[number % len(lines)])["file"]["url"]
        async with session.get(url) as answer:
            answer.raise_for_status()
            await answer.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        done[f"error {type(error).__name__}"] += 1
    else:
        done["requests"] += 3


def wait_for_server() -> None:
    """Wait until the server responds."""
    for _ in range(400):
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=5)
            connection.request("GET", "/health")
            connection.getresponse().read()
            connection.close()
            return
        time.sleep(0.05)
    raise SystemExit("the server did not start")


def main(seconds: float) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for start in range(0, 20_000, 1000):
            rows = pa.table({"id": range(start, start + 1000)})
            write_deltalake(directory / "small", rows, mode="append")
        command = [sys.executable, "-m", "deltalog.sharing", "serve", str(write_config(directory))]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
            try:
                wait_for_server()
                asyncio.run(load(seconds, server.pid))
            finally:
                server.terminate()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
