"""Run one measurement in this process: `python -m benchmarks.measure SUBJECT PATH NEEDLE`.

It prints a JSON object with seconds, the peak of resident memory above the memory after the
imports, and the result.
"""

from __future__ import annotations

import gc
import json
import mmap
import multiprocessing
import os
import statistics
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset  # loaded for all subjects alike, like the next two
import pyarrow.json
import pyarrow.parquet

from benchmarks.loading import load_packages
from benchmarks.processes import Told
from benchmarks.subjects import SUBJECTS, WARMED

WARM_REPEATS = 25
_STATUS = Path("/proc/self/status")
_FETCHED_BYTES = 1 << 30


def memory_bytes(name: str) -> int:
    """Return a line of the process's status in bytes; 0 if the system has none."""
    if not _STATUS.exists():
        return 0
    lines = dict(line.split(":", 1) for line in _STATUS.read_text("utf-8").splitlines())
    return int(lines[name].split()[0]) * 1024


def fetch_memory(num_bytes: int) -> None:
    """Use memory and free it, so that it is available to the measured call.

    The host of a virtual machine reclaims free memory, and returns it page by page: clearing 2.5
    GB took one process 0.23 s where another had just used it, and the next one up to 5.7 s.
    """
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return
    with mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for position in range(0, num_bytes, mmap.PAGESIZE):
            memory[position] = 1


def forget_peak() -> None:
    """Reset the peak in the process's status."""
    if _STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5", "utf-8")


def main() -> None:
    """Measure one subject, and print the result."""
    subject, path, needle = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    pa.scalar(0)  # pyarrow imports pandas with the first scalar of a process
    if subject.startswith("deltalog_"):
        load_packages()
    # A full collection looks at all objects of the imports, which takes 55 ms at any moment.
    gc.freeze()
    call = SUBJECTS[subject](path, needle)
    fetch_memory(_FETCHED_BYTES)
    if subject in WARMED:
        for _ in range(3):
            call()
    before = memory_bytes("VmRSS")
    forget_peak()
    times = []
    for _ in range(WARM_REPEATS if subject in WARMED else 1):
        start = time.perf_counter()
        answer = call()
        seconds = time.perf_counter() - start
        if isinstance(answer, Told):
            seconds, answer = answer
        times.append(seconds)
    peak = max(0, memory_bytes("VmHWM") - before)
    found = {"seconds": statistics.median(times), "memory_bytes": peak, "answer": answer}
    print(json.dumps(found), flush=True)
    for child in multiprocessing.active_children():  # servers
        child.kill()
    os._exit(0)  # threads of deltalake may abort an orderly end


if __name__ == "__main__":
    main()
