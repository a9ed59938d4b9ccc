"""What a commit looks like: beside what Delta Spark writes, line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deltalog.log.context import utc_context
from deltalog.log.names import commit_path
from deltalog.log.snapshot import load_snapshot
from deltalog.protocol.actions import AddCDCFile
from deltalog.transaction import (
    PendingTransaction,
    commit,
)
from tests.support.logs import DictStore
from tests.support.transactions import (
    NOW_MS,
    actions_of,
    commit_info_of,
    new_file,
    of_kind,
    pending,
    table,
)


@pytest.mark.protocol("LOG-09", "OV-02", "LOG-01", "LOG-02")
def test_a_new_table_gets_protocol_and_metadata_at_version_0() -> None:
    store = DictStore()
    configuration = load_snapshot(utc_context(table())).configuration
    tx = PendingTransaction(
        utc_context(store), None, operation="CREATE TABLE", configuration=configuration
    )
    committed = commit(tx)
    kinds = [next(iter(action)) for action in actions_of(store, 0)]
    assert kinds == ["commitInfo", "metaData", "protocol"]
    assert "readVersion" not in commit_info_of(store, 0)
    assert list(store.files) == [commit_path(0), "_delta_log/00000000000000000000.crc"]
    assert committed.version == committed.snapshot.version == 0
    assert committed.snapshot.files().num_rows == 0


@pytest.mark.protocol("CDC-01")
def test_change_files_are_named() -> None:
    store = table()
    tx = pending(store)
    tx.add_changes([AddCDCFile(path="_change_data/a b", partition_values={}, size_bytes=3)])
    commit(tx)
    assert of_kind(store, 1, "cdc") == [
        {"path": "_change_data/a%20b", "partitionValues": {}, "size": 3, "dataChange": False}
    ]


# In-commit timestamps.

TIMES = {"delta.enableInCommitTimestamps": "true"}


@pytest.mark.protocol("B-22", "D-52")
@pytest.mark.parametrize("clock_ms", [NOW_MS - 10_000, NOW_MS + 5000])
def test_commit_times_grow_whatever_the_clock_says(clock_ms: int) -> None:
    store = table(features=("inCommitTimestamp",), configuration=TIMES)
    tx = pending(store, new_file("x.parquet"))
    tx.context.clock.time_ms = clock_ms  # type: ignore[attr-defined]  # a SteadyClock
    committed = commit(tx)
    info = commit_info_of(store, 1)
    assert next(iter(info)) == "inCommitTimestamp"
    assert info["inCommitTimestamp"] == max(NOW_MS + 1, info["timestamp"])
    assert committed.snapshot.commit_timestamp_ms == info["inCommitTimestamp"]
    assert load_snapshot(utc_context(store)).commit_timestamp_ms == info["inCommitTimestamp"]


def _with_properties(tx: PendingTransaction, **changes: str) -> None:
    found = tx.configuration
    texts = {**found.metadata.configuration, **changes}
    protocol = found.protocol
    if "inCommitTimestamp" not in (protocol.writer_features or ()):
        features = ("inCommitTimestamp", *(protocol.writer_features or ()))
        protocol = replace(protocol, min_writer_version=7, writer_features=features)
    metadata = replace(found.metadata, configuration=texts)
    tx.set_configuration(type(found)(protocol, metadata))


@pytest.mark.protocol("B-22")
def test_switching_times_on_is_remembered() -> None:
    store = table([])
    store.times_ms["_delta_log/00000000000000000001.json"] = NOW_MS + 90_000  # after the clock
    tx = pending(store)
    _with_properties(tx, **TIMES)
    commit(tx)
    [metadata] = of_kind(store, 2, "metaData")
    own_ms = commit_info_of(store, 2)["inCommitTimestamp"]
    assert own_ms == NOW_MS + 90_001
    assert metadata["configuration"] == TIMES | {
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": str(own_ms),
    }


@pytest.mark.protocol("B-22")
def test_switching_times_on_after_a_lost_race_names_the_version_that_it_got() -> None:
    store = table(features=("appendOnly",))
    tx = pending(store)
    _with_properties(tx, **TIMES)
    commit(pending(store, new_file("first.parquet")))
    commit(tx)
    [metadata] = of_kind(store, 2, "metaData")
    assert metadata["configuration"]["delta.inCommitTimestampEnablementVersion"] == "2"


@pytest.mark.protocol("B-22")
def test_other_changes_keep_since_when_times_count_and_switching_off_forgets_it() -> None:
    store = table()
    tx = pending(store)
    _with_properties(tx, **TIMES)
    commit(tx)
    since = of_kind(store, 1, "metaData")[0]["configuration"]
    tx = pending(store)
    found = tx.configuration
    tx.set_configuration(
        type(found)(found.protocol, replace(found.metadata, configuration=TIMES | {"a": "b"}))
    )
    commit(tx)
    assert of_kind(store, 2, "metaData")[0]["configuration"] == since | {"a": "b"}
    tx = pending(store)
    _with_properties(tx, **{"delta.enableInCommitTimestamps": "false"})
    commit(tx)
    assert of_kind(store, 3, "metaData")[0]["configuration"] == {
        "a": "b",
        "delta.enableInCommitTimestamps": "false",
    }
    assert "inCommitTimestamp" not in commit_info_of(store, 3)


@pytest.mark.protocol("B-22")
def test_a_table_that_begins_with_times_remembers_nothing() -> None:
    store = DictStore()
    configuration = load_snapshot(
        utc_context(table(features=("inCommitTimestamp",), configuration=TIMES))
    ).configuration
    commit(
        PendingTransaction(
            utc_context(store), None, operation="CREATE TABLE", configuration=configuration
        )
    )
    assert of_kind(store, 0, "metaData")[0]["configuration"] == TIMES
    assert "inCommitTimestamp" in commit_info_of(store, 0)
