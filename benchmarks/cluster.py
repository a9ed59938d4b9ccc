"""deltalog and Delta Spark on one cluster: `python -m benchmarks.cluster [SIZE]`.

A master and two workers run on this machine, in directories of their own. The Python of the
workers has only the archive of `deltalog spark-archive`. Each side has a driver with two
executors of one core. Each side runs each task once, then three times in turns, each time on a
new copy of the table; `docs/benchmarks-cluster.md` has the medians. The last task, with a small
driver, runs only once in new sessions. It needs `make reference`.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyspark

import deltalog
from benchmarks.asking import ROOT, in_turns
from benchmarks.sparkers import DELTA, JARS
from benchmarks.tables import build
from benchmarks.workloads import SIZES, Size
from tests.support.cluster import Cluster, Driver, running_cluster

_PAGE: Final = ROOT / "docs" / "benchmarks-cluster.md"
_PROGRAM: Final = Path(__file__).with_name("cluster_driver.py")
_FILES_PER_PARTITION: Final = 8
_ROWS_PER_FILE: Final = 1_000
_SIDES: Final[Mapping[str, Mapping[str, str]]] = {
    "deltalog": {},
    "delta": {**DELTA, "spark.jars": ",".join(str(jar) for jar in sorted(JARS.glob("*.jar")))},
}
"""By the name of the format, what a session needs besides."""
_SETTINGS: Final = {
    # Those of the tests are for small tables.
    "spark.driver.extraJavaOptions": "",
    "spark.executor.memory": "2g",
    "spark.executor.extraJavaOptions": "",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "4",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One row of the page.

    Args:
        title: the title of the row.
        function: its name in `cluster_driver`.
        table: the name of a table that is copied for each run, or read.
        goal: how many times as fast as Delta Spark deltalog should be.
        driver_memory: the memory of the JVM of a driver.
        turns: the number of measured runs of each side. A single run has no other run before it.
    """

    title: str
    function: str
    table: str
    goal: float
    driver_memory: str = "2g"
    turns: int = 3


_WORKS: Final = (
    Work(title="append {rows:,} rows", function="append", table="rows", goal=1.0),
    Work(
        title="merge at most 200,000 rows into {rows:,}, with deletion vectors",
        function="merge", table="maskable", goal=1.0,
    ),
    Work(
        title="merge them, rewriting the files", function="merge", table="rows", goal=1.0
    ),
    Work(
        title="compact one partition of {small_files:,} files",
        function="optimize", table="small_files", goal=1.0,
    ),
    Work(
        title="compact 400 partitions of 8 files", function="optimize", table="400", goal=2.0
    ),
    Work(
        title="copy {small_files:,} small commits by a stream, a hundred files a batch",
        function="stream", table="trickle", goal=1.0,
    ),
    Work(
        title="compact 2,500 partitions of 8 files, with 1 GB for the driver's JVM",
        function="optimize", table="2500", goal=1.0, driver_memory="1g", turns=1,
    ),
)  # fmt: skip


def _partitioned(place: Path, partitions: int) -> Path:
    """Return a table with a number of partitions of eight files."""
    path = place / f"{partitions}-partitions"
    if not path.exists():
        rows = partitions * _ROWS_PER_FILE
        for number in range(_FILES_PER_PARTITION):
            ids = np.arange(number * rows, (number + 1) * rows)
            columns = {"part": ids % partitions, "id": ids, "amount": ids / 2}
            table = pa.table({name: pa.array(values) for name, values in columns.items()})
            deltalog.write_deltalake(path, table, mode="append", partition_by=["part"])
    return path


@contextmanager
def _drivers(cluster: Cluster, archive: Path, memory: str) -> Iterator[dict[str, Driver]]:
    """Start a driver of each side."""
    settings = {**_SETTINGS, "spark.driver.memory": memory}
    started: dict[str, Driver] = {}
    try:
        for name, needed in _SIDES.items():
            started[name] = Driver(
                cluster, archive, _PROGRAM, name=name, environment={}, **{**settings, **needed}
            )  # fmt: skip
        yield started
    finally:
        for driver in started.values():
            driver.close()


def _seconds(driver: Driver, work: Work, source: Path, size: Size, scratch: Path) -> float:
    """Return the seconds of one run; infinity if it fails."""
    with tempfile.TemporaryDirectory(dir=scratch) as place:
        table = Path(place) / "table"
        if work.function == "append":
            given: dict[str, object] = {"source": str(source), "table": str(table)}
        else:
            shutil.copytree(source, table)
            given = {"table": str(table)}
        if work.function == "merge":
            given["rows"] = size.rows
        try:
            return float(driver.do(work.function, **given))
        except AssertionError as error:
            print(error, flush=True)
            return math.inf


def measured(
    work: Work, drivers: Mapping[str, Driver], size: Size, place: Path
) -> dict[str, float]:
    """Return the median seconds of each side."""
    is_partitioned = work.table.isdigit()
    source = (
        _partitioned(place, int(work.table)) if is_partitioned else build(work.table, place, size)
    )
    uncounted = 1 if work.turns > 1 else 0
    found: dict[str, list[float]] = {name: [] for name in drivers}
    for name in in_turns(list(drivers), uncounted + work.turns):
        found[name].append(_seconds(drivers[name], work, source, size, place))
        print(f"{work.title}: {name} {found[name][-1]:.2f} s", flush=True)
    return {name: statistics.median(seconds[uncounted:]) for name, seconds in found.items()}


def _row(work: Work, found: Mapping[str, float], size: Size) -> str:
    ratio = found["delta"] / found["deltalog"]
    title = work.title.format(rows=size.rows, small_files=size.small_files)
    times = [
        f"{found[side]:.2f} s" if math.isfinite(found[side]) else "fails"
        for side in ("deltalog", "delta")
    ]
    return (
        f"| {title} | {times[0]} | {times[1]} | {ratio:.2f} "
        f"| ≥ {work.goal:.2f} | {'yes' if ratio >= work.goal else 'no'} |"
    )


def main(name: str = "full") -> None:
    """Measure, and write the page."""
    size = SIZES[name]
    place = ROOT / ".cache" / "benchmarks"
    place.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Benchmarks on a Spark cluster",
        "",
        "`python -m benchmarks.cluster` writes this page. A standalone master and two workers run",
        "on one machine, and each side has an executor of one core on each worker. The Python of",
        "the workers has only what `deltalog spark-archive` sends.",
        "Medians of three runs in turns with Delta Spark on the same cluster, after one run that",
        "is not counted; the last row is one run in a new session. A ratio above 1 means that",
        "deltalog is quicker.",
        "",
        "| work | deltalog | Delta Spark | ratio | goal | goal met |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "deltalog.tar.gz"
        deltalog_command = [sys.executable, "-m", "deltalog", "spark-archive", str(archive)]
        subprocess.run(deltalog_command, check=True, stdout=subprocess.DEVNULL)
        (Path(scratch) / "cluster").mkdir()
        with running_cluster(Path(scratch) / "cluster", environment={}) as cluster:
            for memory, works in groupby(_WORKS, attrgetter("driver_memory")):
                with _drivers(cluster, archive, memory) as drivers:
                    for work in works:
                        lines.append(_row(work, measured(work, drivers, size, place), size))
                        print(lines[-1], flush=True)
    about = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    lines += ["", f"Measured on {about}, PySpark {pyspark.__version__}.", ""]
    _PAGE.write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
