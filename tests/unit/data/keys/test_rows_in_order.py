"""Files with indexed rows are read in the calling thread until it waits for the disk."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog._util.clock import WaitMeter
from deltalog.data.scan import pieces, reader
from deltalog.data.scan.pieces import Piece

NUM_FILES = 8


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """A table of 8 files with the ids `n`, `n + 8`, … in file `n`, and an index of the ids."""
    for number in range(NUM_FILES):
        rows = pa.table({"id": range(number, 800, NUM_FILES), "v": [f"v{number}"] * 100})
        write_deltalake(tmp_path, rows, mode="append")
    table = DeltaTable(tmp_path)
    table.alter.set_key_index(["id"])
    table.optimize.key_index()
    return table


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each read of a piece, whether the calling thread reads it."""
    found: list[bool] = []
    real, own = Piece.read, threading.get_ident()

    def noted(self: Piece) -> Any:
        found.append(threading.get_ident() == own)
        return real(self)

    monkeypatch.setattr(Piece, "read", noted)
    return found


class Working(WaitMeter):
    """A thread that never waits, also on a busy machine."""

    @property
    def mostly_waits(self) -> bool:
        return False


class Waiting(WaitMeter):
    """A thread that waits for the disk in its third file."""

    def __init__(self) -> None:
        super().__init__()
        self._num_files = 0

    @property
    def mostly_waits(self) -> bool:
        self._num_files += 1
        return self._num_files > 3


def test_a_thread_that_works_reads_all_files(
    table: DeltaTable, threads: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WaitMeter", Working)
    rows = table.scan(predicate="id IN (1, 2, 3, 4, 5, 6, 7, 8)").to_table()
    assert {row["id"] for row in rows.to_pylist()} == set(range(1, 9))
    assert threads == [True] * NUM_FILES


def test_other_threads_help_a_thread_that_waits(
    table: DeltaTable, threads: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = table.scan(predicate="id IN (1, 2, 3, 4, 5, 6, 7, 8)").to_table()
    threads.clear()
    monkeypatch.setattr(reader, "WaitMeter", Waiting)
    found = table.scan(predicate="id IN (1, 2, 3, 4, 5, 6, 7, 8)").to_table()
    assert found == wanted  # also the same order
    assert threads[:3] == [True] * 3
    assert not any(threads[3:])
    assert len(threads) == NUM_FILES


def test_a_merge_verifies_rows_that_only_the_index_knows(table: DeltaTable) -> None:
    """The ranges of indexed rows contain other rows, which a merge must not change."""
    source = pa.table({"id": [8, 24, 9, 900], "v": ["a", "b", "c", "d"]})
    merger = table.merge(
        source, "target.id = source.id AND target.v <> 'v1'", "source", "target"
    ).when_matched_update_all()
    done = merger.when_not_matched_insert({"id": "source.id", "v": "source.v"}).execute()
    assert (done["num_target_rows_updated"], done["num_target_rows_inserted"]) == (2, 2)
    found = table.to_pyarrow_table().to_pylist()
    changed = {(row["id"], row["v"]) for row in found if len(row["v"]) == 1}
    assert changed == {(8, "a"), (24, "b"), (9, "c"), (900, "d")}
    assert len(found) == 802


def test_files_with_many_indexed_rows_are_read_by_several_threads(
    table: DeltaTable, threads: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WaitMeter", Working)
    ids = ", ".join(str(one) for one in range(40 * NUM_FILES))
    assert table.scan(predicate=f"id IN ({ids})").to_table().num_rows == 40 * NUM_FILES
    assert threads
    assert not any(threads)


def test_a_file_that_does_not_fit_the_index_is_read_in_pieces(
    tmp_path: Path, threads: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, pa.table({"id": range(100)}))
    table = DeltaTable(tmp_path)
    table.alter.set_key_index(["id"])
    table.optimize.key_index()
    (file,) = tmp_path.glob("*.parquet")
    pq.write_table(pa.table({"id": range(200)}), file, row_group_size=50)
    monkeypatch.setattr(reader, "WaitMeter", Working)
    monkeypatch.setattr(pieces, "_PIECE_ROWS", 50)
    threads.clear()
    # Also row groups without the id, because the statistics do not matter without a predicate.
    (task,) = table.scan(predicate="id = 7").tasks()
    assert task.indexed is not None
    batches = reader.read_tasks([replace(task, spec=replace(task.spec, predicate=None))])
    assert next(batches).num_rows == 50
    assert len(threads) == 1  # the memory of one piece
    assert sum(batch.num_rows for batch in batches) == 150
