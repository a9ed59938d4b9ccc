"""Who may pass whom: the table of rules, against hand-written winners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

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
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.protocol.actions import DomainMetadata
from deltalog.transaction import AppTransaction, PendingTransaction, commit
from tests.support.conflicting import (
    FEATURES,
    added,
    append,
    delete,
    outcome,
    two_partitions,
    won,
)
from tests.support.logs import (
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
from tests.support.transactions import new_file, pending, table


def _set_domain(tx: PendingTransaction) -> None:
    tx.set_domain(DomainMetadata(domain="mine", configuration="1"))


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
    error = outcome(
        two_partitions(level), lambda tx: delete(tx, "p = 'x'"), added(partition), blind=blind
    )
    assert isinstance(error, ConcurrentAppendError) == loses
    assert error is None or loses


@pytest.mark.protocol("D-35")
@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_write_serializable_minds_blind_appends_if_the_metadata_changes(level: str) -> None:
    def stage(tx: PendingTransaction) -> None:
        delete(tx, "p = 'x'")
        found = tx.configuration
        changed = {**found.metadata.configuration, "a": "b"}
        tx.set_configuration(
            type(found)(found.protocol, replace(found.metadata, configuration=changed))
        )

    error = outcome(two_partitions(level), stage, added("x"), blind=True)
    assert isinstance(error, ConcurrentAppendError)


@pytest.mark.protocol("D-34")
def test_two_that_set_the_metadata_conflict_however_harmless_the_first() -> None:
    def stage(tx: PendingTransaction) -> None:
        append(tx)
        found = tx.configuration
        tx.set_configuration(
            type(found)(found.protocol, replace(found.metadata, description="mine"))
        )

    store = two_partitions("Serializable")
    before = load_snapshot(utc_context(store)).metadata
    same = metadata(
        id=before.id,
        partitionColumns=["p"],
        configuration=dict(before.configuration),
        createdTime=before.created_time_ms,
    )
    assert outcome(two_partitions("Serializable"), append, same) is None
    error = outcome(store, stage, same)
    assert isinstance(error, MetadataChangedError)
    assert "both set" in str(error)


@pytest.mark.protocol("D-35")
def test_files_without_data_change_are_minded_too() -> None:
    winner = add("new.parquet", partitionValues={"p": "x"}, dataChange=False)
    error = outcome(
        two_partitions(), lambda tx: delete(tx, "p = 'x'"), winner, operation="OPTIMIZE"
    )
    assert isinstance(error, ConcurrentAppendError)


@pytest.mark.protocol("D-36")
@pytest.mark.parametrize(
    ("stage", "kind"),
    [
        (lambda tx: delete(tx, "p = 'x'"), ConcurrentDeleteReadError),
        (lambda tx: delete(tx, "p = 'y'", "y.parquet"), None),
        (append, None),
    ],
    ids=["same file", "another file", "blind append"],
)
def test_a_removed_file_that_was_read(
    stage: Callable[[PendingTransaction], None], kind: type[Exception] | None
) -> None:
    error = outcome(two_partitions(), stage, remove("x.parquet"), operation="DELETE")
    assert type(error) is (kind or type(None))


@pytest.mark.protocol("D-36")
def test_any_removed_file_if_the_whole_table_was_read() -> None:
    error = outcome(two_partitions(), lambda tx: tx.record_read(None), remove("y.parquet"))
    assert isinstance(error, ConcurrentDeleteReadError)
    assert error.files == ("y.parquet",)


@pytest.mark.protocol("D-36")
@pytest.mark.parametrize("spelling", ["x.parquet", "memory://table/x.parquet"])
@pytest.mark.parametrize("dv", [{}, {"deletionVector": vector("ab^-aqEH.-t@S}K{vb[*k^")}])
def test_a_file_removed_twice_by_path_whatever_its_vector(spelling: str, dv: Json) -> None:
    def stage(tx: PendingTransaction) -> None:
        delete(tx, "p = 'x'")
        tx.read_set = type(tx.read_set)()  # it only removes

    error = outcome(two_partitions(), stage, remove(spelling, **dv), operation="DELETE")
    assert isinstance(error, ConcurrentDeleteDeleteError)


@pytest.mark.protocol("D-34", "TXN-02")
@pytest.mark.parametrize(("app", "loses"), [("mine", True), ("other", False)])
def test_the_same_application(app: str, loses: bool) -> None:
    def stage(tx: PendingTransaction) -> None:
        append(tx)
        tx.set_app_transaction(AppTransaction("mine", 5))

    error = outcome(two_partitions(), stage, txn(app, 4))
    assert isinstance(error, ConcurrentTransactionError) == loses


@pytest.mark.protocol("D-34", "DOM-02")
@pytest.mark.parametrize(("name", "loses"), [("mine", True), ("other", False)])
def test_the_same_domain(name: str, loses: bool) -> None:
    error = outcome(two_partitions(), _set_domain, domain(name))
    assert isinstance(error, DomainMetadataConflictError) == loses


@pytest.mark.protocol("D-34", "DOM-02")
def test_row_tracking_s_domain_is_merged() -> None:
    store = two_partitions(features=("rowTracking", "domainMetadata"))
    mark = '{"rowIdHighWaterMark":9}'
    assert outcome(store, append, domain("delta.rowTracking", mark)) is None


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
    error = outcome(two_partitions(), append, _protocol(*features))
    assert isinstance(error, ProtocolChangedError) == loses


@pytest.mark.protocol("D-34")
def test_both_changed_the_protocol() -> None:
    def stage(tx: PendingTransaction) -> None:
        found = tx.configuration
        features = (*(found.protocol.writer_features or ()), "changeDataFeed")
        tx.set_configuration(
            type(found)(replace(found.protocol, writer_features=features), found.metadata)
        )

    error = outcome(two_partitions(), stage, _protocol(*FEATURES, "checkConstraints"))
    assert isinstance(error, ProtocolChangedError)


@pytest.mark.protocol("D-34")
def test_a_protocol_that_nobody_here_knows() -> None:
    store = two_partitions()
    tx = pending(store, new_file("mine.parquet"))
    won(store, _protocol(*FEATURES, "fromTheFuture"))
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        commit(tx)


@pytest.mark.protocol("D-33")
def test_of_several_faults_the_first_in_order_is_told() -> None:
    def stage(tx: PendingTransaction) -> None:
        delete(tx, "p = 'x'")
        _set_domain(tx)
        tx.set_app_transaction(AppTransaction("mine", 5))

    faults: list[tuple[Json, type[CommitConflictError]]] = [
        (_protocol(*FEATURES[1:]), ProtocolChangedError),
        (metadata(description="changed"), MetadataChangedError),
        (domain("mine"), DomainMetadataConflictError),
        (txn("mine", 4), ConcurrentTransactionError),
        (added("x"), ConcurrentAppendError),
        (remove("x.parquet"), ConcurrentDeleteReadError),
    ]
    for first in range(len(faults)):
        error = outcome(two_partitions(), stage, *(action for action, _ in faults[first:][::-1]))
        assert type(error) is faults[first][1]


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

    assert isinstance(outcome(two_partitions(), stage, added("y")), ProtocolChangedError)
