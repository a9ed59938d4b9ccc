"""Scans of answers: which files are fetched whole and ahead, and tasks in other processes."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog.data.scan.reader import read_task
from deltalog.sharing.client import SharedTable
from deltalog.sharing.client.snapshots import is_read_whole
from tests.support.shared_files import (
    PROTOCOL,
    file_line,
    files_asked,
    metadata,
    open_shared,
    parquet,
)
from tests.support.sharing_server import Answer, Asked, ScriptedServer


def test_a_small_file_is_fetched_with_one_request(
    shared: SharedTable, scripted: ScriptedServer
) -> None:
    shared.scan(predicate="id = 12").to_table()
    assert [asked.headers.get("range") for asked in scripted.find("/data/f2")] == [None]


def test_small_files_are_fetched_side_by_side(scripted: ScriptedServer) -> None:
    """The server gives none of ten files before all ten were asked for."""
    together = threading.Barrier(10)
    found = [file_line(scripted, f"f{n}", parquet(id=[n])) for n in range(10)]

    def give(asked: Asked) -> Answer:
        together.wait(20)
        return Answer(200, scripted.files[asked.path])

    for n in range(10):
        scripted.at(f"/data/f{n}", give)
    table = open_shared(scripted, PROTOCOL, metadata(columns={"id": "long"}), *found)
    assert table.to_pyarrow_table()["id"].to_pylist() == list(range(10))


def test_a_scan_that_ends_early_forgets_what_comes(scripted: ScriptedServer) -> None:
    found = [file_line(scripted, f"f{n}", parquet(id=[n])) for n in range(200)]
    table = open_shared(scripted, PROTOCOL, metadata(columns={"id": "long"}), *found)
    batches = table.scan().to_batches()
    assert next(batches)["id"].to_pylist() == [0]
    del batches
    assert len(files_asked(scripted)) < 200
    assert table.count() == 200


@pytest.mark.parametrize(
    ("size", "columns", "whole"),
    [(1 << 22, 5, True), (1 << 22, 4, False), (1 << 18, 1, True), ((1 << 22) + 1, 5, False)],
)
def test_which_files_are_fetched_whole(size: int, columns: int, *, whole: bool) -> None:
    assert is_read_whole(size, columns, 5) is whole
    assert not is_read_whole(None, columns, 5)


def test_tasks_go_to_other_processes_with_their_own_urls_alone(
    shared: SharedTable, scripted: ScriptedServer
) -> None:
    tasks = list(shared.scan(["id"]).tasks())
    sent = [pickle.dumps(task) for task in tasks]
    assert [b"/data/f1" in data for data in sent] == [True, False]
    assert [b"/data/f2" in data for data in sent] == [False, True]
    rows = [batch for data in sent for batch in read_task(pickle.loads(data))]
    assert pa.Table.from_batches(rows)["id"].to_pylist() == [1, 2, 3, 11, 12]
    again = pickle.loads(pickle.dumps(shared.scan(predicate="id > 2")))
    assert again.to_table()["id"].to_pylist() == [3, 11, 12]
    assert scripted.find("/query")[1:] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # that is what is tested
def test_a_forked_child_reads_too(shared: SharedTable, tmp_path: Path) -> None:
    assert shared.to_pyarrow_table().num_rows == 5  # connections and threads are there
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs ends, and the test fails
        with contextlib.suppress(BaseException):
            (tmp_path / "rows").write_text(str(shared.scan(["id"]).to_table().num_rows), "utf-8")
        os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "rows").read_text("utf-8") == "5"
    assert shared.to_pyarrow_table().num_rows == 5
