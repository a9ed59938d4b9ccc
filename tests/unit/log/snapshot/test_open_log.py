"""How the log is opened, and the way out when one of its files cannot be used."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from deltalog.errors import (
    CheckpointUnreadableError,
    LogGapError,
    MalformedLogError,
)
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import load_snapshot
from deltalog.testing import CountingStore
from tests.support import logs
from tests.support.logs import DictStore
from tests.support.opening import STATE, checkpointed, paths, with_hint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.storage import ByteRange, Store


def test_opening_costs_hint_listing_tail_and_checkpoint() -> None:
    store = CountingStore(checkpointed(commits=13))
    snapshot = load_snapshot(utc_context(store))
    assert snapshot.version == 12
    # A small checkpoint is fetched whole.
    assert store.counts == {"read": 1, "list_from": 1, "read_many": 1, "read_ranges": 1}
    assert store.paths("read_many") == [commit_path(12), commit_path(11)]
    store.reset()
    assert snapshot.num_files == 13
    assert store.calls == []  # its bytes are there
    assert len(paths(snapshot)) == 13
    assert snapshot.num_files == 13
    assert store.calls == []


class MeetingStore(CountingStore):
    """A store that answers only when a commit and the checkpoint are asked for."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._meeting = threading.Barrier(2)

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        self._meeting.wait(60)
        return super().read_many(paths)

    def read_ranges(self, path: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        self._meeting.wait(60)
        return super().read_ranges(path, ranges)


def test_commits_and_the_checkpoint_are_read_at_once() -> None:
    store = MeetingStore(checkpointed(commits=13))
    assert load_snapshot(utc_context(store)).version == 12


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
    assert "version 12" in str(caught.value)
    assert str(caught.value).endswith(
        "versions that can be opened: 0 to 11; restore this file from a backup, or open one of "
        "these versions by DeltaTable(…, version=…); `deltalog doctor` reports all damage"
    )
