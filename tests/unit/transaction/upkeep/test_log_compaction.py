"""Compacted logs stand for their commits: any version read through one is the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.errors import InvalidInputError
from deltalog.log import names
from deltalog.log.context import utc_context
from deltalog.log.names import compaction_name, log_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.testing import CountingStore
from deltalog.transaction.maintenance.cleanup import compact_logs
from tests.support import logs
from tests.support.examples import examples
from tests.support.logs import Json

PATHS = st.sampled_from(["a", "b", "c%20d"])
VECTORS = st.none() | st.builds(logs.vector, st.sampled_from(["v", "w"]))


@st.composite
def commits(draw: st.DrawFn) -> list[Json]:
    found: list[Json] = []
    for path in draw(st.lists(PATHS, unique=True)):
        make = draw(st.sampled_from([logs.add, logs.remove]))
        vector = draw(VECTORS)
        found.append(make(path, **({} if vector is None else {"deletionVector": vector})))
    if draw(st.booleans()):
        found.append(logs.txn("app", draw(st.integers(0, 9))))
    if draw(st.booleans()):
        found.append(logs.domain("d", removed=draw(st.booleans())))
    if draw(st.booleans()):
        found.append(logs.metadata(name=draw(st.sampled_from("xyz"))))
    return found


def state_of(snapshot: Snapshot) -> list[Any]:
    return [
        snapshot.protocol,
        snapshot.metadata,
        sorted(map(repr, snapshot.files().to_pylist())),
        sorted(map(repr, snapshot.tombstones().to_pylist())),
        dict(snapshot.recorded_app_transactions),
        dict(snapshot.domain_metadata),
    ]


@pytest.mark.protocol("B-18", "D-54", "D-20")
@given(st.lists(commits(), min_size=3, max_size=6), st.data())
@settings(max_examples=examples(60))
def test_every_version_is_the_same_with_and_without(
    history: list[list[Json]], data: st.DataObject
) -> None:
    store = logs.table_of(*history)
    last = len(history) - 1
    plain = [
        state_of(load_snapshot(utc_context(store), version=version)) for version in range(last + 1)
    ]
    start = data.draw(st.integers(0, last - 1))
    end = data.draw(st.integers(start + 1, last))
    compact_logs(load_snapshot(utc_context(store)), start, end)
    compacted = [
        state_of(load_snapshot(utc_context(store), version=version)) for version in range(last + 1)
    ]
    assert compacted == plain


def test_a_torn_compaction_is_not_believed() -> None:
    store = logs.table_of([logs.add("a")], [logs.remove("a")], [logs.add("b")])
    store.put(log_path(compaction_name(1, 2)), b"")
    assert load_snapshot(utc_context(store)).files()["path"].to_pylist() == ["b"]


@pytest.mark.protocol("B-18", "D-54")
def test_a_compacted_log_has_tombstones_and_no_provenance() -> None:
    store = logs.table_of(
        [logs.add("a"), {"commitInfo": {"operation": "WRITE"}}],
        [logs.remove("a"), logs.domain("d")],
        [{"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}],
        [logs.domain("d", removed=True), logs.add("b", fromTheFuture=1)],
    )
    path = compact_logs(load_snapshot(utc_context(store)), 1, 3)
    assert path == names.log_path(names.compaction_name(1, 3))
    lines = [json.loads(line) for line in store.files[path].splitlines()]
    assert sorted(kind for line in lines for kind in line) == ["add", "domainMetadata", "remove"]
    assert {"add": {**logs.add("b")["add"], "fromTheFuture": 1}} in lines
    assert logs.domain("d", removed=True) in lines


def test_members_that_are_null_are_no_actions() -> None:
    """Other writers leave every member of a line in place, and all but one NULL."""
    kinds = ("add", "remove", "txn", "metaData", "protocol", "domainMetadata", "commitInfo")
    actions = [
        [logs.add("a"), logs.add("b", size=2), logs.txn("app", 1)],
        [logs.remove("a"), logs.add("c", size=3), logs.domain("d")],
    ]
    sparse = [[{**dict.fromkeys(kinds), **line} for line in lines] for lines in actions]
    plain, store = logs.table_of(*actions), logs.table_of(*sparse)
    path = compact_logs(load_snapshot(utc_context(store)), 0, 1)
    assert path in store.files
    assert state_of(load_snapshot(utc_context(store))) == state_of(
        load_snapshot(utc_context(plain))
    )


def test_commits_of_which_nothing_is_left_can_be_compacted() -> None:
    store = logs.table_of([logs.add("a")], [{"commitInfo": {"operation": "WRITE"}}], [])
    before = state_of(load_snapshot(utc_context(store)))
    compact_logs(load_snapshot(utc_context(store)), 1, 2)
    assert state_of(load_snapshot(utc_context(store))) == before


def test_readers_use_it() -> None:
    store = logs.table_of(*[[logs.add(f"f{n}")] for n in range(6)])
    compact_logs(load_snapshot(utc_context(store)), 0, 4)
    counting = CountingStore(store)
    assert load_snapshot(utc_context(counting)).num_files == 6
    read = [path for path in counting.paths("read_many") if path.endswith(".json")]
    assert len(read) == 2


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (1, 1), (2, 1), (0, 4), (0, 1)])
def test_there_must_be_such_commits(start: int, end: int) -> None:
    store = logs.table_of([logs.add("a")], [], [], [])
    if (start, end) == (0, 1):
        snapshot = load_snapshot(utc_context(store))
        del store.files[names.commit_path(0)]
    else:
        snapshot = load_snapshot(utc_context(store))
    with pytest.raises(InvalidInputError):
        compact_logs(snapshot, start, end)


def test_one_that_is_there_stays() -> None:
    store = logs.table_of([logs.add("a")], [logs.add("b")])
    path = compact_logs(load_snapshot(utc_context(store)), 0, 1)
    content = store.files[path]
    assert compact_logs(load_snapshot(utc_context(store)), 0, 1) == path
    assert store.files[path] is content
