"""Commit files without a byte: versions without actions, or what a power cut left of the newest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import MalformedLogError, NoProtocolError
from deltalog.log.names import commit_path
from deltalog.storage.fsspec_store import open_store
from deltalog.storage.store import Store
from tests.support.logs import DictStore

SCHEMA = pa.schema([("a", pa.int64())])
OWN_TIMES = {"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
NEWEST = 4


def row(number: int) -> pa.Table:
    return pa.table({"a": pa.array([number], pa.int64())})


def rows(store: Any, **options: Any) -> list[int]:
    found: list[Any] = DeltaTable(store, **options).to_pyarrow_table()["a"].to_pylist()
    return sorted(found)


def emptied(store: Store, versions: list[int], configuration: dict[str, str]) -> Store:
    """Versions 1 to 4 of a row each, but for those that are empty."""
    DeltaTable.create(store, SCHEMA, configuration=configuration)
    for version in range(1, NEWEST + 1):
        if version in versions:
            store.put(commit_path(version), b"\n")
        else:
            write_deltalake(store, row(version), mode="append")
    for version in versions:
        store.put(commit_path(version), b"")
    return store


@pytest.fixture(params=["local", "requests"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(tmp_path) if request.param == "local" else DictStore()


@pytest.mark.parametrize("configuration", [FEED, OWN_TIMES])
@pytest.mark.parametrize("versions", [[2], [2, 3], [1], [1, 3]])
def test_an_empty_commit_below_others_is_a_version_without_actions(
    store: Store, versions: list[int], configuration: dict[str, str]
) -> None:
    emptied(store, versions, configuration)
    left = [version for version in range(1, NEWEST + 1) if version not in versions]
    assert rows(store) == left
    table = DeltaTable(store)
    for version in range(NEWEST + 1):
        assert rows(store, version=version) == [one for one in left if one <= version]
    history = {entry["version"]: entry for entry in table.history()}
    assert [version for version in history if "operation" not in history[version]] == versions[::-1]
    changed = table.load_cdf(starting_version=0).read_all()
    assert set(changed["_commit_version"].to_pylist()) == set(left)
    steps = [step.to_table()["a"].to_pylist() for step in table.follow(0).available()]
    assert {number for step in steps for number in step} == set(left)
    assert table.vacuum(retention_hours=0, enforce_retention_duration=False) == []
    table.update_incremental()
    write_deltalake(table, row(9), mode="append")
    DeltaTable(store).compact_logs(0, NEWEST)
    assert rows(store) == [*left, 9]
    table.create_checkpoint()
    table.delete(f"a = {left[0]}")
    assert rows(store) == [*left[1:], 9]


@pytest.mark.parametrize("limit", [None, 3])
def test_time_travel_finds_a_version_without_a_time(limit: int | None) -> None:
    store = emptied(DictStore(), [2, 3], OWN_TIMES)
    table = DeltaTable(store)
    times = {entry["version"]: entry["timestamp"] for entry in table.history(limit)}
    assert times[3] == times[2]
    times = {entry["version"]: entry["timestamp"] for entry in table.history()}
    assert times[1] == times[2] == times[3] < times[4]
    assert table.snapshot.store is store
    for asked_ms, expected in ((times[1], 3), (times[4], 4), (times[0], 0)):
        moment = pa.scalar(asked_ms * 1000, pa.timestamp("us", "UTC")).as_py()
        assert DeltaTable(store, version=moment).version() == expected


@pytest.mark.parametrize("data", [b"\n", b"\r\n\n"])
@pytest.mark.parametrize("versions", [[NEWEST], [2, NEWEST]])
def test_blank_lines_are_no_torn_file(store: Store, versions: list[int], data: bytes) -> None:
    emptied(store, versions, FEED)
    for version in versions:
        store.put(commit_path(version), data)
    left = [version for version in range(1, NEWEST + 1) if version not in versions]
    assert rows(store) == left
    write_deltalake(store, row(9), mode="append")
    assert (rows(store), DeltaTable(store).version()) == ([*left, 9], NEWEST + 1)


@pytest.mark.parametrize("versions", [[4], [3, 4]])
def test_the_newest_commit_may_be_torn_on_a_disk_alone(tmp_path: Path, versions: list[int]) -> None:
    local = emptied(open_store(tmp_path), versions, FEED)
    with pytest.raises(MalformedLogError, match=r"version 4 of .* its writer was interrupted"):
        DeltaTable(local)
    with pytest.raises(MalformedLogError, match="its writer was interrupted"):
        write_deltalake(local, row(9), mode="append")
    assert rows(local, version=2) == [1, 2]
    # Elsewhere a file is created whole: it is a version, and the next writer comes after it.
    store = emptied(DictStore(), versions, OWN_TIMES)
    left = [version for version in range(1, NEWEST + 1) if version not in versions]
    old = DeltaTable(store)
    write_deltalake(old, row(9), mode="append")
    assert (old.version(), rows(store)) == (5, [*left, 9])
    old.delete("a = 1")
    assert rows(store) == [*left[1:], 9]


def test_an_empty_version_0_has_no_table_until_there_is_a_protocol() -> None:
    store = DictStore()
    DeltaTable.create(store, SCHEMA)
    first = store.files[commit_path(0)]
    store.files = {commit_path(0): b""}
    with pytest.raises(NoProtocolError) as caught:
        DeltaTable(store)
    advice = f"restore the first commit, {commit_path(0)}, which is empty, from a backup"
    assert str(caught.value).endswith(advice)
    store.files[commit_path(1)] = first
    write_deltalake(store, row(2), mode="append")
    assert (rows(store), DeltaTable(store).version()) == ([2], 2)


def test_a_lost_race_against_an_empty_version(store: Store) -> None:
    DeltaTable.create(store, SCHEMA)
    old = DeltaTable(store)
    store.put(commit_path(1), b"")
    store.put(commit_path(2), b"\n")
    write_deltalake(old, row(3), mode="append")
    assert (old.version(), rows(store)) == (3, [3])


def test_a_checkpoint_leaves_empty_commits_behind(store: Store) -> None:
    emptied(store, [2], FEED)
    DeltaTable(store).create_checkpoint()
    assert rows(store) == [1, 3, 4]
    write_deltalake(store, row(5), mode="append")
    assert rows(store) == [1, 3, 4, 5]
