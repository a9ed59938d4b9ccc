"""`python -m benchmarks.special_parts`: the benefit of two large special parts of the source.

- Java's arithmetic (`expressions/java_math`): how many results of C's library differ from
  `StrictMath` in the last bit, and the time for a value.
- Pages instead of row groups (`data/write/patched_groups`, `storage/parquet/patch`): a DELETE that
  rewrites files, with and without, in seconds of processor time.

ADR 0038 has a run of it.
"""

from __future__ import annotations

import math
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from deltalog import DeltaTable, write_deltalake
from deltalog.data.write.patched_groups import PATCHING
from deltalog.expressions import java_math

VALUES = 200_000
TURNS = 7
GROUP_ROWS = 300_000
FUNCTIONS: dict[str, tuple[Callable[[float], float], Callable[[float], float], float, float]] = {
    "exp": (java_math.exp, math.exp, -50, 50),
    "ln": (java_math.log, math.log, 1e-6, 1e6),
    "log10": (java_math.log10, math.log10, 1e-6, 1e6),
    "log1p": (java_math.log1p, math.log1p, -0.9, 1e3),
    "expm1": (java_math.expm1, math.expm1, -5, 5),
    "sinh": (java_math.sinh, math.sinh, -20, 20),
    "cosh": (java_math.cosh, math.cosh, -20, 20),
    "tanh": (java_math.tanh, math.tanh, -5, 5),
    "asin": (java_math.asin, math.asin, -1, 1),
    "acos": (java_math.acos, math.acos, -1, 1),
    "atan": (java_math.atan, math.atan, -20, 20),
    "cbrt": (java_math.cbrt, math.cbrt, -1e6, 1e6),
    "pow 1.7": (lambda x: java_math.power(x, 1.7), lambda x: math.pow(x, 1.7), 1e-3, 1e3),
}


def arithmetic() -> Iterator[str]:
    """Return lines of a table: the share of values that differ, and microseconds per value."""
    yield "| function | differs from C's library | µs a value, ours | C's |"
    yield "|---|---|---|---|"
    chance = random.Random(1)
    for name, (ours, theirs, low, high) in FUNCTIONS.items():
        values = [chance.uniform(low, high) for _ in range(VALUES)]
        begun = time.process_time()
        first = [ours(value) for value in values]
        between = time.process_time()
        second = [theirs(value) for value in values]
        ended = time.process_time()
        differ = sum(a != b for a, b in zip(first, second, strict=True)) / VALUES
        yield (
            f"| {name} | {differ:.2%} | {(between - begun) / VALUES * 1e6:.2f} "
            f"| {(ended - between) / VALUES * 1e6:.2f} |"
        )


def _numbers() -> pa.Table:
    """Write rows of nine numbers, in one file of four row groups."""
    chance = np.random.default_rng(7)
    values = {f"v{number}": pa.array(chance.random(4 * GROUP_ROWS)) for number in range(8)}
    return pa.table({"id": pa.array(np.arange(4 * GROUP_ROWS)), **values})


def _strings() -> pa.Table:
    """Write rows of a number and a string of 600 characters."""
    chance = np.random.default_rng(7)
    return pa.table(
        {
            "id": pa.array(np.arange(GROUP_ROWS)),
            "value": pa.array([chance.bytes(300).hex() for _ in range(GROUP_ROWS)]),
        }
    )


def _delete(table: Path, *, pages: bool) -> tuple[float, float]:
    """Return processor time and elapsed time in seconds of a DELETE of ten rows of a copy."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(shutil.copytree(table, Path(directory) / "table"))
        opened = DeltaTable(copy, storage_options={"fsync": "false"})
        PATCHING.is_on = pages
        cpu, wall = time.process_time(), time.perf_counter()
        opened.delete("id >= 1000 AND id < 1010", use_deletion_vectors=False)
        found = time.process_time() - cpu, time.perf_counter() - wall
        PATCHING.is_on = True
        return found


def pages() -> Iterator[str]:
    """Return lines of a table: a DELETE that rewrites a file, with row groups or with pages."""
    yield "| rows | row groups, processor s (clock) | pages, processor s (clock) | ratio |"
    yield "|---|---|---|---|"
    for rows in (_numbers(), _strings()):
        found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        with tempfile.TemporaryDirectory() as directory:
            write_deltalake(directory, rows)
            for turn in range(TURNS + 1):
                for way in (True, False) if turn % 2 else (False, True):
                    seconds = _delete(Path(directory), pages=way)
                    if turn:  # the first one loads modules
                        found[way].append(seconds)
        (cpu, wall), (whole_cpu, whole_wall) = (
            tuple(statistics.median(part) for part in zip(*found[way], strict=True))
            for way in (True, False)
        )
        types = ", ".join(sorted({str(kind) for kind in rows.schema.types}))
        yield (
            f"| {rows.num_rows:,} of {types} "
            f"| {whole_cpu:.3f} ({whole_wall:.3f}) | {cpu:.3f} ({wall:.3f}) "
            f"| {whole_cpu / cpu:.2f} |"
        )


if __name__ == "__main__":
    for line in (*arithmetic(), "", *pages()):
        print(line, flush=True)
