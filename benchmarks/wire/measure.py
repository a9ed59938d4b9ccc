"""Run one measurement over the network in this process.

`python -m benchmarks.wire.measure QUESTION` expects a JSON object, and prints another one: seconds,
the peak of resident memory above the memory after the imports, and the result. The proxy only
records requests of the measured call.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401  # clients look their hosts up with it
import json
import os
import sys
import time

import pyarrow as pa
import pyarrow.dataset  # loaded for all subjects alike, like the next
import pyarrow.parquet

from benchmarks.measure import fetch_memory, forget_peak, memory_bytes
from benchmarks.wire.control import Control
from benchmarks.wire.subjects import Place, prepared


def main() -> None:
    """Measure one subject, and print the result."""
    question = json.loads(sys.argv[1])
    pa.scalar(0)  # pyarrow imports pandas with the first scalar of a process
    call = prepared(question["library"], question["subject"], Place(**question["place"]))
    loaded = set(sys.modules)
    fetch_memory(question["memory_bytes"])
    before = memory_bytes("VmRSS")
    forget_peak()
    with Control(question["control_port"]) as control:
        control.reset()
        start = time.perf_counter()
        answer = call()
        seconds = time.perf_counter() - start
    found = {
        "seconds": seconds,
        "memory_bytes": max(0, memory_bytes("VmHWM") - before),
        "answer": answer,
    }
    if "DELTALOG_SHOW_IMPORTS" in os.environ:
        print(sorted(set(sys.modules) - loaded), file=sys.stderr)
    print(json.dumps(found), flush=True)
    os._exit(0)  # threads of deltalake may abort an orderly end


if __name__ == "__main__":
    main()
