"""Version checksums: carried on from commit to commit they equal what counting gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.log import names
from deltalog.log.checksum import encode_checksum, parse_checksum
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.testing import CountingStore
from deltalog.transaction.maintenance.checksum import count_checksum, read_checksum, write_checksum
from tests.support import logs
from tests.support.examples import examples
from tests.support.logs import DictStore, Json

PROTOCOL: Json = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "domainMetadata"],
    }
}


SIZES = [0, 1, 8191, 8192, 2**20, 2**38, 2**41]


def crc(store: DictStore, version: int) -> Any:
    return parse_checksum(store.files[names.log_path(names.checksum_name(version))])


def vector(cardinality: int) -> Json:
    return {**logs.vector(f"v{cardinality}"), "cardinality": cardinality}


@pytest.mark.protocol("B-19")
def test_the_first_version_is_counted_and_later_ones_are_carried_on() -> None:
    store = DictStore()
    first = [PROTOCOL, logs.metadata(), logs.txn("app", 1), logs.domain("d")]
    logs.commit(store, 0, *first, logs.add("a", size=10), logs.add("b", size=10_000))
    write_checksum(load_snapshot(utc_context(store)), txn_id="one")
    marked = vector(3)
    removed = logs.remove("a", size=10)
    logs.commit(
        store, 1, removed, logs.add("a", size=10, deletionVector=marked), logs.txn("app", 2)
    )
    write_checksum(load_snapshot(utc_context(store)))
    zero, one = crc(store, 0), crc(store, 1)
    assert (zero.txn_id, one.txn_id) == ("one", None)
    assert (one.table_size_bytes, one.num_files) == (10_010, 2)
    assert (one.num_deleted_records, one.num_deletion_vectors) == (3, 1)
    assert one.deleted_record_counts == (1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
    assert [(txn.app_id, txn.version) for txn in one.set_transactions] == [("app", 2)]
    assert [domain.domain for domain in one.domain_metadata] == ["d"]
    assert one.file_size_histogram["fileCounts"][:3] == [1, 1, 0]
    assert one.file_size_histogram["totalBytes"][:3] == [10, 10_000, 0]


@pytest.mark.protocol("B-19", "D-53")
@given(data=st.data())
@settings(max_examples=examples(40))
def test_what_is_carried_on_is_what_counting_gives(data: st.DataObject) -> None:
    store = DictStore()
    logs.commit(store, 0, PROTOCOL, logs.metadata())
    write_checksum(load_snapshot(utc_context(store)))
    live: dict[str, Json] = {}
    for version in range(1, data.draw(st.integers(2, 6))):
        gone = data.draw(st.lists(st.sampled_from(sorted(live)), unique=True)) if live else []
        removes = []
        for path in gone:
            members = live.pop(path)
            kept = {key: value for key, value in members.items() if key != "modificationTime"}
            removes.append(logs.remove(path, **kept))
        fresh = {f"{version}-{n}" for n in range(data.draw(st.integers(0, 3)))}
        for path in sorted(fresh):
            cardinality = data.draw(st.none() | st.sampled_from([0, 1, 9, 10, 10**9, 2**31]))
            live[path] = {"size": data.draw(st.sampled_from(SIZES))}
            if cardinality is not None:
                live[path]["deletionVector"] = vector(cardinality)
        adds = [logs.add(path, **live[path]) for path in sorted(fresh)]
        logs.commit(store, version, *removes, *adds)
        snapshot = load_snapshot(utc_context(store))
        assert write_checksum(snapshot) == count_checksum(snapshot)
        assert crc(store, version) == count_checksum(snapshot)


@pytest.mark.protocol("B-19", "D-53")
@pytest.mark.parametrize(
    "actions",
    [
        [logs.add("a", dataChange=False)],  # new statistics of a live file
        [logs.remove("a")],  # nobody knows its size
        [logs.remove("deletion_vector_x.bin", size=1, dataChange=False)],  # never was a file
        [logs.remove("x", size=10**6), logs.add("y")],  # more bytes than there were
    ],
)
def test_where_a_commit_does_not_tell_there_is_no_checksum(actions: list[Json]) -> None:
    store = DictStore()
    logs.commit(store, 0, PROTOCOL, logs.metadata(), logs.add("a"))
    write_checksum(load_snapshot(utc_context(store)))
    logs.commit(store, 1, *actions)
    assert write_checksum(load_snapshot(utc_context(store))) is None
    assert names.log_path(names.checksum_name(1)) not in store.files
    assert write_checksum(load_snapshot(utc_context(store)), whole=True) == crc(store, 1)


@pytest.mark.protocol("D-53")
@pytest.mark.parametrize("damage", [None, b"", b"{", b'{"tableSizeBytes":1}'])
def test_a_checksum_that_is_missing_or_damaged_is_not_carried_on(damage: bytes | None) -> None:
    store = DictStore()
    logs.commit(store, 0, PROTOCOL, logs.metadata())
    if damage is not None:
        store.put(names.log_path(names.checksum_name(0)), damage)
    logs.commit(store, 1, logs.add("a"))
    assert write_checksum(load_snapshot(utc_context(store))) is None
    assert load_snapshot(utc_context(store)).num_files == 1


def test_a_checksum_that_is_there_stays() -> None:
    store = DictStore()
    logs.commit(store, 0, PROTOCOL, logs.metadata())
    path = names.log_path(names.checksum_name(0))
    store.put(path, b"another writer's")
    write_checksum(load_snapshot(utc_context(store)))
    assert store.files[path] == b"another writer's"


@pytest.mark.protocol("B-19", "D-62")
def test_remembered_transactions_are_left_out_where_they_expire() -> None:
    store = DictStore()
    retention = {"delta.setTransactionRetentionDuration": "interval 1 day"}
    logs.commit(store, 0, PROTOCOL, logs.metadata(configuration=retention), logs.txn("app", 1))
    write_checksum(load_snapshot(utc_context(store)))
    assert crc(store, 0).set_transactions is None


@pytest.mark.protocol("B-22")
def test_the_commits_own_time_stands_in_its_checksum() -> None:
    store = DictStore()
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7}
    lists = {"writerFeatures": ["inCommitTimestamp"]}
    enabled = {"delta.enableInCommitTimestamps": "true"}
    info: Json = {"commitInfo": {"inCommitTimestamp": 77}}
    metadata = logs.metadata(configuration=enabled)
    logs.commit(store, 0, info, {"protocol": {**protocol, **lists}}, metadata)
    write_checksum(load_snapshot(utc_context(store)))
    assert crc(store, 0).in_commit_timestamp_ms == 77


def test_carrying_on_reads_no_files_of_the_table() -> None:
    store = DictStore()
    logs.commit(store, 0, PROTOCOL, logs.metadata(), *[logs.add(f"f{n}") for n in range(50)])
    previous = write_checksum(load_snapshot(utc_context(store)))
    assert previous is not None
    logs.commit(store, 1, logs.add("g"))
    counting = CountingStore(store)
    snapshot = load_snapshot(utc_context(counting))
    snapshot.files(["size"])
    counting.reset()
    write_checksum(snapshot, previous=previous)
    assert counting.counts == {"put_if_absent": 1}
    assert read_checksum(load_snapshot(utc_context(store)), 1) == count_checksum(
        load_snapshot(utc_context(store))
    )


def test_what_is_written_is_what_is_read() -> None:
    store = DictStore()
    logs.commit(store, 0, PROTOCOL, logs.metadata(), logs.add("a", deletionVector=vector(2)))
    counted = count_checksum(load_snapshot(utc_context(store)))
    assert parse_checksum(encode_checksum(counted)) == counted
