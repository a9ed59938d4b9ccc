"""Nothing that contradicts itself or the table gets out."""

from __future__ import annotations

import pytest

from deltalog.errors import (
    InternalError,
    InvalidInputError,
)
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.protocol.actions import DeletionVectorDescriptor, DomainMetadata
from deltalog.transaction import (
    AppTransaction,
    commit,
)
from tests.support.logs import add, domain
from tests.support.transactions import (
    commit_info_of,
    new_file,
    of_kind,
    pending,
    remove_all,
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
        tx.add_again(files)
        tx.add_files([new_file("a b.parquet")])
    before = dict(store.files)
    with pytest.raises(InvalidInputError):
        commit(tx)
    assert store.files == before


@pytest.mark.protocol("LOG-07")
def test_a_path_may_leave_and_come_back_with_another_vector() -> None:
    store = table([DV_FEATURES, add("x.parquet")])
    tx = pending(store)
    remove_all(tx)
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
    with pytest.raises(InvalidInputError, match="cannot record two versions"):
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
    with pytest.raises(InvalidInputError, match="no such domain"):
        tx.remove_domain("other")


@pytest.mark.protocol("APP-02")
@pytest.mark.parametrize(("data_change", "is_refused"), [(True, True), (False, False)])
def test_append_only_tables_lose_no_rows(data_change: bool, is_refused: bool) -> None:
    store = table([add("x.parquet")], configuration={"delta.appendOnly": "true"})
    tx = pending(store, operation="DELETE")
    remove_all(tx, data_change=data_change)
    if is_refused:
        with pytest.raises(InvalidInputError, match="append-only"):
            commit(tx)
    else:
        assert commit(tx).version == 2
