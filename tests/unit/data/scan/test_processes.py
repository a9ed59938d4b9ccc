"""Scans and tasks in threads, in other processes, and after a fork."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deltalog import DeltaTable
from tests.support.raw_tables import RawTable, rows_of

CHILD = """
import json, pickle, sys
from deltalog.data.scan import read_task
tasks = pickle.load(sys.stdin.buffer)
rows = [row for task in tasks for batch in read_task(task) for row in batch.to_pylist()]
print(json.dumps(sorted(row["id"] for row in rows)))
"""
ROWS = [1, 2, 4, 5, 6]


@pytest.fixture
def table(tmp_path: Path) -> RawTable:
    raw = RawTable(tmp_path / "a table")
    raw.create()
    _, vector = raw.deletion_vector([0])
    raw.commit(1, [raw.add([1, 2], p=1), raw.add([3, 4], p=2, vector=vector), raw.add([5, 6], p=3)])
    return raw


def read_ids(table: DeltaTable) -> list[int]:
    return sorted(rows_of(table.scan(["id"], "p > 0").to_table()))


def test_tasks_are_read_in_another_process(table: RawTable) -> None:
    tasks = list(DeltaTable(table.path).scan(["id"], "id < 6 and p > 0").tasks())
    done = subprocess.run(  # our own interpreter
        [sys.executable, "-c", CHILD], input=pickle.dumps(tasks), capture_output=True, check=True
    )
    assert json.loads(done.stdout) == ROWS[:-1]


def test_one_table_in_many_threads(table: RawTable) -> None:
    shared = DeltaTable(table.path)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: read_ids(shared), range(32)))
    assert found == [ROWS] * 32


def test_one_scan_in_many_threads(table: RawTable) -> None:
    scan = DeltaTable(table.path).scan(["id"])
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: sorted(rows_of(scan.to_table())), range(32)))
    assert found == [ROWS] * 32


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_after_a_fork(table: RawTable) -> None:
    shared = DeltaTable(table.path)
    assert read_ids(shared) == ROWS  # threads and files are there before the fork
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(send, json.dumps(read_ids(shared)).encode())
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as answer:
        found = json.loads(answer.read())
    os.waitpid(child, 0)
    assert found == ROWS
    assert read_ids(shared) == ROWS
