"""`python -m benchmarks [--size SIZE] [--only NAME …] [--directory DIR] [--report FILE]`.

With `--wire [--latency-ms MS …]` the operations of `benchmarks.wire` are measured instead: through
an S3 server behind a slow network.

What was found stays in the directory: the page has a row for each workload that was ever measured
there, so one can be measured anew alone. Those who are compared have always run in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from benchmarks.asking import ROOT, ask
from benchmarks.report import Measured, Result, kept, picture, render, summary
from benchmarks.tables import build
from benchmarks.wire.operations import LATENCIES_MS
from benchmarks.wire.run import run as run_on_the_wire
from benchmarks.workloads import SIZES, WORKLOADS, Size, Workload


def _measure(subject: str, path: Path, needle: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        return ask(subject, path, needle, scratch)


def _run(workload: Workload, directory: Path, size: Size) -> Result:
    path = build(workload.table, directory, size)
    plain = build(workload.other_table or workload.table, directory, size)
    rows = size.files * 1_000 if workload.table == "checkpointed" else size.rows * workload.scale
    needle = rows * 2 // 3
    subjects = (workload.ours, *workload.others)
    found: dict[str, list[dict[str, object]]] = {subject: [] for subject in subjects}
    for _ in range(size.repeats):  # in turns: what else the machine does hits all alike
        for subject in subjects:
            where = path if subject == workload.ours else plain
            found[subject].append(_measure(subject, where, needle))
    measured = [_medians(subject, runs) for subject, runs in found.items()]
    if workload.same_answer:
        answers = {subject.subject: str(subject.answer) for subject in measured}
        assert len(set(answers.values())) == 1, f"{workload.name}: answers differ: {answers}"
    ours, *others = measured
    quickest = min(others, key=lambda one: one.seconds) if others else None
    return Result(workload=workload, ours=ours, other=quickest)


def _medians(subject: str, runs: list[dict[str, object]]) -> Measured:
    return Measured(
        subject=subject,
        seconds=statistics.median(float(str(run["seconds"])) for run in runs),
        memory_bytes=int(statistics.median(int(str(run["memory_bytes"])) for run in runs)),
        answer=runs[0]["answer"],
    )


def main() -> None:
    """Measure all workloads, or those that are named."""
    parser = argparse.ArgumentParser(prog="benchmarks")
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--only", nargs="*", default=[], help="names of workloads")
    parser.add_argument("--directory", type=Path, default=ROOT / ".cache" / "benchmarks")
    parser.add_argument("--report", type=Path, help="where the page goes")
    parser.add_argument("--wire", action="store_true", help="over a slow network instead")
    parser.add_argument("--latency-ms", nargs="*", type=float, default=LATENCIES_MS)
    arguments = parser.parse_args()
    if arguments.wire:
        run_on_the_wire(
            arguments.directory,
            arguments.size,
            arguments.only,
            arguments.latency_ms,
            arguments.report,
        )
        return
    size = SIZES[arguments.size]
    arguments.directory.mkdir(parents=True, exist_ok=True)
    store = arguments.directory / f"results-{arguments.size}.json"
    results = kept(json.loads(store.read_text("utf-8"))) if store.exists() else {}
    for workload in WORKLOADS:
        if not arguments.only or workload.name in arguments.only:
            print(f"==> {workload.name}", flush=True)
            result = _run(workload, arguments.directory, size)
            print(f"    {summary(result)}", flush=True)
            results[workload.name] = result
            store.write_text(json.dumps({n: one.to_json() for n, one in results.items()}), "utf-8")
    page = arguments.report or (
        ROOT / "docs" / "benchmarks.md" if arguments.size == "full" else None
    )
    if page is not None:
        found = [results[one.name] for one in WORKLOADS if one.name in results]
        page.write_text(render(found, size), "utf-8")
        page.with_suffix(".svg").write_text(picture(found, size), "utf-8")
        print(f"==> wrote {page}")


if __name__ == "__main__":
    main()
