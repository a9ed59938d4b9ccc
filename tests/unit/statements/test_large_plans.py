"""A SELECT over very many files is planned as a scan: by the same bytes of the log.

150,000 files, so that the checkpoint is read by row groups; a million with
`DELTALOG_REFERENCE_FULL` (`make test-long`).
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from deltalog import DeltaTable, connect
from deltalog.storage import open_store
from deltalog.storage.store import Store
from deltalog.testing import CountingStore
from deltalog.testing.stores import StoreCall
from tests.support.large_logs import CHECKPOINT, ROWS_PER_FILE, build, name_of

FILES = 1_000_000 if "DELTALOG_REFERENCE_FULL" in os.environ else 150_000
LAST = FILES * ROWS_PER_FILE - 1
MIDDLE = FILES // 2
PRESENT = {0, 1, 2, 3, MIDDLE, MIDDLE + 1, FILES - 1}


@pytest.fixture(scope="module")
def large() -> Store:
    store = open_store(f"memory://large-{uuid4().hex}")
    build(store, FILES, PRESENT)
    return store


def opened(store: Store) -> tuple[CountingStore, DeltaTable]:
    """The table as somebody opens it who has read nothing of its files."""
    counting = CountingStore(store)
    return counting, DeltaTable(counting)


def reads(store: CountingStore) -> Counter[StoreCall]:
    """What was read of the checkpoint and of data files."""
    return Counter(call for call in store.calls if call.paths[0].endswith(".parquet"))


def of_checkpoint(found: Counter[StoreCall]) -> int:
    """The bytes read of the checkpoint."""
    return sum(call.size_bytes for call in found if ".checkpoint." in call.paths[0])


def data_files(found: Counter[StoreCall]) -> set[str]:
    return {call.paths[0] for call in found if ".checkpoint." not in call.paths[0]}


def ids_of(rows: pa.Table) -> list[int]:
    found: list[Any] = rows["id"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize(
    ("where", "files", "groups"),
    [
        (f"id = {MIDDLE * ROWS_PER_FILE + 7}", {MIDDLE}, 1),
        (f"id IN (5, {MIDDLE * ROWS_PER_FILE + 7}, {LAST})", {0, MIDDLE, FILES - 1}, 3),
        (f"id >= {LAST - 3}", {FILES - 1}, 1),
        ("id < 25", {0, 1, 2}, 1),
        ("id BETWEEN 9 AND 20", {0, 1, 2}, 1),
        (f"id = 5 OR id = {LAST}", {0, FILES - 1}, 2),
        ("id < 25 AND name = 'row 000000013'", {0, 1, 2}, 1),
        ("id > 1000000000", set(), 0),
    ],
)
def test_a_select_reads_of_the_log_what_a_scan_reads(
    large: Store, where: str, files: set[int], groups: int
) -> None:
    store, table = opened(large)
    connection = connect({"t": table})
    store.reset()
    selected = connection.sql(f"SELECT id, name FROM t WHERE {where}").to_arrow()
    of_select, requests = reads(store), store.total_calls
    store, table = opened(large)
    store.reset()
    scanned = table.scan(predicate=where, columns=["id", "name"]).to_table()
    assert selected.num_rows == scanned.num_rows
    assert ids_of(selected) == ids_of(scanned)
    assert data_files(of_select) == {name_of(file) for file in files}
    assert of_select == reads(store)  # each request, with its number of ranges and bytes
    # A statement asks for versions that are newer than what the connection knows.
    assert requests <= store.total_calls + NEWS
    # Of twenty row groups of the checkpoint, those that may hold the files; and its footer.
    size_bytes = large.stat(CHECKPOINT).size_bytes
    assert of_checkpoint(of_select) <= size_bytes * (groups + 1) // 20


NEWS = 4
"""Requests for the next versions by their names, which are sent together."""


def test_a_limit_reads_of_the_log_what_a_scan_reads(large: Store) -> None:
    store, table = opened(large)
    connection = connect({"t": table})
    store.reset()
    rows = connection.sql("SELECT id FROM t LIMIT 3").to_arrow()
    of_select = reads(store)
    store, table = opened(large)
    store.reset()
    first: Any = next(iter(table.scan(columns=["id"], limit=3).to_reader()))
    assert rows == pa.table(first)
    assert of_select == reads(store)
    assert len(data_files(of_select)) == 1
