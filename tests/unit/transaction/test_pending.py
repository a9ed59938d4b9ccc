"""What one commit will hold, while it is put together."""

from __future__ import annotations

import pytest

from deltalog.errors import (
    CatalogManagedError,
    InvalidInputError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltalog.transaction import (
    commit,
)
from tests.support.logs import domain
from tests.support.transactions import (
    actions_of,
    new_file,
    pending,
    table,
    written_files,
)


@pytest.mark.protocol("DOM-03", "DOM-04", "DOM-05")
def test_domains_of_others_stay() -> None:
    store = table([domain("delta.unknown", "x")], features=("domainMetadata",))
    after = commit(pending(store, new_file("n.parquet"))).snapshot
    assert after.domain_metadata["delta.unknown"].configuration == "x"


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


@pytest.mark.protocol("D-71")
def test_a_commit_of_nothing_is_a_commit() -> None:
    store = table()
    tx = pending(store, operation="Empty Commit")
    assert tx.is_empty
    assert commit(tx).version == 1
    assert len(actions_of(store, 1)) == 1


def test_written_files_are_of_this_table_and_this_schema() -> None:
    tx = pending(table())
    with pytest.raises(InvalidInputError, match="written for the table"):
        tx.add_files(written_files(tx, table_id="other"))
    other = tx.configuration.metadata.schema_string.replace('"id"', '"id2"')
    with pytest.raises(SchemaMismatchError, match="changed since"):
        tx.add_files(written_files(tx, schema_string=other))
    tx.add_files(written_files(tx))
    assert len(tx.adds) == 1


def test_metrics_of_several_verbs_are_put_together() -> None:
    transaction = pending(table())
    transaction.add_metrics(
        {"numOutputRows": 2, "minFileSize": 5, "maxFileSize": 7, "p50FileSize": 6}
    )
    transaction.add_metrics(
        {"numOutputRows": 3, "minFileSize": 4, "maxFileSize": 4, "p50FileSize": 4}
    )
    transaction.add_metrics({"numDeletedRows": 1, "note": "a"})
    assert transaction.metrics == {
        "numOutputRows": 5,
        "minFileSize": 4,
        "maxFileSize": 7,
        "p50FileSize": 4,
        "numDeletedRows": 1,
        "note": "a",
    }
