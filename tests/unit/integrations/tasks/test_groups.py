"""Files of a scan are shared out: small ones together, none twice, in their order."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalog import DeltaTable, write_deltalake
from deltalog.data.scan.reader import ScanTask
from deltalog.integrations.tasks import TaskGroup, share_by_bytes, share_by_number
from deltalog.storage import open_store

SIZES = st.lists(st.none() | st.integers(0, 100), max_size=30)
SCHEMA = pa.table({"id": [1]}).schema


@pytest.fixture(scope="module")
def table() -> DeltaTable:
    store = open_store("memory://groups")
    for number in range(3):
        rows = {"id": [number, 10], "s": [f"s{number}", None], "p": [number, number]}
        write_deltalake(store, rows, mode="append", partition_by=["p"])
    return DeltaTable(store)


@pytest.fixture(scope="module")
def task(table: DeltaTable) -> ScanTask:
    return next(table.scan().tasks())


@given(sizes=SIZES, most=st.integers(1, 150))
def test_groups_by_bytes_hold_each_file_once(
    task: ScanTask, sizes: list[int | None], most: int
) -> None:
    tasks = [replace(task, path=str(n), size_bytes=size) for n, size in enumerate(sizes)]
    groups = share_by_bytes(tasks, SCHEMA, most_bytes=most)
    assert [one for group in groups for one in group.tasks] == tasks
    for group in groups:
        assert len(group.tasks) == 1 or group.size_bytes <= most
    for one, other in pairwise(groups):
        last = other.tasks[0].size_bytes
        assert (
            last is None
            or None in {t.size_bytes for t in one.tasks}
            or (one.size_bytes + last > most)
        )


@given(sizes=SIZES, most=st.integers(1, 12))
def test_groups_by_number_hold_each_file_once(
    task: ScanTask, sizes: list[int | None], most: int
) -> None:
    tasks = [replace(task, path=str(n), size_bytes=size) for n, size in enumerate(sizes)]
    groups = share_by_number(tasks, SCHEMA, most_groups=most)
    assert [one for group in groups for one in group.tasks] == tasks
    assert len(groups) <= most
    assert all(group.tasks for group in groups)


def test_equal_files_are_shared_out_equally(task: ScanTask) -> None:
    tasks = [replace(task, path=str(number), size_bytes=10) for number in range(12)]
    for most, sizes in ((1, [12]), (3, [4] * 3), (5, [2, 3, 2, 3, 2]), (50, [1] * 12)):
        groups = share_by_number(tasks, SCHEMA, most_groups=most)
        assert [len(group.tasks) for group in groups] == sizes


def test_a_group_has_the_rows_of_its_files(table: DeltaTable) -> None:
    scan = table.scan(columns=["s", "id", "p"], predicate="id < 5")
    (group,) = share_by_bytes(scan.tasks(), scan.schema, most_bytes=2**40)
    found = pickle.loads(pickle.dumps(group))
    assert found.to_table() == scan.to_table()
    assert found.with_columns(["p", "s"]).to_table() == scan.to_table().select(["p", "s"])
    assert found.with_columns([]).to_table().num_rows == 3
    assert sorted(found.locations) == sorted(table.file_uris())
    assert found.size_bytes == sum(task.size_bytes or 0 for task in scan.tasks())


def test_rows_are_counted_where_the_log_tells_them(table: DeltaTable) -> None:
    def num_rows(predicate: str | None, *, with_rows: bool) -> int | None:
        scan = table.scan(predicate=predicate)
        (group,) = share_by_number(scan.tasks(with_rows=with_rows), scan.schema, most_groups=1)
        return group.num_rows

    assert num_rows(None, with_rows=True) == 6
    assert num_rows(None, with_rows=False) is None
    assert num_rows("id < 100", with_rows=True) is None


def test_a_group_without_files_has_no_rows_and_a_schema() -> None:
    nothing = TaskGroup(schema=pa.table({"a": [1], "b": ["x"]}).schema)
    assert nothing.to_table().num_rows == 0
    assert nothing.with_columns(["b"]).to_table().schema == nothing.schema.remove(0)
    assert (nothing.num_rows, nothing.size_bytes, nothing.locations) == (0, 0, [])
