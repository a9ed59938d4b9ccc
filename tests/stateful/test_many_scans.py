"""Many scans at once end, whatever waits for whom; each in a process with pools of few threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from deltalog.testing.simulation.workers import StallWatch, all_stacks
from tests.support.many_scans import SCENARIOS

pytestmark = pytest.mark.slow("each scenario is a process with pools of its own")

COMMAND = [sys.executable, "-W", "error", "-m", "tests.support.many_scans"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("scenario", "threads"),
    [
        *((scenario, 1) for scenario in SCENARIOS),
        *(
            (scenario, 2)
            for scenario in ("duckdb_unions", "polars_frames", "large_scans", "tables_in_threads")
        ),
    ],
)
def test_many_scans_at_once_are_answered(scenario: str, threads: int, tmp_path: Path) -> None:
    found = subprocess.run(
        [*COMMAND, scenario, str(threads), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "POLARS_MAX_THREADS": str(threads), "RUST_BACKTRACE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-20_000:]
    assert found.stdout == "answered\n"


def test_a_process_that_hangs_ends_with_the_stacks_of_its_threads() -> None:
    script = (
        "import threading\n"
        "from deltalog.testing.simulation.workers import ended_when_stalled\n"
        "def waits_forever(): threading.Event().wait()\n"
        "with ended_when_stalled(0.5): waits_forever()\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert found.returncode == 70
    assert "waits_forever" in found.stderr


def test_a_thread_that_computes_is_no_hang() -> None:
    watch = StallWatch(after_s=0.0)
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    assert not watch.has_stalled()


def test_the_stacks_name_the_threads() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="one-that-waits")
    thread.start()
    stacks = all_stacks()
    over.set()
    thread.join()
    assert "one-that-waits:" in stacks
    assert "test_the_stacks_name_the_threads" in stacks
