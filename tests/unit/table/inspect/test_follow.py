"""Following a table: each row once, from any stored offset on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.errors import (
    ChangeDataFeedNotEnabledError,
    IncompatibleChangesError,
    RowsChangedError,
    VersionNotFoundError,
)
from deltalog.expressions import parse_sql
from deltalog.log.names import commit_path
from deltalog.operations import alter
from deltalog.operations.operation import Operation
from deltalog.operations.write import Write
from deltalog.schema import Field, PrimitiveType
from deltalog.table.inspect.follow import Follower, FollowOptions, Offset
from deltalog.testing import CountingStore
from tests.support.aging import FEATURES, START_MS, AgingTable
from tests.support.contexts import moved
from tests.support.examples import examples
from tests.support.following import follow, ids, ids_of, make

C = Field("c", PrimitiveType("long"))


FEED = {"delta.enableChangeDataFeed": "true"}


class Waits:
    """A clock on which something happens whenever somebody waits."""

    def __init__(self, *events: Callable[[], object]) -> None:
        self.events = list(events)
        self.waited: list[float] = []

    def now_ms(self) -> int:
        return START_MS

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.events.pop(0)()


def test_first_all_rows_then_new_ones() -> None:
    table = make()
    table.append({"id": [3]})
    follower = follow(table)
    assert sorted(ids(follower)) == [1, 2, 3]
    assert ids(follower) == []
    table.append({"id": [4]})
    table.append({"id": [5]})
    assert ids(follower) == [4, 5]


def test_a_version_that_is_still_to_come_is_an_error() -> None:
    with pytest.raises(VersionNotFoundError, match="latest version is 0"):
        follow(make(), 2)


@settings(deadline=None, max_examples=examples(25))
@given(
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    later=st.integers(0, 3),
    max_files=st.integers(1, 3),
    stops=st.lists(st.booleans(), min_size=1, max_size=5),
)
def test_each_row_comes_once_however_often_the_follower_is_stopped(
    sizes: list[int], later: int, max_files: int, stops: list[bool]
) -> None:
    table = AgingTable()
    table.create({"id": [0], "p": [0]}, partition_by=["p"])
    expected = [0]

    def append(count: int) -> None:
        rows = list(range(len(expected), len(expected) + count))
        expected.extend(rows)
        table.append({"id": rows, "p": rows})  # a file for each

    for size in sizes:
        append(size)
    follower = follow(table, max_files=max_files)
    found: list[int] = []
    for number in range(100):
        step = follower.poll()
        if step is None and not later:
            break
        if step is None or number % 3 == 2:
            later, size = max(0, later - 1), 1 + later % 2
            if later:
                append(size)
        if step is not None:
            found += ids_of(step)
            if stops[number % len(stops)]:
                offset = Offset.from_json(step.offset.to_json())
                follower = follow(table, offset, max_files=max_files)
    assert sorted(found) == expected


@pytest.mark.protocol("ADD-07")
def test_rows_that_were_only_moved_are_not_given_again() -> None:
    table = make()
    follower = follow(table, "latest")
    table.append({"id": [3]})
    log = table.kept.files[commit_path(1)].replace(b'"dataChange":true', b'"dataChange":false')
    table.kept.files[commit_path(1)] = log
    assert ids(follower) == []
    assert follower.offset.version == 2


DELETES: list[tuple[dict[str, Any], list[int]]] = [
    ({"ignore_deletes": True}, [9]),
    ({"ignore_changes": True}, [9]),
    ({"skip_change_commits": True}, [9]),
]


REWRITES: list[tuple[dict[str, Any], list[int]]] = [
    ({"ignore_changes": True}, [2, 9]),
    ({"skip_change_commits": True}, [9]),
]


@pytest.mark.parametrize(("options", "expected"), DELETES)
def test_deletes_stop_a_follower_unless_told_otherwise(
    options: dict[str, Any], expected: list[int]
) -> None:
    table = make()
    table.delete()
    table.append({"id": [9]})
    with pytest.raises(RowsChangedError, match="version 1 deleted rows"):
        ids(follow(table, 1))
    assert ids(follow(table, 1, **options)) == expected


@pytest.mark.parametrize("properties", [{}, {"delta.enableDeletionVectors": "true"}])
@pytest.mark.parametrize(("options", "expected"), REWRITES)
def test_rewrites_stop_a_follower_unless_told_otherwise(
    properties: dict[str, str], options: dict[str, Any], expected: list[int]
) -> None:
    table = make(properties)
    table.delete("id = 1")
    table.append({"id": [9]})
    with pytest.raises(RowsChangedError, match="version 1 rewrote rows"):
        ids(follow(table, 1, ignore_deletes=True))
    assert ids(follow(table, 1, **options)) == expected


def test_what_was_found_before_an_error_is_given_first() -> None:
    table = make()
    table.append({"id": [3]})
    table.delete()
    follower = follow(table, 1)
    step = follower.poll()
    assert step is not None
    assert ids_of(step) == [3]
    with pytest.raises(RowsChangedError):
        follower.poll()
    assert follower.offset.version == 2


@pytest.mark.protocol("UPG-11")
@pytest.mark.parametrize("change", ["add", "rename", "drop"])
def test_a_schema_change_stops_a_follower_and_it_goes_on_from_its_offset(change: str) -> None:
    table = AgingTable()
    table.create({"id": [1], "b": [1]}, properties={"delta.columnMapping.mode": "name"})
    changes: dict[str, Operation[Any]] = {
        "add": alter.AddColumns([C]),
        "rename": alter.RenameColumn("b", "c"),
        "drop": alter.DropColumns(["b"]),
    }
    table.append({"id": [2], "b": [2]})
    follower = follow(table, 1)
    table.do(changes[change])
    names = table.snapshot().configuration.schema.names
    table.append({name: [3] for name in names})
    assert ids_of(next(follower)) == [2]
    with pytest.raises(IncompatibleChangesError, match="schema changed in version 2"):
        next(follower)
    (step,) = follow(table, Offset.from_json(follower.offset.to_json())).available()
    assert step.to_table().to_pylist() == [dict.fromkeys(names, 3)]
    evolving = list(follow(table, 1, on_schema_change="evolve").available())
    assert [step.schema.names for step in evolving] == [["id", "b"], list(names)]


def test_another_setting_does_not_stop_a_follower() -> None:
    table = make()
    follower = follow(table, "latest")
    properties = {"delta.enableDeletionVectors": "true"}
    table.do(alter.SetTableProperties(properties))
    table.append({"id": [3]})
    assert ids(follower) == [3]


@pytest.mark.parametrize("properties", [FEED, FEATURES], ids=["files", "vectors"])
def test_the_change_feed_can_be_followed(properties: dict[str, str]) -> None:
    table = make(properties)
    follower = follow(table, changes=True, max_files=1)
    table.delete("id = 1")
    table.append({"id": [3]})
    rows = [row for step in follower.available() for row in step.to_table().to_pylist()]
    told = [(row["id"], row["_change_type"], row["_commit_version"]) for row in rows]
    assert told == [(1, "insert", 0), (2, "insert", 0), (1, "delete", 1), (3, "insert", 2)]


def test_a_feed_that_is_off_is_an_error() -> None:
    table = make()
    table.append({"id": [3]})
    with pytest.raises(ChangeDataFeedNotEnabledError):
        ids(follow(table, 1, changes=True))


def test_columns_and_rows_may_be_chosen() -> None:
    table = AgingTable()
    table.create({"id": [1, 2], "b": [1, 2]})
    follower = follow(table, columns=["b"], predicate=lambda _: parse_sql("id > 1"))
    (step,) = follower.available()
    assert step.to_table().to_pylist() == [{"b": 2}]


def test_commits_that_are_gone_are_an_error() -> None:
    table = make()
    table.append({"id": [3]})
    table.append({"id": [4]})
    follower = follow(table, 1)
    del table.kept.files[commit_path(1)]
    with pytest.raises(VersionNotFoundError, match="from version 1"):
        follower.poll()


def test_it_waits_for_what_comes() -> None:
    table = make()
    clock = Waits(lambda: None, lambda: table.append({"id": [3]}))
    options = FollowOptions(poll_seconds=7)
    follower = Follower(table.snapshot(), start="latest", options=options, clock=clock)
    assert ids_of(next(follower)) == [3]
    assert clock.waited == [7, 7]
    follower.close()
    assert list(follower) == []


def test_it_waits_asynchronously() -> None:
    table = make()
    clock = Waits(lambda: table.append({"id": [3]}), lambda: follower.close())  # noqa: PLW0108  # it is made below
    follower = Follower(table.snapshot(), clock=clock)

    async def gather() -> list[list[int]]:
        return [ids_of(step) async for step in follower]

    assert asyncio.run(gather()) == [[1, 2], [3]]


def test_a_look_that_finds_nothing_costs_a_listing() -> None:
    table = make()
    snapshot = table.snapshot()
    store = CountingStore(table.kept)
    moved(snapshot, store=store)
    follower = Follower(snapshot, start="latest")
    store.reset()
    assert follower.poll() is None
    assert store.counts == {"list_from": 1}
    table.append({"id": [3]})
    store.reset()
    assert follower.poll() is not None
    assert store.counts == {"list_from": 1, "read_many": 1}


def test_a_follower_of_the_open_version_does_not_open_it_again() -> None:
    table = make()
    snapshot = table.snapshot()
    store = CountingStore(table.kept)
    moved(snapshot, store=store)
    follower = Follower(snapshot)
    assert store.counts == {}
    assert (follower.poll() is not None, follower.listed_version) == (True, None)
    assert "list_from" not in store.counts
    assert (follower.poll() is None, follower.listed_version) == (True, 0)
    assert store.counts["list_from"] == 1


def test_a_replaced_table_is_another_one() -> None:
    table = make()
    follower = follow(table, "latest")
    data = table.kept.files
    table.append({"id": [3]})
    line = data[commit_path(0)].splitlines()
    meta = next(text for text in line if b'"metaData"' in text)
    data[commit_path(1)] += meta.replace(b'"id":"', b'"id":"x', 1) + b"\n"
    with pytest.raises(IncompatibleChangesError, match="table was replaced"):
        follower.poll()


def test_overwritten_rows_can_be_taken_as_new() -> None:
    table = make()
    rows = {"id": [7]}
    table.do(Write(data=pa.table(rows), mode="overwrite"))
    assert ids(follow(table, 1, ignore_changes=True)) == [7]


def test_results_are_those_of_each_step() -> None:
    follower: Any = follow(make())
    for steps in (follower, follower.available()):
        with pytest.raises(AttributeError, match="use the same method of each step"):
            steps.to_pandas()
    with pytest.raises(AttributeError, match="the steps has no attribute 'x': use a loop"):
        _ = follower.available().x
    assert list(follower.available())
    assert follower.available()
