"""Opening a table: what it costs, what it survives, what it refuses."""

from __future__ import annotations

import pytest

from deltalog.catalog import LogTail, RatifiedCommit
from deltalog.context import utc_context
from deltalog.errors import (
    CheckpointMissingError,
    CheckpointUnreadableError,
    InvalidMetadataError,
    InvalidProtocolError,
    LogGapError,
    MalformedLogError,
    NoMetadataError,
    NoProtocolError,
    TableNotFoundError,
    VersionNotFoundError,
)
from deltalog.log.names import LAST_CHECKPOINT_PATH, commit_path
from deltalog.snapshot import Snapshot, load_snapshot
from deltalog.testing import CountingStore
from tests.support import logs
from tests.support.logs import DictStore

STATE = [logs.PROTOCOL, logs.metadata(), logs.add("a"), logs.add("b")]


def paths(snapshot: Snapshot) -> set[str]:
    return {str(path) for path in snapshot.files(["path"])["path"].to_pylist()}


def with_hint(store: DictStore, text: str) -> DictStore:
    store.put(LAST_CHECKPOINT_PATH, text.encode())
    return store


def checkpointed(commits: int = 12, at: int = 10) -> DictStore:
    """`commits` commits that add one file each, a checkpoint and its hint."""
    store = logs.table_of(*[[logs.add(f"f{version}")] for version in range(commits)])
    state = [logs.PROTOCOL, logs.metadata(), *[logs.add(f"f{n}") for n in range(at + 1)]]
    logs.classic_checkpoint(store, at, state)
    return with_hint(store, f'{{"version":{at},"size":{len(state)}}}')


def test_opening_costs_hint_listing_tail_and_two_leaves() -> None:
    store = CountingStore(checkpointed(commits=13))
    snapshot = load_snapshot(utc_context(store))
    assert snapshot.version == 12
    # The checkpoint: its footer, and protocol with metaData in one batch of ranges.
    assert store.counts == {"read": 1, "list_from": 1, "read_many": 1, "read_ranges": 2}
    assert store.paths("read_many") == [commit_path(12), commit_path(11)]
    store.reset()
    assert snapshot.num_files == 13
    assert store.counts == {"read_ranges": 1}
    store.reset()
    assert len(paths(snapshot)) == 13
    assert snapshot.num_files == 13
    assert store.calls == []


def test_the_checkpoint_is_left_alone_if_commits_tell_all() -> None:
    store = checkpointed()
    logs.commit(store, 12, logs.PROTOCOL, logs.metadata(name="new"))
    counting = CountingStore(store)
    snapshot = load_snapshot(utc_context(counting))
    assert snapshot.metadata.name == "new"
    assert "read_ranges" not in counting.counts


@pytest.mark.protocol("LOG-12", "OV-02")
def test_a_table_without_checkpoints_opens() -> None:
    store = logs.table_of(*[[logs.add(f"f{version}")] for version in range(25)])
    snapshot = load_snapshot(utc_context(store))
    assert (snapshot.version, snapshot.num_files) == (24, 25)
    assert paths(load_snapshot(utc_context(store), version=3)) == {"f0", "f1", "f2", "f3"}


@pytest.mark.protocol("LAST-02", "LAST-05", "LAST-06", "D-21", "SUM-08")
@pytest.mark.parametrize(
    "hint",
    [
        "",
        "{",
        '{"version":10}',
        '{"version":5,"size":1}',
        '{"version":11,"size":1}',
        '{"version":99,"size":1}',
        '{"version":10,"version":3,"size":1}',
        '{"version":10,"size":1,"checksum":"00000000000000000000000000000000"}',
        '{"version":0,"size":1}',
    ],
)
def test_no_hint_changes_the_answer(hint: str) -> None:
    store = with_hint(checkpointed(), hint)
    assert paths(load_snapshot(utc_context(store))) == {f"f{n}" for n in range(12)}
    assert paths(load_snapshot(utc_context(store), version=4)) == {f"f{n}" for n in range(5)}


@pytest.mark.protocol("LAST-02")
def test_a_newer_checkpoint_than_the_hint_is_used() -> None:
    store = checkpointed(commits=25)
    logs.classic_checkpoint(store, 20, STATE)
    snapshot = load_snapshot(utc_context(store))
    assert snapshot.segment.checkpoint is not None
    assert snapshot.segment.checkpoint.version == 20
    assert paths(snapshot) == {"a", "b", "f21", "f22", "f23", "f24"}


@pytest.mark.protocol("CKPT-24", "D-24")
def test_commits_below_the_checkpoint_may_be_gone() -> None:
    store = checkpointed()
    for version in range(11):
        del store.files[commit_path(version)]
    assert paths(load_snapshot(utc_context(store))) == {f"f{n}" for n in range(12)}
    assert load_snapshot(utc_context(store), version=10).num_files == 11
    with pytest.raises(CheckpointMissingError, match="earliest version left is 10"):
        load_snapshot(utc_context(store), version=9)


@pytest.mark.protocol("CKPT-08", "D-60")
@pytest.mark.parametrize("harm", ["torn", "no Parquet", "sidecar gone", "gone"])
@pytest.mark.parametrize("older", [True, False], ids=["older checkpoint", "commits"])
def test_a_damaged_checkpoint_gives_way(harm: str, older: bool) -> None:
    store = logs.table_of([logs.add("a")], [logs.add("b")], [logs.add("c")], [logs.remove("a")])
    if older:
        logs.classic_checkpoint(store, 1, STATE)
        del store.files[commit_path(0)]
    state = [logs.PROTOCOL, logs.metadata(), logs.add("a"), logs.add("b"), logs.add("c")]
    top, sidecar = logs.v2_checkpoint(store, 2, state, suffix="parquet")
    if harm == "torn":
        store.files[top] = store.files[top][:-30]
    elif harm == "no Parquet":
        store.files[top] = b"x" * 50
    elif harm == "sidecar gone":
        del store.files[sidecar]
    snapshot = load_snapshot(utc_context(store))
    if harm == "gone":
        del store.files[top]
    assert paths(snapshot) == {"b", "c"}
    assert snapshot.version == 3


def test_nothing_stands_in_for_the_only_checkpoint() -> None:
    store = DictStore()
    path = logs.classic_checkpoint(store, 3, STATE)
    logs.commit(store, 3)
    store.files[path] = store.files[path][:100]
    with pytest.raises(CheckpointUnreadableError, match=r"00000000000000000003\.checkpoint"):
        load_snapshot(utc_context(store))


def test_commits_that_were_cleaned_up_meanwhile_have_a_stand_in() -> None:
    store = logs.table_of([logs.add("a")], [logs.add("b")])
    snapshot = load_snapshot(utc_context(store), version=1)
    snapshot._state._retained.clear()
    logs.classic_checkpoint(store, 1, STATE)
    del store.files[commit_path(0)]
    assert paths(snapshot) == {"a", "b"}


@pytest.mark.protocol("LOG-09", "META-01")
def test_incomplete_tables_are_refused_by_name() -> None:
    with pytest.raises(TableNotFoundError):
        load_snapshot(utc_context(DictStore({"part-0.parquet": b""})))
    with pytest.raises(TableNotFoundError):
        load_snapshot(utc_context(with_hint(DictStore(), '{"version":3,"size":3}')))
    store = DictStore()
    logs.commit(store, 0, logs.PROTOCOL)
    with pytest.raises(NoMetadataError):
        load_snapshot(utc_context(store))
    logs.commit(store, 0, logs.metadata())
    with pytest.raises(NoProtocolError):
        load_snapshot(utc_context(store))
    logs.commit(store, 0, logs.PROTOCOL, {"metaData": {"id": "x"}})
    with pytest.raises(InvalidMetadataError):
        load_snapshot(utc_context(store))
    logs.commit(store, 0, {"protocol": {"minReaderVersion": 1}}, logs.metadata())
    with pytest.raises(InvalidProtocolError):
        load_snapshot(utc_context(store))


@pytest.mark.protocol("D-24", "LOG-11", "OV-02")
def test_versions_that_cannot_be_made_are_refused() -> None:
    store = checkpointed()
    with pytest.raises(VersionNotFoundError):
        load_snapshot(utc_context(store), version=12)
    del store.files[commit_path(3)]
    assert load_snapshot(utc_context(store)).version == 11
    assert load_snapshot(utc_context(store), version=2).num_files == 3
    with pytest.raises(LogGapError, match="commit 3 is missing"):
        load_snapshot(utc_context(store), version=4)
    gone = logs.table_of([], [], [])
    del gone.files[commit_path(1)]
    for version in (None, 2):
        with pytest.raises(LogGapError):
            load_snapshot(utc_context(gone), version=version)
    assert load_snapshot(utc_context(gone), version=0).version == 0


def test_versions_before_a_damaged_commit_can_be_opened() -> None:
    store = logs.table_of(*([] for _ in range(14)))
    del store.files[commit_path(12)]
    assert load_snapshot(utc_context(store), version=4).version == 4
    with pytest.raises(LogGapError, match=r"commit 12 is missing; .* can be opened: 0 to 11"):
        load_snapshot(utc_context(store))
    store.files[commit_path(12)] = b'{"add": {"path":'
    assert load_snapshot(utc_context(store), version=11).version == 11
    with pytest.raises(MalformedLogError) as caught:
        _ = load_snapshot(utc_context(store)).num_files
    assert "version 12" in caught.value.__notes__[-1]
    assert caught.value.__notes__[-1].endswith("versions that can be opened: 0 to 11")


@pytest.mark.protocol("META-02")
def test_incomplete_metadata_that_was_replaced_is_no_matter() -> None:
    store = DictStore()
    logs.commit(store, 0, logs.PROTOCOL, {"metaData": {"id": "x"}}, logs.add("a"))
    logs.commit(store, 1, logs.metadata(name="whole"))
    snapshot = load_snapshot(utc_context(store))
    assert snapshot.metadata.name == "whole"
    assert paths(snapshot) == {"a"}


@pytest.mark.protocol("D-54", "B-18")
def test_a_compaction_saves_its_commits() -> None:
    store = logs.table_of(*[[logs.add(f"f{n}")] for n in range(3)], [logs.remove("f1")], [])
    merged = [logs.add("f0x"), logs.remove("f1"), logs.add("f2")]
    path = "_delta_log/00000000000000000001.00000000000000000003.compacted.json"
    store.put(path, logs.ndjson(merged))
    counting = CountingStore(store)
    snapshot = load_snapshot(utc_context(counting))
    assert paths(snapshot) == {"f0", "f0x", "f2"}
    assert counting.paths("read_many") == [commit_path(4), path, commit_path(0)]
    assert paths(load_snapshot(utc_context(store), version=2)) == {"f0", "f1", "f2"}
    assert snapshot.tombstones(["path"])["path"].to_pylist() == ["f1"]


@pytest.mark.protocol("B-43")
def test_staged_commits_count_only_when_handed_in() -> None:
    store = logs.table_of([logs.add("a")])
    staged = "_delta_log/_staged_commits/00000000000000000001.3a0d65cd.json"
    store.put(staged, logs.ndjson([logs.add("b")]))
    assert paths(load_snapshot(utc_context(store))) == {"a"}
    tail = LogTail(commits=(RatifiedCommit(version=1, file=store.stat(staged)),))
    snapshot = load_snapshot(utc_context(store).with_log_tail(tail))
    assert snapshot.version == 1
    assert paths(snapshot) == {"a", "b"}
    assert paths(load_snapshot(utc_context(store).with_log_tail(tail), version=0)) == {"a"}


def test_large_tails_are_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CountingStore(logs.table_of(*[[logs.add(f"f{n}")] for n in range(9)]))
    monkeypatch.setattr("deltalog.snapshot.state._RETAINED_BYTES", 400)
    monkeypatch.setattr("deltalog.log.reader._BATCH_FILES", 2)
    snapshot = load_snapshot(utc_context(store))
    store.reset()
    assert paths(snapshot) == {f"f{n}" for n in range(9)}
    assert 0 < len(store.paths("read_many")) < 9
