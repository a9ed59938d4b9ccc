"""MERGE and OPTIMIZE with two workers of Dask and Ray, compared with the local engine.

Each subject is a process that keeps running: the local engine with all cores, the local engine with
one core, and clients of two workers, each of which has one core; the client shares the first one.
So two workers have as many cores as the local engine with all cores, and the client has one.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import platform
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.asking import in_turns
from deltalog import DeltaTable, write_deltalake

ROOT: Final = Path(__file__).parent.parent
REPEATS: Final = 5
ROWS: Final = 10_000_000
SOURCE_ROWS: Final = 200_000
MANY_ROWS: Final = 5_000_000
"""The number of rows of a source that matches nothing."""
VECTORS: Final = {"delta.enableDeletionVectors": "true"}
MOST_CORES: Final = 2
KILLED_AFTER_S: Final = 0.3


# --- Tables


def rows_from(first: int, count: int) -> pa.Table:
    """Return rows with the ids from `first` on."""
    ids = np.arange(first, first + count)
    random = np.random.default_rng(first)
    return pa.table(
        {
            "id": pa.array(ids),
            "k": pa.array(random.integers(0, 1_000, count)),
            "v": pa.array(random.random(count)),
            "s": pa.array(np.char.add("name-", (ids % 997).astype(str))),
        }
    )


def build(path: Path, num_files: int, *, vectors: bool, num_partitions: int = 0) -> None:
    """Write a table of `ROWS` rows in a number of files of equal size."""
    if path.exists():
        return
    size = ROWS // num_files
    for number in range(num_files):
        rows = rows_from(number * size, size)
        if num_partitions:
            part = pa.array(np.full(size, number % num_partitions))
            rows = rows.append_column("p", part)
        write_deltalake(
            path,
            rows,
            mode="append",
            partition_by=["p"] if num_partitions else None,
            configuration=VECTORS if vectors else None,
        )


@cache
def source(num_rows: int, *, matches: bool) -> pa.Table:
    """Return rows of which the first half has ids of all files, unless nothing `matches`."""
    new = rows_from(2 * ROWS, num_rows)
    if not matches:
        return new
    half = num_rows // 2
    ids = np.concatenate(
        [np.arange(half) * (ROWS // half), new.column("id").to_numpy()[: num_rows - half]]
    )
    return new.set_column(0, "id", pa.array(ids))


def _merge(table: DeltaTable, num_rows: int, *, matches: bool = True) -> Any:
    merger = table.merge(
        source(num_rows, matches=matches), "s.id = t.id", source_alias="s", target_alias="t"
    )
    return merger.when_matched_update_all().when_not_matched_insert_all().execute()


Act = Callable[[DeltaTable], Any]
TABLES: Final[Mapping[str, Callable[[Path], None]]] = {
    "10-files": lambda path: build(path, 10, vectors=False),
    "10-vectors": lambda path: build(path, 10, vectors=True),
    "100-files": lambda path: build(path, 100, vectors=False),
    "100-vectors": lambda path: build(path, 100, vectors=True),
    "1000-files": lambda path: build(path, 1_000, vectors=False, num_partitions=10),
}
CASES: Final[Mapping[str, tuple[str, Act]]] = {
    "merge of 200,000 rows, 10 files": ("10-files", lambda table: _merge(table, SOURCE_ROWS)),
    "the same, with deletion vectors": ("10-vectors", lambda table: _merge(table, SOURCE_ROWS)),
    "merge of 200,000 rows, 100 files": ("100-files", lambda table: _merge(table, SOURCE_ROWS)),
    "the same, 100 files with deletion vectors": (
        "100-vectors",
        lambda table: _merge(table, SOURCE_ROWS),
    ),
    "merge of 5,000,000 new rows, 10 files": (
        "10-files",
        lambda table: _merge(table, MANY_ROWS, matches=False),
    ),
    "compaction of 1,000 files, 10 partitions": (
        "1000-files",
        lambda table: table.optimize.compact(),
    ),
}


# --- Subjects


def pin(process: int, core: int) -> None:
    """Restrict all threads of a process to one core."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})


def pin_all(workers: Collection[int]) -> None:
    """Restrict each worker to a core of its own."""
    for core, worker in enumerate(workers):
        pin(worker, core % MOST_CORES)


class Took(NamedTuple):
    """The times of a case.

    Args:
        seconds: the elapsed time.
        busy_s: the processor time of the busiest core, a lower bound of the elapsed time. Other
            programs on the machine hardly change it.
    """

    seconds: float
    busy_s: float


class Subject(NamedTuple):
    """A running engine.

    Args:
        engine: returns the engine; None for the local one.
        workers: returns the ids of the workers' processes.
    """

    engine: Callable[[], Any]
    workers: Callable[[], Collection[int]]


@contextmanager
def _local(cores: int) -> Iterator[Subject]:
    if cores == 1:
        pin(os.getpid(), 0)
    yield Subject(lambda: None, tuple)


@contextmanager
def _dask() -> Iterator[Subject]:
    import distributed  # only this subject needs it
    from deltalog.dask import DaskEngine

    make_cluster: Any = distributed.LocalCluster
    cluster = make_cluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    make_client: Any = distributed.Client
    with cluster, make_client(cluster, set_as_default=False) as client:
        pin(os.getpid(), 0)

        def workers() -> Collection[int]:
            client.wait_for_workers(2)
            return list(client.run(os.getpid).values())

        def engine() -> Any:
            pin_all(workers())
            return DaskEngine(client)

        yield Subject(engine, workers)


@contextmanager
def _ray() -> Iterator[Subject]:
    import ray  # only this subject needs it

    from deltalog.ray import RayEngine

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)

    @ray.remote  # type: ignore[untyped-decorator]  # Ray has no type hints
    def held() -> int:
        time.sleep(1)  # so that the other worker gets the other task
        return os.getpid()

    pin(os.getpid(), 0)

    def workers() -> Collection[int]:
        return list(ray.get([held.remote(), held.remote()]))

    def engine() -> Any:
        pin_all(workers())
        return RayEngine()

    yield Subject(engine, workers)
    ray.shutdown()


SUBJECTS: Final[Mapping[str, Callable[[], Any]]] = {
    "local, all cores": lambda: _local(MOST_CORES),
    "local, one core": lambda: _local(1),
    "Dask, two workers": _dask,
    "Ray, two workers": _ray,
}


def _serve(subject: str, asked: Connection) -> None:
    """Answer requests, in a process of its own; each names a case, a table, and whether to kill."""
    with SUBJECTS[subject]() as running:
        while (request := asked.recv()) is not None:
            case, path, kills = request
            table = DeltaTable(path, engine=running.engine())
            workers = list(running.workers())
            cores = [[os.getpid(), *workers[:1]], workers[1:]]
            before = [] if kills else [*map(_busy_s, cores)]
            start = time.perf_counter()
            with _killing(workers[:1] if kills else []):
                found = CASES[case][1](table)
            seconds = time.perf_counter() - start
            after = [] if kills else [*map(_busy_s, cores)]
            busy = [end - begin for begin, end in zip(before, after, strict=True)]
            asked.send((Took(seconds, max(busy, default=0.0)), _answer(table, found)))


def _busy_s(processes: Collection[int]) -> float:
    """Return the seconds of processor time that processes have had."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def _killing(workers: Collection[int]) -> Iterator[None]:
    """Kill workers during the block."""
    timers = [Timer(KILLED_AFTER_S, os.kill, (worker, signal.SIGKILL)) for worker in workers]
    for timer in timers:
        timer.start()
    yield
    for timer in timers:
        timer.cancel()


def _answer(table: DeltaTable, found: Any) -> dict[str, Any]:
    """Return the metrics that do not depend on the number of new files, and sums of the rows."""
    names = ("inserted", "updated", "deleted", "source_rows", "filesremoved", "considered")
    names_of_rows = ("id", "k")
    rows = table.to_pyarrow_table(columns=list(names_of_rows))
    sums = {name: pc.sum(rows.column(name)).as_py() for name in names_of_rows}
    metrics = {
        name: value
        for name, value in dict(found).items()
        if any(part in name.lower().replace("num_", "") for part in names)
        and isinstance(value, int)
    }
    return {"rows": rows.num_rows, **sums, **metrics}


class Subjects:
    """The processes of the subjects, which are started when they are first used."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._running: dict[str, tuple[Any, Connection]] = {}

    def ask(
        self, subject: str, case: str, path: Path, *, kills: bool = False
    ) -> tuple[Took, dict[str, Any]]:
        """Return the times of a case, and its result."""
        if subject not in self._running:
            here, there = self._context.Pipe()
            process = self._context.Process(target=_serve, args=(subject, there))
            process.start()
            there.close()
            self._running[subject] = (process, here)
        _, asked = self._running[subject]
        asked.send((case, str(path), kills))
        answer: tuple[Took, dict[str, Any]] = asked.recv()
        return answer

    def close(self) -> None:
        """End all processes."""
        for process, asked in self._running.values():
            asked.send(None)
            process.join()


# --- The page


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        copy = Path(scratch) / "table"
        shutil.copytree(path, copy, copy_function=os.link)
        yield copy


def _row(subjects: Subjects, names: list[str], case: str, directory: Path, repeats: int) -> str:
    name, _ = CASES[case]
    TABLES[name](directory / name)
    found: dict[str, list[Took]] = {subject: [] for subject in names}
    answers: set[str] = set()
    for subject in in_turns(names, repeats + 1):  # the first run of each is not counted
        with _copied(directory / name) as path:
            took, answer = subjects.ask(subject, case, path)
        found[subject].append(took)
        answers.add(repr(answer))
    for subject in names:
        if "workers" in subject:
            with _copied(directory / name) as path:
                answers.add(repr(subjects.ask(subject, case, path, kills=True)[1]))
    assert len(answers) == 1, f"{case}: answers differ: {answers}"
    times = {
        subject: Took(*map(statistics.median, zip(*runs[1:], strict=True)))
        for subject, runs in found.items()
    }
    alone = times.get("local, one core")
    shown = []
    for subject, took in times.items():
        cell = f"{took.seconds:.2f} s"
        if alone is not None and "workers" in subject:
            cell += f" ({alone.seconds / took.seconds:.2f})"
        if "all cores" not in subject:
            cell += f", {took.busy_s:.2f} s"
        if alone is not None and "workers" in subject:
            cell += f" ({alone.busy_s / took.busy_s:.2f})"
        shown.append(cell)
    return f"| {case} | {' | '.join(shown)} |"


def _page(subjects: list[str], repeats: int, rows: list[str]) -> str:
    head = f"""# Benchmarks: Dask and Ray

`python -m benchmarks.distributed` changes tables of {ROWS:,} rows in tasks of two workers with one
core each. For comparison, it runs the local engine with all cores, and with one core, which is what
the client of two such workers has. Half of the rows of the small source match rows, in all files.

The processes keep running between the runs. Times are medians of {repeats} runs in turns, after one
run that is not counted. A cell contains:

- the elapsed time;
- the processor time of the core that was busy longest. It is a lower bound of the elapsed time on
  an idle machine: it does not include waiting, transfers, and Ray's own processes;
- in brackets, how many times faster this is than the local engine with one core.

All engines return the same rows and metrics, even if a worker is killed during the operation.
Measured on {platform.machine()} with {os.cpu_count()} cores.

| work | {" | ".join(subjects)} |
|---|{"---|" * len(subjects)}
"""
    return head + "\n".join(rows) + "\n"


def main() -> None:
    """Build the tables, measure all cases, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--subjects", nargs="+", default=list(SUBJECTS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "bench")
    parser.add_argument("--report", type=Path, default=ROOT / "docs" / "benchmarks-distributed.md")
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    subjects, rows = Subjects(), []
    try:
        for case in asked.cases:
            rows.append(_row(subjects, asked.subjects, case, asked.directory, asked.repeats))
            print(rows[-1], flush=True)
            asked.report.write_text(_page(asked.subjects, asked.repeats, rows), "utf-8")
    finally:
        subjects.close()


if __name__ == "__main__":
    main()
