"""What a snapshot shows."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from deltalog._util.clock import now_ms
from deltalog.errors import MalformedLogError
from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.testing import CountingStore
from deltalog.transaction import commit
from tests.support import logs
from tests.support.transactions import commit_info_of, new_file, pending, table


def paths(snapshot: Snapshot) -> list[str]:
    return [str(path) for path in snapshot.files(["path"])["path"].to_pylist()]


def gone(snapshot: Snapshot) -> list[str]:
    return [str(path) for path in snapshot.tombstones(["path"])["path"].to_pylist()]


@pytest.mark.protocol("OV-03", "REC-01", "REC-04", "HWM-02", "TXN-02", "DOM-05")
def test_all_collections_of_the_state() -> None:
    store = logs.table_of(
        [logs.add("a"), logs.add("b"), logs.txn("x", 5), logs.domain("user.d", "1")],
        [logs.remove("a"), logs.txn("x", 3), logs.txn("y", 1), logs.metadata(name="second")],
        [{"rowIdHighWaterMark": {"highWaterMark": 10, "preservedRowIds": True}}],
        [{"rowIdHighWaterMark": {"highWaterMark": 25, "preservedRowIds": True}}],
    )
    snapshot = load_snapshot(utc_context(store))
    assert snapshot.version == 3
    assert snapshot.protocol.min_writer_version == 2
    assert snapshot.metadata.name == "second"
    assert (paths(snapshot), gone(snapshot)) == (["b"], ["a"])
    assert {name: txn.version for name, txn in snapshot.app_transactions.items()} == {
        "x": 3,
        "y": 1,
    }
    assert snapshot.domain_metadata["user.d"].configuration == "1"
    assert snapshot.row_id_high_water_mark == 25
    assert load_snapshot(utc_context(store), version=1).row_id_high_water_mark is None


@pytest.mark.protocol("REC-02", "DOM-06", "D-20", "B-42", "B-79", "B-80")
def test_removed_domains_hide_older_ones() -> None:
    store = logs.table_of(
        [logs.domain("a", "1"), logs.domain("b", {"k": "v"})],
        [logs.domain("a", "1", removed=True)],
        [],
    )
    assert set(load_snapshot(utc_context(store)).domain_metadata) == {"b"}
    assert load_snapshot(utc_context(store)).domain_metadata["b"].configuration == {"k": "v"}
    state = [logs.PROTOCOL, logs.metadata(), logs.domain("a", "1"), logs.domain("c", "3")]
    logs.classic_checkpoint(store, 0, state)
    assert set(load_snapshot(utc_context(store)).domain_metadata) == {"c"}
    logs.commit(store, 3, logs.domain("a", "4"))
    assert load_snapshot(utc_context(store)).domain_metadata["a"].configuration == "4"


@pytest.mark.protocol("REC-03", "REC-05", "ADD-04", "ADD-08", "D-18")
def test_one_path_with_several_vectors() -> None:
    store = logs.table_of(
        [logs.add("f")],
        [logs.remove("f"), logs.add("f", deletionVector=logs.vector("one"))],
        [
            logs.remove("f", deletionVector=logs.vector("one")),
            logs.add("f", deletionVector=logs.vector("two")),
        ],
    )
    snapshot = load_snapshot(utc_context(store))
    (live,) = snapshot.files(["path", "deletionVector"]).to_pylist()
    assert live["deletionVector"]["pathOrInlineDv"] == "two"
    dead = snapshot.tombstones(["path", "deletionVector"]).to_pylist()
    assert [row["deletionVector"] and row["deletionVector"]["pathOrInlineDv"] for row in dead] == [
        None,
        "one",
    ]


@pytest.mark.protocol("LOG-05", "D-19")
def test_the_order_of_lines_is_irrelevant() -> None:
    commits = [
        [logs.add("a"), logs.add("b"), logs.txn("x", 1)],
        [logs.remove("a"), logs.add("c"), logs.add("d"), logs.remove("d"), logs.domain("k")],
    ]
    seen = set()
    for seed in range(6):
        shuffled = [random.Random(seed).sample(lines, len(lines)) for lines in commits]
        snapshot = load_snapshot(utc_context(logs.table_of(*shuffled)))
        seen.add((frozenset(paths(snapshot)), frozenset(gone(snapshot))))
    assert seen == {(frozenset("bc"), frozenset("ad"))}


@pytest.mark.protocol("D-06")
def test_a_raw_spelling_removes_the_encoded_one() -> None:
    store = logs.table_of([logs.add("a%20b"), logs.add("c")], [logs.remove("a b")])
    assert paths(load_snapshot(utc_context(store))) == ["c"]
    rooted = logs.table_of([logs.add("d"), logs.add("e")])
    logs.commit(rooted, 1, logs.remove(f"{rooted.root}/d"))
    assert paths(load_snapshot(utc_context(rooted))) == ["e"]


@pytest.mark.protocol("D-71")
def test_empty_tables_and_commits() -> None:
    store = logs.table_of([], [{"commitInfo": {}}])
    store.put("_delta_log/00000000000000000002.json", b"\n")
    snapshot = load_snapshot(utc_context(store))
    assert snapshot.version == 2
    files = snapshot.files()
    assert (files.num_rows, files.schema) == (0, FILE_SCHEMA)
    assert snapshot.tombstones().num_rows == 0
    assert dict(snapshot.app_transactions) == {}


@pytest.mark.protocol("OV-04")
def test_a_held_snapshot_does_not_change() -> None:
    store = logs.table_of([logs.add("a")], [logs.add("b")])
    held = load_snapshot(utc_context(store))
    logs.commit(store, 2, logs.remove("a"))
    assert paths(held) == ["a", "b"]
    assert held.version == 1


@pytest.mark.protocol("OV-06")
def test_a_copied_table_is_the_same_table() -> None:
    store = logs.table_of([logs.add("a"), logs.add("b")], [logs.remove("a")])
    copy = logs.DictStore(dict(store.files), root="s3://other/place")
    assert paths(load_snapshot(utc_context(copy))) == paths(load_snapshot(utc_context(store)))


@pytest.mark.protocol("D-62", "TXN-01")
def test_expired_transactions_are_hidden() -> None:
    recent = now_ms() - 1000
    actions = [logs.txn("old", 1, 5), logs.txn("new", 2, recent), logs.txn("undated", 3)]
    store = logs.table_of(actions)
    assert set(load_snapshot(utc_context(store)).app_transactions) == {"old", "new", "undated"}
    setting = {"delta.setTransactionRetentionDuration": "interval 1 hour"}
    logs.commit(store, 1, logs.metadata(configuration=setting))
    assert set(load_snapshot(utc_context(store)).app_transactions) == {"new", "undated"}


@pytest.mark.protocol("B-72", "ROWID-20", "HWM-01", "HWM-02")
def test_the_mark_is_read_in_both_forms() -> None:
    domain = logs.domain("delta.rowTracking", '{"rowIdHighWaterMark":7}')
    mark = {"rowIdHighWaterMark": {"highWaterMark": 5, "preservedRowIds": True}}
    assert load_snapshot(utc_context(logs.table_of([domain]))).row_id_high_water_mark == 7
    assert load_snapshot(utc_context(logs.table_of([mark]))).row_id_high_water_mark == 5
    assert load_snapshot(utc_context(logs.table_of([mark, domain]))).row_id_high_water_mark == 7
    store = logs.table_of([])
    logs.classic_checkpoint(store, 0, [logs.PROTOCOL, logs.metadata(), mark])
    assert load_snapshot(utc_context(store)).row_id_high_water_mark == 5
    logs.v2_checkpoint(store, 0, [logs.PROTOCOL, logs.metadata(), domain])
    assert load_snapshot(utc_context(store)).row_id_high_water_mark == 7
    drafted = logs.domain("delta.rowTracking", {"rowIdHighWaterMark": "9"})
    assert load_snapshot(utc_context(logs.table_of([drafted]))).row_id_high_water_mark == 9
    odd = logs.domain("delta.rowTracking", '{"rowIdHighWaterMark":"many"}')
    with pytest.raises(MalformedLogError, match="many"):
        _ = load_snapshot(utc_context(logs.table_of([odd]))).row_id_high_water_mark


def test_a_pickled_snapshot_reads_again() -> None:
    store = logs.table_of([logs.add("a")], [logs.add("b"), logs.remove("a")])
    logs.classic_checkpoint(store, 0, [logs.PROTOCOL, logs.metadata(), logs.add("a")])
    snapshot = load_snapshot(utc_context(store))
    assert paths(snapshot) == ["b"]
    small = pickle.dumps(snapshot)
    copy: Snapshot = pickle.loads(small)
    assert (copy.version, copy.protocol, copy.metadata) == (1, snapshot.protocol, snapshot.metadata)
    assert paths(copy) == ["b"]
    assert b"\0\0\0\0\0\0\0\0" * 8 not in small


@pytest.mark.protocol("B-22")
def test_the_time_of_a_commit_of_our_own_is_that_of_its_file() -> None:
    files = table()
    store = CountingStore(files)
    committed = commit(pending(store, new_file("a"))).snapshot
    files.times_ms[commit_path(1)] = 1234
    assert committed.commit_timestamp_ms == 1234
    loaded = load_snapshot(utc_context(store))
    store.reset()
    assert loaded.commit_timestamp_ms == 1234
    assert store.counts == {}


@pytest.mark.protocol("B-22")
def test_a_pickled_snapshot_of_our_own_commit_has_its_in_commit_time() -> None:
    store = table(
        features=("inCommitTimestamp",), configuration={"delta.enableInCommitTimestamps": "true"}
    )
    committed = commit(pending(store, new_file("a"))).snapshot
    copy: Snapshot = pickle.loads(pickle.dumps(committed))
    assert copy.commit_timestamp_ms == commit_info_of(store, 1)["inCommitTimestamp"]


def test_threads_get_equal_answers() -> None:
    store = logs.table_of(*[[logs.add(f"f{n}", size=n)] for n in range(20)])
    snapshot = load_snapshot(utc_context(store))
    names = [["path"], ["size"], ["path", "size"], ["stats"]] * 8
    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(snapshot.files, names))
    assert {table.num_rows for table in tables} == {20}
    assert snapshot.files(["path", "size"]).column("size").to_pylist() == list(range(20))
