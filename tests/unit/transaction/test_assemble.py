"""What a commit looks like: beside what Delta Spark writes, line by line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from deltalog.actions import AddCDCFile, DeletionVectorDescriptor, DomainMetadata
from deltalog.actions.arrow import FILE_SCHEMA
from deltalog.context import utc_context
from deltalog.errors import (
    CatalogManagedError,
    InternalError,
    InvalidInputError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltalog.log.names import commit_path
from deltalog.snapshot import load_snapshot
from deltalog.transaction import (
    AppTransaction,
    CommitProperties,
    PendingTransaction,
    commit,
)
from deltalog.transaction.properties import CommitOptions
from deltalog.write.written import WrittenFiles
from tests.support.logs import DictStore, add, domain, vector
from tests.support.transactions import (
    NOW_MS,
    actions_of,
    commit_info_of,
    new_file,
    of_kind,
    pending,
    table,
)

DV_FEATURES = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
}


def _remove_all(tx: PendingTransaction, *, data_change: bool = True) -> None:
    assert tx.snapshot is not None
    tx.remove_files(tx.snapshot.files(), data_change=data_change)


@pytest.mark.protocol("PROV-01", "B-04", "LOG-03")
def test_a_commit_has_the_members_that_the_reference_writes_in_its_order() -> None:
    store = table()
    tx = pending(
        store,
        new_file("p=a b/x.parquet", partition_values={"p": "a b"}),
        parameters={"mode": "Append", "partitionBy": ["p"], "auto": False, "predicate": None},
    )
    tx.set_metrics({"numFiles": 1, "numOutputRows": "1"})
    commit(tx)
    info, added = actions_of(store, 1)
    txn_id = info["commitInfo"].pop("txnId")
    assert list(info["commitInfo"].items()) == [
        ("timestamp", info["commitInfo"]["timestamp"]),
        ("operation", "WRITE"),
        (
            "operationParameters",
            {"mode": "Append", "partitionBy": '["p"]', "auto": False, "predicate": None},
        ),
        ("readVersion", 0),
        ("isolationLevel", "Serializable"),
        ("isBlindAppend", True),
        ("operationMetrics", {"numFiles": "1", "numOutputRows": "1"}),
        ("engineInfo", "deltalog/0.1.0"),
    ]
    assert len(txn_id) == 36
    assert list(added["add"].items()) == [
        ("path", "p=a%20b/x.parquet"),
        ("partitionValues", {"p": "a b"}),
        ("size", 1),
        ("modificationTime", 1),
        ("dataChange", True),
        ("stats", '{"numRecords":1}'),
    ]


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


@pytest.mark.protocol("REM-01", "REM-02", "ROWID-16", "LOG-04")
def test_a_remove_says_what_the_add_said() -> None:
    members = {
        "partitionValues": {"p": None},
        "tags": {"a": "b"},
        "deletionVector": vector("ab^-aqEH.-t@S}K{vb[*k^"),
        "baseRowId": 3,
        "defaultRowCommitVersion": 1,
        "stats": '{"numRecords":7}',
    }
    store = table([DV_FEATURES, add("a%20b.parquet", **members)])
    tx = pending(store, operation="DELETE")
    _remove_all(tx)
    committed = commit(tx)
    [removed] = of_kind(store, 2, "remove")
    assert removed == {
        "path": "a%20b.parquet",
        "deletionTimestamp": commit_info_of(store, 2)["timestamp"],
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"p": None},
        "size": 1,
        "tags": {"a": "b"},
        "deletionVector": members["deletionVector"],
        "baseRowId": 3,
        "defaultRowCommitVersion": 1,
    }
    assert committed.snapshot.files().num_rows == 0
    assert load_snapshot(utc_context(store)).tombstones(["path"]).num_rows == 1


def test_an_existing_file_is_added_again_with_all_it_has() -> None:
    store = table([DV_FEATURES, add("a%20b.parquet", tags={"k": "v"}, stats='{"numRecords":2}')])
    tx = pending(store, operation="DELETE")
    assert tx.snapshot is not None
    files = tx.snapshot.files()
    dv = vector("ab^-aqEH.-t@S}K{vb[*k^")
    with_vector = files.set_column(
        FILE_SCHEMA.get_field_index("deletionVector"),
        FILE_SCHEMA.field("deletionVector"),
        pa.array([dv], FILE_SCHEMA.field("deletionVector").type),
    )
    tx.remove_files(files, data_change=True)
    tx.add_rows(with_vector)
    commit(tx)
    [added] = of_kind(store, 2, "add")
    assert added == {
        "path": "a%20b.parquet",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
        "stats": '{"numRecords":2}',
        "tags": {"k": "v"},
        "deletionVector": dv,
    }
    assert commit_info_of(store, 2)["isBlindAppend"] is False


@pytest.mark.protocol("LOG-07", "B-02", "B-03")
@pytest.mark.parametrize("case", ["two adds", "two removes", "both", "add again and anew"])
def test_a_commit_names_a_logical_file_once(case: str) -> None:
    store = table([add("a%20b.parquet")])
    tx = pending(store)
    assert tx.snapshot is not None
    files = tx.snapshot.files()
    if case == "two adds":
        tx.add_files([new_file("n"), new_file("n")])
    elif case == "two removes":
        tx.remove_files(files, data_change=True)
        tx.remove_files(files, data_change=True)
    elif case == "both":
        tx.remove_files(files, data_change=True)
        tx.add_files([new_file("a b.parquet")])
    else:
        tx.add_rows(files)
        tx.add_files([new_file("a b.parquet")])
    before = dict(store.files)
    with pytest.raises(InvalidInputError):
        commit(tx)
    assert store.files == before


@pytest.mark.protocol("LOG-07")
def test_a_path_may_leave_and_come_back_with_another_vector() -> None:
    store = table([DV_FEATURES, add("x.parquet")])
    tx = pending(store)
    _remove_all(tx)
    dv = DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv="x", size_bytes=1, cardinality=1
    )
    tx.add_files([new_file("x.parquet", deletion_vector=dv)])
    assert commit(tx).snapshot.num_files == 1


def test_deletion_vectors_need_their_feature() -> None:
    dv = DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv="x", size_bytes=1, cardinality=1
    )
    with pytest.raises(InternalError):
        commit(pending(table(), new_file("x.parquet", deletion_vector=dv)))


@pytest.mark.protocol("LOG-07", "LOG-08", "TXN-01", "DOM-01", "DOM-06")
def test_one_action_for_each_application_and_domain() -> None:
    store = table([domain("gone", "pre-image")], features=("domainMetadata",))
    tx = pending(store)
    tx.set_app_transaction(AppTransaction("a", 1, last_updated=7))
    tx.set_app_transaction(AppTransaction("b", 2))
    with pytest.raises(InvalidInputError, match="one version of an application"):
        tx.set_app_transaction(AppTransaction("a", 2))
    tx.set_domain(DomainMetadata(domain="mine", configuration="1"))
    tx.set_domain(DomainMetadata(domain="mine", configuration="2"))
    tx.remove_domain("gone")
    commit(tx)
    now_ms = commit_info_of(store, 2)["timestamp"]
    assert of_kind(store, 2, "txn") == [
        {"appId": "a", "version": 1, "lastUpdated": 7},
        {"appId": "b", "version": 2, "lastUpdated": now_ms},
    ]
    assert of_kind(store, 2, "domainMetadata") == [
        {"domain": "mine", "configuration": "2", "removed": False},
        {"domain": "gone", "configuration": "pre-image", "removed": True},
    ]
    assert load_snapshot(utc_context(store)).domain_metadata.keys() == {"mine"}


@pytest.mark.protocol("DOM-07")
def test_domains_need_their_feature() -> None:
    tx = pending(table())
    tx.set_domain(DomainMetadata(domain="mine", configuration="1"))
    with pytest.raises(InvalidInputError, match="domainMetadata"):
        commit(tx)
    with pytest.raises(InvalidInputError, match="there is none"):
        tx.remove_domain("other")


@pytest.mark.protocol("DOM-03", "DOM-04", "DOM-05")
def test_domains_of_others_stay() -> None:
    store = table([domain("delta.unknown", "x")], features=("domainMetadata",))
    after = commit(pending(store, new_file("n.parquet"))).snapshot
    assert after.domain_metadata["delta.unknown"].configuration == "x"


@pytest.mark.protocol("APP-02")
@pytest.mark.parametrize(("data_change", "is_refused"), [(True, True), (False, False)])
def test_append_only_tables_lose_no_rows(data_change: bool, is_refused: bool) -> None:
    store = table([add("x.parquet")], configuration={"delta.appendOnly": "true"})
    tx = pending(store, operation="DELETE")
    _remove_all(tx, data_change=data_change)
    if is_refused:
        with pytest.raises(InvalidInputError, match="append-only"):
            commit(tx)
    else:
        assert commit(tx).version == 2


@pytest.mark.protocol("B-62")
def test_a_table_that_cannot_be_written_is_refused() -> None:
    store = table(features=("fromTheFuture",))
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        commit(pending(store, new_file("x.parquet")))
    assert len(store.files) == 1


@pytest.mark.protocol("B-56")
def test_a_table_of_a_catalog_is_refused_without_it() -> None:
    store = table(features=("catalogManaged",))
    with pytest.raises(CatalogManagedError, match="catalog"):
        commit(pending(store, new_file("x.parquet")))


@pytest.mark.parametrize(
    ("data_change", "level"), [(True, "WriteSerializable"), (False, "SnapshotIsolation")]
)
@pytest.mark.protocol("D-35")
def test_the_isolation_level_is_told(data_change: bool, level: str) -> None:
    store = table([add("x.parquet")], configuration={"delta.isolationLevel": "WriteSerializable"})
    tx = pending(store, operation="OPTIMIZE")
    _remove_all(tx, data_change=data_change)
    commit(tx)
    assert commit_info_of(store, 2)["isolationLevel"] == level


def test_custom_metadata_is_kept_and_takes_no_name_of_ours() -> None:
    store = table()
    custom = {"userMetadata": "hello", "job": "7"}
    commit(pending(store), CommitOptions(properties=CommitProperties(custom)))
    assert custom.items() <= commit_info_of(store, 1).items()
    with pytest.raises(InvalidInputError, match="txnId"):
        commit(pending(store), CommitOptions(properties=CommitProperties({"txnId": "x"})))


@pytest.mark.protocol("D-71")
def test_a_commit_of_nothing_is_a_commit() -> None:
    store = table()
    tx = pending(store, operation="Empty Commit")
    assert tx.is_empty
    assert commit(tx).version == 1
    assert len(actions_of(store, 1)) == 1


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


# Files that were written elsewhere.


def _written(tx: PendingTransaction, **members: Any) -> WrittenFiles:
    found = tx.configuration.metadata
    base: dict[str, Any] = {
        "adds": (new_file("w.parquet"),),
        "num_rows": 1,
        "num_bytes": 1,
        "table_id": found.id,
        "schema_string": found.schema_string,
    }
    return WrittenFiles(**base | members)


def test_written_files_are_of_this_table_and_this_schema() -> None:
    tx = pending(table())
    with pytest.raises(InvalidInputError, match="written for the table"):
        tx.add_files(_written(tx, table_id="other"))
    other = tx.configuration.metadata.schema_string.replace('"id"', '"id2"')
    with pytest.raises(SchemaMismatchError, match="changed since"):
        tx.add_files(_written(tx, schema_string=other))
    tx.add_files(_written(tx))
    assert len(tx.adds) == 1


IDENTITY = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":'
    '{"delta.identity.start":1,"delta.identity.step":1,"delta.identity.allowExplicitInsert":'
    "false}}]}"
)


def test_identity_marks_are_remembered_and_said_to_be_all_that_changed() -> None:
    store = table(features=("identityColumns",), schemaString=IDENTITY)
    tx = pending(store)
    tx.add_files(_written(tx, identity_marks={"id": 9}))
    committed = commit(tx)
    [metadata] = of_kind(store, 1, "metaData")
    assert '"delta.identity.highWaterMark":9' in metadata["schemaString"]
    info = commit_info_of(store, 1)
    assert info["tags"] == {"delta.identity.schemaUpdate": "true"}
    assert info["isBlindAppend"] is True
    assert committed.snapshot.metadata.schema_string == metadata["schemaString"]
    # Values that were given before the mark moved may be there already.
    stale = _written(tx, schema_string=IDENTITY, identity_marks={"id": 12})
    with pytest.raises(SchemaMismatchError):
        pending(store).add_files(stale)
