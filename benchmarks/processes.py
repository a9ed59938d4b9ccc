"""The start of a process: the time of imports, and of the first write."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

Call = Callable[[], object]
_IMPORT = """
import time
import pyarrow
start = time.thread_time()  # threads that NumPy has started spin a while: 0.05 s
from {library} import DeltaTable
print(time.thread_time() - start)
"""
_WRITE = """
import sys
import pyarrow as pa
from {library} import write_deltalake
write_deltalake(sys.argv[1], pa.table({{"id": [1, 2, 3]}}))
"""


class Told(NamedTuple):
    """The measurements that a call returns."""

    seconds: float
    answer: object


def _run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _import(library: str) -> Call:
    code = _IMPORT.format(library=library)
    _run(code)  # what was compiled is on the disk, and the disk's pages in memory
    return lambda: Told(float(_run(code)), None)


def _first_write(library: str) -> Call:
    scratch, code = os.environ["DELTALOG_SCRATCH"], _WRITE.format(library=library)
    _run(code, f"{scratch}/before")
    return lambda: _run(code, f"{scratch}/table")


def deltalog_import(path: Path, needle: int) -> Call:
    del path, needle
    return _import("deltalog")


def deltalake_import(path: Path, needle: int) -> Call:
    del path, needle
    return _import("deltalake")


def deltalog_first_write(path: Path, needle: int) -> Call:
    del path, needle
    return _first_write("deltalog")


def deltalake_first_write(path: Path, needle: int) -> Call:
    del path, needle
    return _first_write("deltalake")


PROCESSES: Mapping[str, Callable[[Path, int], Call]] = {
    function.__name__: function
    for function in (
        deltalog_import,
        deltalake_import,
        deltalog_first_write,
        deltalake_first_write,
    )
}
