"""Opening a table: what it costs, what it survives, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog.errors import (
    CheckpointMissingError,
    InvalidMetadataError,
    InvalidProtocolError,
    LogGapError,
    NoMetadataError,
    NoProtocolError,
    TableNotFoundError,
    VersionNotFoundError,
)
from deltalog.log.context import LogTail, RatifiedCommit, utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import load_snapshot
from deltalog.storage import Store, open_store
from deltalog.storage.store import native_path
from deltalog.testing import CountingStore
from tests.support import logs
from tests.support.logs import DictStore
from tests.support.opening import STATE, checkpointed, paths, with_hint


def test_the_checkpoint_does_not_matter_if_commits_tell_all(tmp_path: Path) -> None:
    store = checkpointed()
    logs.commit(store, 12, logs.PROTOCOL, logs.metadata(name="new"))
    name = next(path for path in store.files if ".checkpoint" in path)
    store.files[name] = b"damaged"
    assert load_snapshot(utc_context(store)).metadata.name == "new"
    local = LocalCounting(open_store(str(tmp_path)))
    for path, data in store.files.items():
        local.store.put(path, data)
    assert load_snapshot(utc_context(local)).metadata.name == "new"
    assert name not in local.asked  # a local file is not worth reading for nothing


class LocalCounting(CountingStore):
    """A store of local files that knows which of them Arrow has opened."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.asked: list[str] = []

    def native_path(self, path: str) -> str | None:
        self.asked.append(path)
        return native_path(self.store, path)


@pytest.mark.protocol("LOG-12", "OV-02")
def test_a_table_without_checkpoints_opens() -> None:
    store = logs.table_of(*[[logs.add(f"f{version}")] for version in range(25)])
    snapshot = load_snapshot(utc_context(store))
    assert (snapshot.version, snapshot.num_files) == (24, 25)
    assert paths(load_snapshot(utc_context(store), version=3)) == {"f0", "f1", "f2", "f3"}


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
    with pytest.raises(CheckpointMissingError, match="earliest readable version is 10"):
        load_snapshot(utc_context(store), version=9)


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
    monkeypatch.setattr("deltalog.log.snapshot.state._RETAINED_BYTES", 400)
    monkeypatch.setattr("deltalog.log.reader._BATCH_FILES", 2)
    snapshot = load_snapshot(utc_context(store))
    store.reset()
    assert paths(snapshot) == {f"f{n}" for n in range(9)}
    assert 0 < len(store.paths("read_many")) < 9
