"""Following a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import TableNotFoundError
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.stats import parse
from deltalog.protocol.stats.parse import parsed_leaves
from deltalog.testing import CountingStore
from tests.support import logs


def paths(snapshot: Snapshot) -> set[str]:
    return {str(path) for path in snapshot.files(["path"])["path"].to_pylist()}


def checkpointed() -> logs.DictStore:
    store = logs.table_of([logs.add("a")], [logs.add("b")], [logs.add("c")])
    state = [logs.PROTOCOL, logs.metadata(), logs.add("a"), logs.add("b")]
    logs.classic_checkpoint(store, 1, state)
    return store


def test_nothing_new_is_the_same_snapshot() -> None:
    store = CountingStore(checkpointed())
    snapshot = load_snapshot(utc_context(store))
    store.reset()
    assert snapshot.refresh() is snapshot
    # Its own commit is still the same; the next one was asked for, and what is not there is not
    # counted.
    assert store.counts == {"stat": 1}


@pytest.mark.protocol("OV-07")
def test_only_new_commits_are_read() -> None:
    inner = checkpointed()
    store = CountingStore(inner)
    snapshot = load_snapshot(utc_context(store))
    assert paths(snapshot) == {"a", "b", "c"}
    logs.commit(inner, 3, logs.remove("a"), logs.add("d"), logs.txn("app", 1))
    logs.commit(inner, 4, logs.metadata(name="renamed"))
    store.reset()
    newer = snapshot.refresh()
    assert newer.version == 4
    assert newer.metadata.name == "renamed"
    assert newer.protocol == snapshot.protocol
    assert paths(newer) == {"b", "c", "d"}
    assert store.paths("read_many") == [commit_path(3), commit_path(4)]
    # Paths and vectors of the checkpoint are in memory; tail vectors were part of the tail.
    assert "read_ranges" not in store.counts
    assert set(newer.app_transactions) == {"app"}
    assert paths(snapshot) == {"a", "b", "c"}
    logs.commit(inner, 5, logs.remove("d"))
    assert paths(newer.refresh()) == {"b", "c"}
    assert paths(newer.refresh()) == paths(load_snapshot(utc_context(inner)))


@pytest.mark.parametrize("since", [300, 20, 1])
def test_a_newer_checkpoint_is_taken_when_nothing_was_read(since: int) -> None:
    """Where there are so many commits, new ones or all, that the log is listed."""
    store = logs.table_of(*[[] for _ in range(301)])
    snapshot = load_snapshot(utc_context(store), version=301 - since)
    logs.commit(store, 301, logs.add("d"))
    logs.classic_checkpoint(store, 301, [logs.PROTOCOL, logs.metadata(), logs.add("d")])
    newer = snapshot.refresh()
    assert newer.segment.checkpoint is not None
    assert newer.segment.checkpoint.version == 301
    assert paths(newer) == {"d"}


def test_columns_in_memory_outweigh_a_newer_checkpoint() -> None:
    store = checkpointed()
    snapshot = load_snapshot(utc_context(store))
    assert snapshot.num_files == 3
    logs.commit(store, 3, logs.add("d"))
    state = [logs.PROTOCOL, logs.metadata(), *[logs.add(name) for name in "abcd"]]
    logs.classic_checkpoint(store, 3, state)
    newer = snapshot.refresh()
    assert newer.segment.checkpoint == snapshot.segment.checkpoint
    assert paths(newer) == {"a", "b", "c", "d"}


@pytest.mark.protocol("D-80")
def test_a_table_made_anew_is_opened_anew() -> None:
    store = checkpointed()
    snapshot = load_snapshot(utc_context(store))
    assert snapshot.num_files == 3
    store.files.clear()
    for version in range(6):
        first = [logs.PROTOCOL, logs.metadata(id="another")] if version == 0 else []
        logs.commit(store, version, *first, logs.add(f"new{version}"), time_ms=10**6 + version)
    newer = snapshot.refresh()
    assert newer.metadata.id == "another"
    assert paths(newer) == {f"new{version}" for version in range(6)}


@pytest.mark.protocol("D-80")
def test_a_version_that_went_back_is_another_table() -> None:
    store = checkpointed()
    snapshot = load_snapshot(utc_context(store))
    store.files.clear()
    logs.commit(store, 0, logs.PROTOCOL, logs.metadata(id="another"), logs.add("x"))
    newer = snapshot.refresh()
    assert (newer.version, paths(newer)) == (0, {"x"})
    store.files.clear()
    with pytest.raises(TableNotFoundError):
        newer.refresh()


def test_what_new_commits_do_not_change_stays() -> None:
    store = logs.table_of([logs.add("a")])
    snapshot = load_snapshot(utc_context(store))
    logs.commit(store, 1, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}})
    upgraded = snapshot.refresh()
    assert (upgraded.protocol.min_writer_version, upgraded.metadata.name) == (4, None)
    logs.commit(store, 2, logs.metadata(name="named"))
    named = upgraded.refresh()
    assert (named.protocol.min_writer_version, named.metadata.name) == (4, "named")


@pytest.mark.protocol("D-80")
def test_another_id_in_a_new_commit_is_another_table() -> None:
    store = logs.table_of([logs.add("a")])
    snapshot = load_snapshot(utc_context(store))
    logs.commit(store, 1, logs.metadata(id="another"), logs.remove("a"))
    newer = snapshot.refresh()
    assert (newer.metadata.id, paths(newer)) == ("another", set())


def test_a_cleaned_up_log_is_opened_anew() -> None:
    store = checkpointed()
    snapshot = load_snapshot(utc_context(store))
    logs.commit(store, 3, logs.add("d"))
    state = [logs.PROTOCOL, logs.metadata(), *[logs.add(name) for name in "abcd"]]
    logs.classic_checkpoint(store, 3, state)
    for version in range(3):
        del store.files[commit_path(version)]
    newer = snapshot.refresh()
    assert (newer.version, paths(newer)) == (3, {"a", "b", "c", "d"})


def test_versions_reuse_what_earlier_ones_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    def counted(texts: Any, leaves: Any) -> Any:
        parsed.append(len(texts))
        return parsed_leaves(texts, leaves)

    monkeypatch.setattr(parse, "parsed_leaves", counted)
    rows = pa.schema([("numRecords", pa.int64())])
    store = logs.table_of([])
    expected: dict[str, int | None] = {}
    snapshot = None
    for version in range(1, 8):
        names = [f"{version}-{number}" for number in range(4)]
        # The second file of each version goes, and the newest version of the third one has a
        # vector, other statistics or none.
        lines = [logs.add(name, stats=f'{{"numRecords":{version}}}') for name in names]
        expected.update(dict.fromkeys(names, version))
        if version > 1:
            gone, masked = f"{version - 1}-1", f"{version - 1}-2"
            more = {} if version % 2 else {"stats": '{"numRecords":70}'}
            lines += [
                logs.remove(gone),
                logs.remove(masked),
                logs.add(masked, deletionVector=logs.vector(f"v{version}"), **more),
            ]
            del expected[gone]
            expected[masked] = None if version % 2 else 70
        logs.commit(store, version, *lines)
        context = utc_context(store)
        snapshot = load_snapshot(context) if snapshot is None else snapshot.refresh()
        found = snapshot.stats(rows)["numRecords"].to_pylist()
        live = snapshot.files(["path"])["path"].to_pylist()
        assert dict(zip(live, found, strict=True)) == expected
    assert parsed == [4, *[5] * 6]
