"""What the sharing server does in a second: `python -m benchmarks.sharing_server [SECONDS]`.

Two measurements on this machine, over loopback: the lines of a table of 100,000 files (first line,
lines a second of the server's processor time), and 200 clients that list, query and download all
the time (errors, requests, memory at the beginning and at the end).
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow as pa

from deltalog import DeltaTable, write_deltalake

FILES = 100_000
CLIENTS = 200
PORT = 8731
TOKEN = "token-of-the-benchmark"  # noqa: S105 - of a benchmark
BASE = f"http://127.0.0.1:{PORT}/delta-sharing"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"p","type":"string","nullable":true,"metadata":{}}]}'
)


def make_large_table(path: Path) -> None:
    """A log that names `FILES` files of fifty partitions, with a checkpoint; the files are not."""
    log = path / "_delta_log"
    log.mkdir(parents=True)
    metadata = {
        "id": "large",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA,
        "partitionColumns": ["p"],
        "configuration": {},
    }
    with (log / f"{0:020d}.json").open("w") as file:
        file.write(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}) + "\n")
        file.write(json.dumps({"metaData": metadata}) + "\n")
        for number in range(FILES):
            file.write(json.dumps({"add": _add(number)}) + "\n")
    DeltaTable(path).create_checkpoint()


def _add(number: int) -> dict[str, Any]:
    part = str(number % 50)
    bounds = {"minValues": {"id": number * 10}, "maxValues": {"id": number * 10 + 9}}
    return {
        "path": f"p={part}/part-{number:05d}-8b0086f2-7b27-4935-ac5a-8ed6215a6640.c000.parquet",
        "partitionValues": {"p": part},
        "size": 1000,
        "modificationTime": 1,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 10, **bounds, "nullCount": {"id": 0}}),
    }


def write_config(directory: Path) -> Path:
    """A configuration that shares both tables."""
    tables = [{"name": name, "location": str(directory / name)} for name in ("large", "small")]
    config = {
        "port": PORT,
        "shares": [{"name": "s", "schemas": [{"name": "d", "tables": tables}]}],
        "recipients": [{"name": "somebody", "token": TOKEN}],
    }
    path = directory / "sharing.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    return path


def query_large(form: str) -> tuple[float, float]:
    """Seconds to the first line, and to the last."""
    headers = {**HEADERS, "delta-sharing-capabilities": f"responseformat={form}"}
    started = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
    target = "/delta-sharing/shares/s/schemas/d/tables/large/query"
    connection.request("POST", target, b"{}", headers)
    answer = connection.getresponse()
    lines = 1
    answer.readline()
    first = time.perf_counter() - started
    while piece := answer.read(1 << 20):
        lines += piece.count(b"\n")
    connection.close()
    assert lines == FILES + 2
    return first, time.perf_counter() - started


def processor_seconds(process: int) -> float:
    """Time that a process has had of a processor."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mebibytes(process: int) -> int:
    """Memory of a process."""
    status = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS"))


async def load(seconds: float, process: int) -> None:
    """`CLIENTS` clients for a while."""
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
    """Until it answers."""
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
        make_large_table(directory / "large")
        for start in range(0, 20_000, 1000):
            rows = pa.table({"id": range(start, start + 1000)})
            write_deltalake(directory / "small", rows, mode="append")
        command = [sys.executable, "-m", "deltalog.sharing", "serve", str(write_config(directory))]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
            try:
                wait_for_server()
                for form in ("parquet", "delta", "parquet", "delta"):
                    before = processor_seconds(server.pid)
                    first, last = query_large(form)
                    used = processor_seconds(server.pid) - before
                    print(
                        f"{FILES} files, {form}: first line {first:.3f} s, all {last:.2f} s; "
                        f"{FILES / used:.0f} lines per second of processor time"
                    )
                asyncio.run(load(seconds, server.pid))
            finally:
                server.terminate()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
