"""Measure over the network and write the page, for `python -m benchmarks --wire`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.asking import in_turns
from benchmarks.wire.capacity import Capacity, capacity
from benchmarks.wire.control import Control
from benchmarks.wire.operations import OPERATIONS, WIRE_SIZES, Operation, WireSize
from benchmarks.wire.proxy import BYTES_PER_SECOND
from benchmarks.wire.report import Answered, Asked, listing, render, summary
from benchmarks.wire.server import BUCKET, ROOT, Wire, options, running
from benchmarks.wire.tables import build, copied
from benchmarks.wire.traffic import Exchange, counted

_LEAST_FETCHED_BYTES = 1 << 29


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    seconds: float
    memory_bytes: int
    answer: object
    root: str
    exchanges: list[Exchange]


def run(
    directory: Path,
    size_name: str,
    only: Sequence[str],
    latencies_ms: Sequence[float],
    report: Path | None,
) -> None:
    """Measure all operations, or the named ones, at each latency.

    Args:
        directory: for tables, results, and lists of the requests of each library.
        size_name: one of `WIRE_SIZES`.
        only: names of operations; empty for all.
        latencies_ms: the latencies; at others than its default ones, an operation must be named.
        report: path of the page; None for that of the documentation, with the full size.
    """
    size = WIRE_SIZES[size_name]
    requests = directory / "wire-requests"
    requests.mkdir(parents=True, exist_ok=True)
    store = directory / f"results-wire-{size_name}.json"
    kept = json.loads(store.read_text("utf-8")) if store.exists() else {}
    results = {name: Answered.from_json(one) for name, one in kept.get("answered", {}).items()}
    with running(directory / "wire") as wire, Control(wire.control_port) as control:
        capacities = _capacities(wire, control)
        for latency_ms in latencies_ms:
            control.set_latency(latency_ms)
            for operation in OPERATIONS:
                if not (operation.name in only if only else operation.is_usual_at(latency_ms)):
                    continue
                print(f"==> {operation.name} at {latency_ms:g} ms", flush=True)
                answered = _answered(operation, latency_ms, size, wire, control, requests)
                print(summary(answered), flush=True)
                results[answered.name] = answered
                store.write_text(_json(results, capacities), "utf-8")
    page = report or (ROOT / "docs" / "benchmarks-wire.md" if size_name == "full" else None)
    if page is not None:
        page.write_text(render(list(results.values()), capacities, size_name, size), "utf-8")
        print(f"==> wrote {page}")


def _json(results: Mapping[str, Answered], capacities: Mapping[str, Capacity]) -> str:
    answered = {name: one.to_json() for name, one in results.items()}
    return json.dumps(
        {"answered": answered, "capacities": {n: asdict(one) for n, one in capacities.items()}}
    )


def _capacities(wire: Wire, control: Control) -> dict[str, Capacity]:
    server = capacity(wire.directory, wire.server_port)
    control.set_latency(0)
    control.set_bandwidth(0)
    unbounded = capacity(wire.directory, wire.port)
    control.set_bandwidth(BYTES_PER_SECOND)
    bounded = capacity(wire.directory, wire.port)
    return {"server": server, "unbounded": unbounded, "bounded": bounded}


def _answered(
    operation: Operation,
    latency_ms: float,
    size: WireSize,
    wire: Wire,
    control: Control,
    requests: Path,
) -> Answered:
    table = build(operation.table, wire.directory, size)
    turns: dict[str, list[_Turn]] = {library: [] for library in operation.libraries}
    for library in in_turns(operation.libraries, size.turns):
        turns[library].append(_turn(operation, library, table, size, wire, control))
    answers = {library: str(found[0].answer) for library, found in turns.items()}
    if len(set(answers.values())) != 1:
        message = f"{operation.name}: answers differ: {answers}"
        raise AssertionError(message)
    asked = []
    for library, found in turns.items():
        middle = sorted(found, key=lambda turn: turn.seconds)[(len(found) - 1) // 2]
        name = f"{operation.name}-{latency_ms:g}-{library}.txt"
        (requests / name).write_text(listing(middle.exchanges, middle.root), "utf-8")
        asked.append(
            Asked(
                library=library,
                times_s=tuple(turn.seconds for turn in found),
                memory_bytes=middle.memory_bytes,
                answer=middle.answer,
                traffic=counted(middle.exchanges),
            )
        )
    return Answered(operation=operation.name, latency_ms=latency_ms, asked=tuple(asked))


def _bytes_below(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _turn(
    operation: Operation, library: str, table: Path, size: WireSize, wire: Wire, control: Control
) -> _Turn:
    path = copied(table, "turn") if operation.writes else table
    question = {
        "library": library,
        "subject": operation.subject,
        "control_port": wire.control_port,
        "memory_bytes": max(_LEAST_FETCHED_BYTES, 4 * _bytes_below(path)),
        "place": {
            "url": f"s3://{BUCKET}/{path.name}",
            "options": options(wire.port),
            "needle": size.needle,
            "file_rows": size.file_rows,
            "times": operation.repeats(size),
        },
    }
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.wire.measure", json.dumps(question)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    exchanges = control.exchanges()
    if operation.writes:
        shutil.rmtree(path)
    found = json.loads(result.stdout.splitlines()[-1])
    return _Turn(**found, root=f"/{BUCKET}/{path.name}", exchanges=exchanges)
