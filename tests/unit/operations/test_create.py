"""Create and replace: what the first version of a table holds, and what a new one keeps."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalog.errors import (
    InvalidInputError,
)
from deltalog.log.context import utc_context
from deltalog.operations.create import Create, Replace, _replaced_properties
from deltalog.operations.engine import LocalEngine
from deltalog.operations.execute import make_table
from deltalog.protocol.actions.properties import TableProperties
from deltalog.protocol.column_mapping import validate
from deltalog.protocol.table_change.change import new_table
from deltalog.schema import Field, StructType
from deltalog.transaction import PendingTransaction
from tests.support.facade import (
    FEED,
    BusyStore,
    actions,
    fresh_rows,
    last,
    make,
    rows,
    store_of,
)
from tests.support.logs import DictStore

SCHEMA = StructType([Field("id", "long"), Field("p", "string")])


OPTIONS: list[dict[str, str]] = [
    {},
    {"delta.columnMapping.mode": "name"},
    {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"},
    {"delta.enableInCommitTimestamps": "true"},
    {"delta.enableIcebergCompatV2": "true"},
]


def replaced(before: dict[str, str], after: dict[str, str]) -> PendingTransaction:
    store = DictStore()
    old = new_table(SCHEMA, configuration=before, created_time_ms=1)
    base = make_table(Create(), utc_context(store), old, LocalEngine()).committed.snapshot
    pending = PendingTransaction(base.context, base, operation="")
    wanted = new_table(SCHEMA, configuration=after, partition_columns=["p"], created_time_ms=2)
    Replace(wanted).stage(pending, LocalEngine())
    return pending


@pytest.mark.parametrize(("before", "after"), list(itertools.product(OPTIONS, OPTIONS)))
def test_any_table_takes_the_place_of_any(before: dict[str, str], after: dict[str, str]) -> None:
    found = replaced(before, after).configuration
    assert found.partition_columns == ("p",)
    for key, text in after.items():
        assert found.metadata.configuration[key] == text
    validate(found.schema, found.column_mapping_mode)
    highest = found.properties.column_mapping_max_column_id
    assert highest >= TableProperties(before).column_mapping_max_column_id


@pytest.mark.protocol("B-22")
def test_times_of_commits_go_on_in_a_replaced_table() -> None:
    found = replaced({"delta.enableInCommitTimestamps": "true"}, {}).configuration
    assert found.in_commit_timestamps is not None


EMPTY = pa.table({"id": pa.array([], pa.int64()), "p": pa.array([], pa.string())})


@pytest.mark.parametrize(
    "schema",
    [
        Schema([Field("id", "long"), Field("p", "string")]),
        [Field("id", "long"), Field("p", "string")],
        EMPTY.schema,
    ],
)
def test_a_table_is_made_of_a_schema(schema: Any) -> None:
    store = DictStore()
    made = DeltaTable.create(store, schema, partition_by="p", name="n", description="d")
    assert (made.version(), rows(made)) == (0, [])
    assert made.schema().names == ("id", "p")
    metadata = made.metadata()
    assert (metadata.name, metadata.description) == ("n", "d")
    assert metadata.partition_columns == ("p",)
    assert last(made)["operation"] == "CREATE TABLE"


def test_no_schema_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="as a schema"):
        DeltaTable.create(DictStore(), 5)


@pytest.mark.protocol("META-08")
def test_a_table_is_replaced() -> None:
    made = make([{"id": 1, "p": "a"}], partition_by=["p"], configuration=dict(FEED), name="old")
    made.alter.add_constraint({"c": "id > 0"})
    new = DeltaTable.create(
        store_of(made),
        [Field("x", "long"), Field("q", "string")],
        mode="overwrite",
        partition_by=["q"],
        configuration={"mine": "1"},
        commit_properties=CommitProperties(custom_metadata={"why": "new"}),
    )
    assert (new.version(), rows(new)) == (2, [])
    metadata = new.metadata()
    assert (metadata.id, metadata.name) == (made.metadata().id, None)
    assert (metadata.configuration, metadata.partition_columns) == ({"mine": "1"}, ("q",))
    assert (last(new)["operation"], last(new)["why"]) == ("CREATE OR REPLACE TABLE", "new")
    assert sum("remove" in action for action in actions(new)) == 1
    # The history stays, and so do the features that it needs.
    assert rows(DeltaTable(store_of(made), 1)) == [(1, "a")]
    assert new.protocol().min_writer_version >= made.protocol().min_writer_version
    write_deltalake(new, [{"x": -1, "q": "z"}], mode="append")
    assert fresh_rows(new) == [(-1, "z")]


def test_rows_that_somebody_added_meanwhile_go_with_the_old_table() -> None:
    made = make([{"id": 1}])
    store = BusyStore(store_of(made).files)
    store.before_commit = lambda: write_deltalake(DeltaTable(store), [{"id": 2}], mode="append")
    new = DeltaTable.create(store, [Field("id", "long")], mode="overwrite")
    assert (new.version(), rows(new)) == (2, [])


def test_clustering_is_replaced_with_the_table() -> None:
    store = DictStore()
    fields = [Field("id", "long"), Field("x", "long")]
    DeltaTable.create(store, fields, cluster_by=["id"])
    new = DeltaTable.create(store, fields, mode="overwrite", cluster_by=["x"])
    assert '["x"]' in str(new.domain_metadata()["delta.clustering"])
    new = DeltaTable.create(store, fields, mode="overwrite", partition_by=["x"])
    assert new.domain_metadata() == {}


def test_a_replaced_table_keeps_what_its_catalog_requires() -> None:
    required = {
        "delta.checkpointPolicy": "v2",
        "delta.enableDeletionVectors": "true",
        "io.unitycatalog.tableId": "7",
    }
    features = ("catalogManaged", "inCommitTimestamp", "deletionVectors", "v2Checkpoint")
    wanted = new_table(SCHEMA, created_time_ms=1)
    for managed, kept in ((features, required), (features[1:], {})):
        current = new_table(
            SCHEMA,
            configuration={**required, "delta.enableInCommitTimestamps": "true", "team": "blue"},
            features=managed,
            has_catalog=True,
            created_time_ms=1,
        )
        found = _replaced_properties(current, wanted)
        assert found == {"delta.enableInCommitTimestamps": "true", **kept}
    asked = new_table(
        SCHEMA, configuration={"delta.checkpointPolicy": "classic"}, created_time_ms=1
    )
    current = new_table(
        SCHEMA, configuration=required, features=features, has_catalog=True, created_time_ms=1
    )
    assert _replaced_properties(current, asked)["delta.checkpointPolicy"] == "classic"
