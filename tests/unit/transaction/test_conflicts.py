"""Who may pass whom: the table of rules, against hand-written winners."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from deltalog.actions import DomainMetadata
from deltalog.context import utc_context
from deltalog.errors import (
    CommitConflictError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    DomainMetadataConflictError,
    MetadataChangedError,
    ProtocolChangedError,
    UnsupportedFeatureError,
)
from deltalog.snapshot import load_snapshot
from deltalog.transaction import AppTransaction, PendingTransaction, commit
from tests.support.logs import (
    SCHEMA,
    DictStore,
    Json,
    add,
    domain,
    metadata,
    remove,
    txn,
    vector,
)
from tests.support.logs import (
    commit as write_commit,
)
from tests.support.transactions import NOW_MS, condition, new_file, pending, table

ADDS = [add("x.parquet", partitionValues={"p": "x"}), add("y.parquet", partitionValues={"p": "y"})]
FEATURES = ("domainMetadata", "appendOnly", "invariants")


def _table(level: str = "Serializable", features: tuple[str, ...] = FEATURES) -> DictStore:
    return table(
        ADDS,
        features=features,
        configuration={"delta.isolationLevel": level},
        partitionColumns=["p"],
    )


def _won(store: DictStore, *actions: Json, operation: str = "WRITE", blind: bool = False) -> None:
    """A commit of somebody else at version 2."""
    info = {"commitInfo": {"operation": operation, "isBlindAppend": blind}}
    write_commit(store, 2, info, *actions, time_ms=NOW_MS + 2)


def _delete(tx: PendingTransaction, where: str | None, path: str = "x.parquet") -> None:
    """Reads what matches, and removes one file."""
    assert tx.snapshot is not None
    files = tx.snapshot.files()
    files = files.filter([found == path for found in files.column("path").to_pylist()])
    tx.operation = "DELETE"
    tx.read(None if where is None else condition(where, tx.snapshot), files)
    tx.remove_files(files, data_change=True)


def _append(tx: PendingTransaction) -> None:
    tx.add_files([new_file("mine.parquet", partition_values={"p": "x"})])


def _set_domain(tx: PendingTransaction) -> None:
    tx.set_domain(DomainMetadata(domain="mine", configuration="1"))


def _outcome(
    store: DictStore, stage: Callable[[PendingTransaction], None], *winner: Json, **of_winner: Any
) -> CommitConflictError | None:
    tx = pending(store)
    stage(tx)
    _won(store, *winner, **of_winner)
    try:
        committed = commit(tx)
    except CommitConflictError as error:
        return error
    assert committed.version == 3
    assert committed.num_retries == 1
    return None


def _added(partition: str) -> Json:
    return add("new.parquet", partitionValues={"p": partition}, stats='{"numRecords":1}')


APPENDS = [
    # level, is the winner blind, its partition, does a delete where p = 'x' lose
    ("Serializable", True, "x", True),
    ("Serializable", False, "x", True),
    ("Serializable", True, "y", False),
    ("WriteSerializable", True, "x", False),
    ("WriteSerializable", False, "x", True),
    ("WriteSerializable", False, "y", False),
    ("SnapshotIsolation", True, "x", False),
    ("SnapshotIsolation", False, "x", False),
    ("SnapshotIsolation", False, "y", False),
]


@pytest.mark.protocol("D-35", "OV-05")
@pytest.mark.parametrize(("level", "blind", "partition", "loses"), APPENDS)
def test_a_delete_and_an_append(level: str, blind: bool, partition: str, loses: bool) -> None:
    error = _outcome(
        _table(level), lambda tx: _delete(tx, "p = 'x'"), _added(partition), blind=blind
    )
    assert isinstance(error, ConcurrentAppendError) == loses
    assert error is None or loses


@pytest.mark.protocol("D-35")
@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_write_serializable_minds_blind_appends_if_the_metadata_changes(level: str) -> None:
    def stage(tx: PendingTransaction) -> None:
        _delete(tx, "p = 'x'")
        found = tx.configuration
        changed = {**found.metadata.configuration, "a": "b"}
        tx.set_configuration(
            type(found)(found.protocol, replace(found.metadata, configuration=changed))
        )

    error = _outcome(_table(level), stage, _added("x"), blind=True)
    assert isinstance(error, ConcurrentAppendError)


@pytest.mark.protocol("D-35")
def test_the_whole_table_was_read() -> None:
    error = _outcome(_table(), lambda tx: _delete(tx, None), _added("y"), blind=True)
    assert isinstance(error, ConcurrentAppendError)


@pytest.mark.protocol("D-35")
@pytest.mark.parametrize(("stats", "loses"), [('{"numRecords":1,"minValues":{"id":7}}', False),
                                              ('{"numRecords":1,"minValues":{"id":2}}', True),
                                              (None, True)])  # fmt: skip
def test_statistics_tell_that_an_added_file_would_not_have_been_read(
    stats: str | None, loses: bool
) -> None:
    winner = add("new.parquet", partitionValues={"p": "x"}, stats=stats)
    error = _outcome(_table(), lambda tx: _delete(tx, "id < 5"), winner)
    assert isinstance(error, ConcurrentAppendError) == loses


@pytest.mark.protocol("D-35")
def test_files_without_data_change_are_minded_too() -> None:
    winner = add("new.parquet", partitionValues={"p": "x"}, dataChange=False)
    error = _outcome(_table(), lambda tx: _delete(tx, "p = 'x'"), winner, operation="OPTIMIZE")
    assert isinstance(error, ConcurrentAppendError)


@pytest.mark.protocol("D-35")
def test_rearranging_rows_is_no_reader_of_appends() -> None:
    def compact(tx: PendingTransaction) -> None:
        assert tx.snapshot is not None
        files = tx.snapshot.files()
        tx.read(None, None)
        tx.read_set = type(tx.read_set)().with_files(files)
        tx.remove_files(files, data_change=False)
        tx.add_files([new_file("compact.parquet", data_change=False, partition_values={"p": "x"})])

    assert _outcome(_table(), compact, _added("x"), blind=True) is None


@pytest.mark.protocol("D-36")
@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        (lambda tx: _delete(tx, "p = 'x'"), ConcurrentDeleteReadError),
        (lambda tx: _delete(tx, "p = 'y'", "y.parquet"), None),
        (_append, None),
    ],
    ids=["same file", "another file", "blind append"],
)
def test_a_removed_file_that_was_read(
    stage: Callable[[PendingTransaction], None], kind: type[Exception] | None
) -> None:
    error = _outcome(_table(), stage, remove("x.parquet"), operation="DELETE")
    assert type(error) is (kind or type(None))


@pytest.mark.protocol("D-36")
def test_any_removed_file_if_the_whole_table_was_read() -> None:
    error = _outcome(_table(), lambda tx: tx.read(None), remove("y.parquet"))
    assert isinstance(error, ConcurrentDeleteReadError)
    assert error.files == ("y.parquet",)


@pytest.mark.protocol("D-36")
@pytest.mark.parametrize("spelling", ["x.parquet", "memory://table/x.parquet"])
@pytest.mark.parametrize("dv", [{}, {"deletionVector": vector("ab^-aqEH.-t@S}K{vb[*k^")}])
def test_a_file_removed_twice_by_path_whatever_its_vector(spelling: str, dv: Json) -> None:
    def stage(tx: PendingTransaction) -> None:
        _delete(tx, "p = 'x'")
        tx.read_set = type(tx.read_set)()  # it only removes

    error = _outcome(_table(), stage, remove(spelling, **dv), operation="DELETE")
    assert isinstance(error, ConcurrentDeleteDeleteError)


@pytest.mark.protocol("D-34", "TXN-02")
@pytest.mark.parametrize(("app", "loses"), [("mine", True), ("other", False)])
def test_the_same_application(app: str, loses: bool) -> None:
    def stage(tx: PendingTransaction) -> None:
        _append(tx)
        tx.set_app_transaction(AppTransaction("mine", 5))

    error = _outcome(_table(), stage, txn(app, 4))
    assert isinstance(error, ConcurrentTransactionError) == loses


@pytest.mark.protocol("D-34", "DOM-02")
@pytest.mark.parametrize(("name", "loses"), [("mine", True), ("other", False)])
def test_the_same_domain(name: str, loses: bool) -> None:
    error = _outcome(_table(), _set_domain, domain(name))
    assert isinstance(error, DomainMetadataConflictError) == loses


@pytest.mark.protocol("D-34", "DOM-02")
def test_row_tracking_s_domain_is_merged() -> None:
    store = _table(features=("rowTracking", "domainMetadata"))
    mark = '{"rowIdHighWaterMark":9}'
    assert _outcome(store, _append, domain("delta.rowTracking", mark)) is None


def _protocol(*features: str) -> Json:
    return {
        "protocol": {
            "minReaderVersion": 1,
            "minWriterVersion": 7,
            "writerFeatures": list(features),
        }
    }


@pytest.mark.protocol("D-34")
@pytest.mark.parametrize(
    ("features", "loses"),
    [
        ((*FEATURES, "changeDataFeed"), False),
        ((*FEATURES, "rowTracking"), False),
        ((*FEATURES, "icebergCompatV1"), True),  # asks something of every file
        (FEATURES[1:], True),  # dropped one
    ],
)
def test_a_protocol_that_changed(features: tuple[str, ...], loses: bool) -> None:
    error = _outcome(_table(), _append, _protocol(*features))
    assert isinstance(error, ProtocolChangedError) == loses


@pytest.mark.protocol("D-34")
def test_both_changed_the_protocol() -> None:
    def stage(tx: PendingTransaction) -> None:
        found = tx.configuration
        features = (*(found.protocol.writer_features or ()), "changeDataFeed")
        tx.set_configuration(
            type(found)(replace(found.protocol, writer_features=features), found.metadata)
        )

    error = _outcome(_table(), stage, _protocol(*FEATURES, "checkConstraints"))
    assert isinstance(error, ProtocolChangedError)


@pytest.mark.protocol("D-34")
def test_a_protocol_that_nobody_here_knows() -> None:
    store = _table()
    tx = pending(store, new_file("mine.parquet"))
    _won(store, _protocol(*FEATURES, "fromTheFuture"))
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        commit(tx)


MAPPED = SCHEMA.replace(
    '"name":"id","type":"long","nullable":true,"metadata":{}',
    '"name":"id","type":"long","nullable":true,"metadata":'
    '{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"id"}',
).replace(
    '"name":"p","type":"string","nullable":true,"metadata":{}',
    '"name":"p","type":"string","nullable":true,"metadata":'
    '{"delta.columnMapping.id":2,"delta.columnMapping.physicalName":"p"}',
)
ALL = (*FEATURES, "rowTracking", "inCommitTimestamp", "columnMapping")
ROW_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_a",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_b",
}
OWN_TIMES = {
    "delta.enableInCommitTimestamps": "true",
    "delta.inCommitTimestampEnablementVersion": "2",
    "delta.inCommitTimestampEnablementTimestamp": str(NOW_MS + 2),
}
NAMES = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}


@pytest.mark.protocol("D-34")
@pytest.mark.parametrize(
    ("configuration", "members", "loses"),
    [
        (ROW_TRACKING, {}, False),
        (OWN_TIMES, {}, False),
        (NAMES, {"schemaString": MAPPED}, False),
        ({"delta.enableRowTracking": "false"}, {}, True),
        ({"delta.appendOnly": "true"}, {}, True),
        ({}, {"description": "changed"}, True),
        ({}, {"schemaString": SCHEMA.replace('"id"', '"id2"')}, True),
        (NAMES, {"schemaString": MAPPED.replace('"long"', '"integer"')}, True),
    ],
)
def test_metadata_that_changed(configuration: Json, members: Json, loses: bool) -> None:
    store = _table(features=ALL)
    level = {"delta.isolationLevel": "Serializable"}
    winner = metadata(configuration=level | configuration, partitionColumns=["p"], **members)
    error = _outcome(store, _append, winner, operation="SET TBLPROPERTIES")
    assert isinstance(error, MetadataChangedError) == loses


@pytest.mark.protocol("D-34")
def test_identity_marks_alone_are_no_change_of_metadata() -> None:
    store = _table()
    tx = pending(store, new_file("mine.parquet"))
    tags = {"delta.identity.schemaUpdate": "true"}
    info = {"commitInfo": {"operation": "WRITE", "tags": tags}}
    write_commit(store, 2, info, metadata(schemaString=SCHEMA.replace("{}", '{"a":1}')))
    assert commit(tx).version == 3


@pytest.mark.protocol("D-33")
def test_of_several_faults_the_first_in_order_is_told() -> None:
    def stage(tx: PendingTransaction) -> None:
        _delete(tx, "p = 'x'")
        _set_domain(tx)
        tx.set_app_transaction(AppTransaction("mine", 5))

    faults: list[tuple[Json, type[CommitConflictError]]] = [
        (_protocol(*FEATURES[1:]), ProtocolChangedError),
        (metadata(description="changed"), MetadataChangedError),
        (domain("mine"), DomainMetadataConflictError),
        (txn("mine", 4), ConcurrentTransactionError),
        (_added("x"), ConcurrentAppendError),
        (remove("x.parquet"), ConcurrentDeleteReadError),
    ]
    for first in range(len(faults)):
        error = _outcome(_table(), stage, *(action for action, _ in faults[first:][::-1]))
        assert type(error) is faults[first][1]


@pytest.mark.protocol("D-33")
def test_an_error_names_the_winner_and_travels() -> None:
    error = _outcome(
        _table(), lambda tx: _delete(tx, "p = 'x'"), remove("x.parquet"), operation="MERGE"
    )
    assert error is not None
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.version, copy.operation, copy.files) == (2, "MERGE", ("x.parquet",))
    for part in ("DELETE", "MERGE", "version 2", "x.parquet"):
        assert part in str(copy)


@pytest.mark.protocol("D-34")
def test_a_race_to_create_a_table_has_one_winner() -> None:
    store = DictStore()
    before = load_snapshot(utc_context(table())).configuration
    tx = PendingTransaction(
        utc_context(store), None, operation="CREATE TABLE", configuration=before
    )
    write_commit(store, 0, _protocol(*FEATURES), metadata())
    with pytest.raises(ProtocolChangedError):
        commit(tx)


def test_a_downgrade_is_looked_at_again_after_any_winner() -> None:
    def stage(tx: PendingTransaction) -> None:
        found = tx.configuration
        tx.set_configuration(
            type(found)(replace(found.protocol, writer_features=FEATURES[:2]), found.metadata)
        )

    assert isinstance(_outcome(_table(), stage, _added("y")), ProtocolChangedError)


def test_every_winner_is_judged_not_just_the_first() -> None:
    store = _table()
    tx = pending(store)
    _delete(tx, "p = 'x'")
    _won(store, _added("y"))
    write_commit(store, 3, {"commitInfo": {"operation": "WRITE"}}, _added("x"))
    with pytest.raises(ConcurrentAppendError) as raised:
        commit(tx)
    assert raised.value.version == 3
