"""What is left of a transaction that came to nothing."""

from __future__ import annotations

import pytest

from deltalog.errors import CommitOutcomeUnknownError, StorageError
from deltalog.testing import FaultyStore, Harm, InjectedFault
from deltalog.transaction import PendingTransaction
from deltalog.transaction.pending import discard, discarding
from tests.support.contexts import moved
from tests.support.logs import DictStore
from tests.support.transactions import pending, table, written_files


def begun(store: DictStore) -> PendingTransaction:
    """A transaction with one file of its own, which is in the store."""
    tx = pending(store)
    tx.add_files(written_files(tx))
    store.put("w.parquet", b"mine")
    store.put("other.parquet", b"of somebody else")
    return tx


def data_files(store: DictStore) -> list[str]:
    return sorted(path for path in store.files if path.endswith(".parquet"))


@pytest.mark.parametrize("error", [StorageError("no"), ValueError("no"), KeyboardInterrupt()])
def test_its_own_files_go_and_no_others(error: BaseException) -> None:
    store = table()
    tx = begun(store)
    with pytest.raises(type(error)), discarding(tx):
        raise error
    assert data_files(store) == ["other.parquet"]


def test_files_stay_where_all_went_well() -> None:
    store = table()
    with discarding(begun(store)):
        pass
    assert data_files(store) == ["other.parquet", "w.parquet"]


def test_files_stay_where_nobody_knows_whether_the_commit_was_made() -> None:
    store = table()
    with pytest.raises(CommitOutcomeUnknownError), discarding(begun(store)):
        raise CommitOutcomeUnknownError("who knows")
    assert data_files(store) == ["other.parquet", "w.parquet"]


def test_files_stay_where_a_commit_that_was_sent_is_interrupted() -> None:
    store = table()
    tx = begun(store)
    tx.is_sent = True
    with pytest.raises(KeyboardInterrupt), discarding(tx):
        raise KeyboardInterrupt
    assert data_files(store) == ["other.parquet", "w.parquet"]
    with pytest.raises(StorageError), discarding(tx):
        raise StorageError("it was refused for certain")
    assert data_files(store) == ["other.parquet"]


def test_files_stay_where_the_commit_was_made_before_the_error() -> None:
    store = table()
    tx = begun(store)
    tx.is_committed = True
    with pytest.raises(StorageError), discarding(tx):
        raise StorageError("of what comes after")
    assert data_files(store) == ["other.parquet", "w.parquet"]


def test_a_store_that_deletes_nothing_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    store = table()
    tx = moved(begun(store), store=FaultyStore(store, InjectedFault(1, Harm.REFUSE)))
    discard(tx)
    assert "could not delete 1 file of a failed WRITE in memory://table" in caplog.text
    assert data_files(store) == ["other.parquet", "w.parquet"]


def test_a_transaction_without_files_leaves_none() -> None:
    store = table()
    before = dict(store.files)
    discard(pending(store))
    assert store.files == before
