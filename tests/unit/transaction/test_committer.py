"""Commits through a catalog: staged, ratified, and where others see them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    CommitFailedError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    MalformedLogError,
    StorageError,
)
from deltalog.log.context import Catalog, LogTail, RatifiedCommit, utc_context
from deltalog.log.names import STAGED_DIRECTORY, commit_path
from deltalog.log.snapshot import load_snapshot
from deltalog.testing import InMemoryCatalog
from deltalog.transaction import CatalogCommitter, PendingTransaction, commit
from tests.support.contexts import moved
from tests.support.logs import DictStore
from tests.support.transactions import new_file, table

CONFIGURATION = {"delta.enableInCommitTimestamps": "true"}


def _table() -> tuple[DictStore, InMemoryCatalog]:
    store = table(features=("catalogManaged", "inCommitTimestamp"), configuration=CONFIGURATION)
    catalog = InMemoryCatalog()
    catalog.register(store.root, 0)
    return store, catalog


def _pending(store: DictStore, catalog: Catalog, path: str) -> PendingTransaction:
    snapshot = load_snapshot(utc_context(store).with_log_tail(catalog.latest(store.root)))
    tx = PendingTransaction(snapshot.context, snapshot, operation="WRITE")
    tx.add_files([new_file(path)])
    return tx


def _names(store: DictStore, catalog: Catalog) -> list[str]:
    snapshot = load_snapshot(utc_context(store).with_log_tail(catalog.latest(store.root)))
    return sorted(str(path) for path in snapshot.files(["path"]).column("path").to_pylist())


@pytest.mark.protocol("B-56", "B-43")
def test_a_commit_is_staged_and_ratified() -> None:
    store, catalog = _table()
    committed = commit(moved(_pending(store, catalog, "a"), committer=CatalogCommitter(catalog)))
    [staged] = [path for path in store.files if path != commit_path(0)]
    assert staged.startswith(f"{STAGED_DIRECTORY}/{1:020}.")
    assert committed.version == 1
    assert committed.snapshot.files(["path"]).num_rows == 1
    assert _names(store, catalog) == ["a"]
    # Whoever does not ask the catalog does not see it.
    assert load_snapshot(utc_context(store)).version == 0


def test_what_others_commit_through_the_catalog_is_seen() -> None:
    store, catalog = _table()
    context = replace(utc_context(store), committer=CatalogCommitter(catalog))
    table = DeltaTable.from_context(context)
    assert table.version() == 0
    commit(moved(_pending(store, catalog, "theirs"), committer=context.committer))
    assert table.snapshot.refresh().version == 1
    table.update_incremental()
    assert (table.version(), table.file_uris()) == (1, [f"{store.root}/theirs"])
    commit(moved(_pending(store, catalog, "more"), committer=context.committer))
    table.load_as_version(2)  # also where this table knows an older tail
    assert len(table.file_uris()) == 2


@pytest.mark.protocol("B-56", "D-27")
def test_of_two_proposals_one_is_ratified_and_the_other_comes_after() -> None:
    store, catalog = _table()
    committer = CatalogCommitter(catalog)
    late = _pending(store, catalog, "late")
    commit(moved(_pending(store, catalog, "early"), committer=committer))
    committed = commit(moved(late, committer=committer))
    assert (committed.version, committed.num_retries) == (2, 1)
    assert _names(store, catalog) == ["early", "late"]


@pytest.mark.protocol("B-56", "B-43")
def test_publishing_changes_nothing_but_where_commits_are() -> None:
    store, catalog = _table()
    committer = CatalogCommitter(catalog)
    first = commit(moved(_pending(store, catalog, "a"), committer=committer))
    assert catalog.publish(store) == [1]
    assert catalog.latest(store.root).commits == ()
    tail = catalog.latest(store.root)
    assert first.snapshot.refresh(log_tail=tail).version == 1
    tx = PendingTransaction(first.snapshot.context, first.snapshot, operation="WRITE")
    tx.add_files([new_file("b")])
    assert commit(moved(tx, committer=committer)).version == 2
    assert _names(store, catalog) == ["a", "b"]
    assert catalog.publish(store) == [2]
    assert load_snapshot(utc_context(store)).version == 2


@pytest.mark.protocol("B-56", "D-27")
@pytest.mark.parametrize("is_made", [True, False])
def test_a_proposal_whose_answer_is_lost(is_made: bool) -> None:
    class Losing(InMemoryCatalog):
        lost = 0

        def propose(self, table: str, commit: RatifiedCommit) -> None:
            if self.lost == 0:
                self.lost = 1
                if is_made:
                    super().propose(table, commit)
                raise StorageError("the answer is lost")
            super().propose(table, commit)

    store, _ = _table()
    catalog = Losing()
    catalog.register(store.root, 0)
    committed = commit(moved(_pending(store, catalog, "a"), committer=CatalogCommitter(catalog)))
    assert (committed.version, committed.num_retries) == (1, 0)
    assert catalog.latest(store.root).last_version == 1
    assert _names(store, catalog) == ["a"]


@pytest.mark.protocol("B-56", "D-27")
@pytest.mark.parametrize("earlier", [0, 1, 2])
@pytest.mark.parametrize("is_published", [True, False])
def test_a_commit_stands_whatever_the_catalog_says_afterwards(
    earlier: int, is_published: bool
) -> None:
    class Falling(InMemoryCatalog):
        has_fallen = False

        def propose(self, table: str, commit: RatifiedCommit) -> None:
            super().propose(table, commit)
            self.has_fallen = commit.version > earlier

        def latest(self, table: str) -> LogTail:
            if self.has_fallen:
                raise StorageError("no answer")
            return super().latest(table)

    store, _ = _table()
    catalog = Falling()
    catalog.register(store.root, 0)
    committer = CatalogCommitter(catalog)
    for number in range(earlier):
        commit(moved(_pending(store, catalog, f"{number}"), committer=committer))
    if is_published:
        catalog.publish(store)
    committed = commit(moved(_pending(store, catalog, "mine"), committer=committer))
    assert committed.version == committed.snapshot.version == earlier + 1
    assert committed.snapshot.files(["path"]).num_rows == earlier + 1
    catalog.has_fallen = False
    assert committed.snapshot.refresh().version == earlier + 1
    assert len(_names(store, catalog)) == earlier + 1


def test_the_change_feed_of_a_table_that_a_catalog_manages() -> None:
    configuration = {**CONFIGURATION, "delta.enableChangeDataFeed": "true"}
    features = ("catalogManaged", "inCommitTimestamp", "changeDataFeed")
    store = table(features=features, configuration=configuration)
    for_writers = b'"minReaderVersion":1'
    for_readers = b'"minReaderVersion":3,"readerFeatures":["catalogManaged"]'
    commit_0 = store.files[commit_path(0)].replace(for_writers, for_readers)
    store.files[commit_path(0)] = commit_0
    catalog = InMemoryCatalog()
    catalog.register(store.root, 0)
    committer = CatalogCommitter(catalog)
    shown = DeltaTable.from_context(replace(utc_context(store), committer=committer))
    shown.alter.set_table_properties({"owner": "me"})
    write_deltalake(shown, [{"id": 1, "p": "x"}], mode="append")
    found = shown.load_cdf(starting_version=0).read_all().select(["id", "_commit_version"])
    assert found.to_pylist() == [{"id": 1, "_commit_version": 2}]


def test_a_catalog_that_never_answers_leaves_it_open() -> None:
    class Silent(InMemoryCatalog):
        def propose(self, _table: str, _commit: RatifiedCommit) -> None:
            raise StorageError("no answer")

    store, _ = _table()
    catalog = Silent()
    catalog.register(store.root, 0)
    with pytest.raises(CommitOutcomeUnknownError):
        commit(moved(_pending(store, catalog, "a"), committer=CatalogCommitter(catalog)))


def test_a_table_of_its_own_is_not_committed_to_through_a_catalog() -> None:
    store = table()
    catalog = InMemoryCatalog()
    catalog.register(store.root, 0)
    with pytest.raises(InvalidInputError, match="not managed"):
        commit(moved(_pending(store, catalog, "a"), committer=CatalogCommitter(catalog)))


def test_a_new_table_is_published_and_then_known() -> None:
    before, _ = _table()
    catalog = InMemoryCatalog()
    known = load_snapshot(utc_context(before)).configuration
    store = DictStore()
    tx = PendingTransaction(utc_context(store), None, operation="CREATE TABLE", configuration=known)
    assert commit(moved(tx, committer=CatalogCommitter(catalog))).version == 0
    assert [path for path in store.files if path.endswith(".json")] == [commit_path(0)]
    assert catalog.latest(store.root).last_version == 0
    assert (
        commit(moved(_pending(store, catalog, "a"), committer=CatalogCommitter(catalog))).version
        == 1
    )


def test_a_catalog_that_was_set_back_is_told_by_what_is_published() -> None:
    store, catalog = _table()
    committer = CatalogCommitter(catalog)
    for path in "ab":
        commit(moved(_pending(store, catalog, path), committer=committer))
    assert catalog.publish(store) == [1, 2]
    catalog.register(store.root, 1)
    with pytest.raises(CommitFailedError, match=r"version 2 of .* rolled back"):
        commit(moved(_pending(store, catalog, "c"), committer=committer))
    assert catalog.latest(store.root).last_version == 1
    assert _names(store, catalog) == ["a"]
    assert load_snapshot(utc_context(store)).version == 2


def test_a_published_commit_is_no_other_than_the_ratified_one() -> None:
    store, catalog = _table()
    commit(moved(_pending(store, catalog, "a"), committer=CatalogCommitter(catalog)))
    [staged] = [path for path in store.files if path.startswith(STAGED_DIRECTORY)]
    store.files[commit_path(1)] = store.files[staged].replace(b'"txnId":"', b'"txnId":"0')
    with pytest.raises(MalformedLogError, match="cannot publish version 1"):
        catalog.publish(store)
    assert [one.file.path for one in catalog.latest(store.root).commits] == [staged]
    store.files[commit_path(1)] = b"{}\n{not JSON"
    with pytest.raises(MalformedLogError, match="cannot publish version 1"):
        catalog.publish(store)
    store.files[commit_path(1)] = store.files[staged] + b"\n"
    assert catalog.publish(store) == [1]
