"""`python -m benchmarks [--size SIZE] [--only NAME …] [--turns N] [--report FILE]`.

With `--wire [--latency-ms MS …]`, the operations of `benchmarks.wire` are measured instead, on an
S3 server with a slow network.

Results are kept in the directory. The page has a row for each workload that was measured there,
so a single workload can be measured again. The subjects of a comparison always run in turns. A
subject that several workloads share runs once in each turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.asking import ROOT, ask, in_turns
from benchmarks.report import Measured, Result, kept, picture, render, summary
from benchmarks.tables import build
from benchmarks.wire.operations import LATENCIES_MS
from benchmarks.wire.run import run as run_on_the_wire
from benchmarks.workloads import SIZES, WORKLOADS, Size, Workload


def _measure(subject: str, path: Path, needle: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        return ask(subject, path, needle, scratch)


def _asked(workload: Workload) -> dict[str, str]:
    """Return the subjects of a workload with their tables, deltalog's first."""
    others = dict.fromkeys(workload.others, workload.other_table or workload.table)
    return {workload.ours: workload.table} | others


def _together(workloads: Iterable[Workload]) -> list[list[Workload]]:
    """Group workloads with a common subject, in the order of the first: it is measured once."""
    groups: list[list[Workload]] = []
    for workload in workloads:
        mine = _asked(workload).items()
        joined = [group for group in groups if any(mine & _asked(one).items() for one in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(one for group in joined for one in group), workload])
    return groups


def _run(group: Sequence[Workload], directory: Path, size: Size) -> list[Result]:
    asked = {pair: None for one in group for pair in _asked(one).items()}
    paths = {table: build(table, directory, size) for _, table in asked}
    is_files = group[0].table == "checkpointed"
    rows = size.files * 1_000 if is_files else size.rows * group[0].scale
    found: dict[tuple[str, str], list[dict[str, object]]] = {pair: [] for pair in asked}
    for subject, table in in_turns(list(asked), size.repeats):
        found[subject, table].append(_measure(subject, paths[table], rows * 2 // 3))
    medians = {pair: _medians(pair[0], runs) for pair, runs in found.items()}
    return [_result(workload, medians) for workload in group]


def _result(workload: Workload, medians: Mapping[tuple[str, str], Measured]) -> Result:
    measured = [medians[pair] for pair in _asked(workload).items()]
    if workload.same_answer:
        answers = {subject.subject: str(subject.answer) for subject in measured}
        assert len(set(answers.values())) == 1, f"{workload.name}: answers differ: {answers}"
    ours, *others = measured
    quickest = min(others, key=lambda one: one.seconds) if others else None
    return Result(workload=workload, ours=ours, other=quickest)


def _medians(subject: str, runs: list[dict[str, object]]) -> Measured:
    """Return medians; the result is that of the median run, because counts differ between runs."""
    by_time = sorted(runs, key=lambda run: float(str(run["seconds"])))
    return Measured(
        subject=subject,
        turns=len(runs),
        seconds=statistics.median(float(str(run["seconds"])) for run in runs),
        memory_bytes=int(statistics.median(int(str(run["memory_bytes"])) for run in runs)),
        answer=by_time[len(runs) // 2]["answer"],
    )


def main() -> None:
    """Measure all workloads, or the named ones."""
    parser = argparse.ArgumentParser(prog="benchmarks")
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--only", nargs="*", default=[], help="names of workloads")
    parser.add_argument("--turns", type=int, help="more than the usual number, where times vary")
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
    turns = max(size.repeats, arguments.turns or 0)
    arguments.directory.mkdir(parents=True, exist_ok=True)
    store = arguments.directory / f"results-{arguments.size}.json"
    results = kept(json.loads(store.read_text("utf-8"))) if store.exists() else {}
    wanted = [one for one in WORKLOADS if not arguments.only or one.name in arguments.only]
    for group in _together(wanted):
        print(f"==> {', '.join(one.name for one in group)}", flush=True)
        for result in _run(group, arguments.directory, replace(size, repeats=turns)):
            print(f"    {result.workload.name}: {summary(result)}", flush=True)
            results[result.workload.name] = result
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
