"""What one file of a scan needs."""

from __future__ import annotations

import itertools
import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.data.scan.plan import make_tasks
from deltalog.data.scan.reader import ScanTask
from deltalog.data.scan.task import read_spec, runs_of
from deltalog.errors import MalformedLogError
from deltalog.expressions import as_expression, resolve_predicate
from tests.support.raw_tables import DataTable


def tasks(condition: str | None) -> tuple[ScanTask, ...]:
    table = DataTable([("id", "long"), ("v", "string"), ("p", "string")], partition_by=["p"])
    for partition in ("a", None):
        table.commit(table.add({"id": [1, 2], "v": ["x", "y"]}, partitionValues={"p": partition}))
    snapshot = table.snapshot()
    schema = snapshot.configuration.schema
    predicate = (
        None if condition is None else resolve_predicate(as_expression(condition, schema), schema)
    )
    spec = read_spec(snapshot, columns=["id", "v", "p"], predicate=predicate)
    return tuple(make_tasks(snapshot, spec, snapshot.files()))


def test_tasks_travel() -> None:
    there: tuple[ScanTask, ...] = pickle.loads(pickle.dumps(tasks(None)))
    assert len(there) == 2
    assert {task.spec.output.names == ["id", "v", "p"] for task in there} == {True}
    assert there[0].spec.data_columns.names == ("id", "v")


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (None, ()),
        ("id > 1", ("id",)),
        ("p = 'a'", ()),
        ("v = 'x' or id > 1 and p = 'a'", ("id", "v")),
    ],
)
def test_without_output_only_what_decides_is_read(
    condition: str | None, left: tuple[str, ...]
) -> None:
    spec = tasks(condition)[0].spec
    bare = spec.without_output()
    assert bare.data_columns.names == left
    assert bare.output == pa.schema([])
    assert bare.predicate is spec.predicate
    assert spec.output.names == ["id", "v", "p"]


def three_files() -> DataTable:
    """Three rows, one of which is deleted; three rows; and a file without statistics."""
    table = DataTable([("id", "long")], features=["deletionVectors"])
    known = {"numRecords": 3}
    table.commit(table.add({"id": [1, 2, 3]}, stats=known, deletionVector=table.vector(1)))
    table.commit(table.add({"id": [4, 5, 6]}, stats=known))
    table.commit(table.add({"id": [7, 8]}, stats={}))
    return table


def test_a_task_gives_its_rows_by_itself() -> None:
    scan = three_files().scan("id <> 5")
    copied = [pickle.loads(pickle.dumps(task)) for task in scan.tasks()]
    found = [task.to_table() for task in copied]
    assert sorted(table["id"].to_pylist() for table in found) == [[1, 3], [4, 6], [7, 8]]
    assert {task.schema for task in copied} == {table.schema for table in found} == {scan.schema}
    assert [sum(b.num_rows for b in task.to_batches()) for task in copied] == [2, 2, 2]


def test_a_task_without_matching_rows_gives_an_empty_table() -> None:
    task = next(three_files().scan("id > 100").tasks())
    assert task.to_table().num_rows == 0
    assert task.to_table().schema == task.schema


def test_a_task_knows_how_many_rows_it_gives_at_most() -> None:
    scan = three_files().scan("id <> 5")
    by_first = {task.to_table()["id"][0].as_py(): task for task in scan.tasks(with_rows=True)}
    assert {first: task.most_rows for first, task in by_first.items()} == {1: 2, 4: 3, 7: None}
    assert all(task.most_rows is None for task in scan.tasks())
    assert all(task.size_bytes and task.size_bytes > 100 for task in scan.tasks())


def test_a_count_that_cannot_be_is_refused() -> None:
    table = DataTable([("id", "long")], features=["deletionVectors"])
    vector = table.vector(0, 1)
    table.commit(table.add({"id": [1, 2]}, stats={"numRecords": 1}, deletionVector=vector))
    with pytest.raises(MalformedLogError, match="numRecords"):
        list(table.scan().tasks(with_rows=True))


@settings(max_examples=300)
@given(st.sets(st.integers(0, 60_000), min_size=1, max_size=200))
def test_ranges_of_rows_contain_all_rows_and_only_short_gaps(rows: set[int]) -> None:
    ordered = sorted(rows)
    runs = runs_of(pa.array(ordered))
    assert all(start in rows and end - 1 in rows for start, end in runs)
    assert sum(any(start <= row < end for start, end in runs) for row in ordered) == len(ordered)
    for run, following in itertools.pairwise(runs):
        assert following[0] - (run[1] - 1) > 5000
    for row, following_row in itertools.pairwise(ordered):
        together = any(start <= row and following_row < end for start, end in runs)
        assert together == (following_row - row <= 5000)


def test_no_rows_have_no_range() -> None:
    assert runs_of(pa.array([], pa.int64())) == []
