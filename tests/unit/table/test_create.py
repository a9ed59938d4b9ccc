"""`DeltaTable.create`: new tables, and tables in the place of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from deltalog import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    TableExistsError,
)
from deltalog.schema import ArrayType, from_arrow_type
from tests.support.facade import (
    FEED,
    BusyStore,
    actions,
    fresh_rows,
    last,
    make,
    rows,
    store_of,
    unchanged,
)
from tests.support.logs import DictStore

FIELDS = [
    Field(
        "id",
        "long",
        metadata={
            "delta.identity.start": 10,
            "delta.identity.step": -2,
            "delta.identity.allowExplicitInsert": False,
        },
    ),
    Field("n", "integer", nullable=False, metadata={"comment": "how many"}),
    Field("twice", "integer", metadata={"delta.generationExpression": "n * 2"}),
    Field("who", "string", metadata={"CURRENT_DEFAULT": "'nobody'"}),
]


EMPTY = pa.table({"id": pa.array([], pa.int64()), "p": pa.array([], pa.string())})


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int32())})


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
    with pytest.raises(InvalidInputError, match="for a schema"):
        DeltaTable.create(DictStore(), "id long")


@pytest.mark.protocol("GEN-01", "IDN-03", "CON-07", "CON-01", "INV-04")
def test_every_kind_of_column_at_once() -> None:
    made = DeltaTable.create(
        DictStore(),
        FIELDS,
        constraints={"positive": "n > 0"},
        cluster_by=["n"],
        configuration={"delta.feature.allowColumnDefaults": "supported"},
        features=["vacuumProtocolCheck"],
    )
    assert made.metadata().configuration == {"delta.constraints.positive": "n > 0"}
    assert made.schema().fields[1].metadata["comment"] == "how many"
    assert '["n"]' in str(made.domain_metadata()["delta.clustering"])
    assert {
        "identityColumns",
        "generatedColumns",
        "allowColumnDefaults",
        "checkConstraints",
        "clustering",
        "domainMetadata",
        "vacuumProtocolCheck",
    } <= set(made.protocol().writer_features or ())
    write_deltalake(made, numbers(1, 2), mode="append")
    write_deltalake(made, [{"n": 3, "who": None}], mode="append")
    assert set(fresh_rows(made)) == {(10, 1, 2, "nobody"), (8, 2, 4, "nobody"), (6, 3, 6, None)}
    for wrong in ([{"n": 0}], [{"n": None}], [{"n": 1, "twice": 3}], [{"n": 1, "id": 7}]):
        with unchanged(made), pytest.raises(DeltaError):
            write_deltalake(made, wrong, mode="append")
    with pytest.raises(ConstraintViolationError, match="positive"):
        write_deltalake(made, [{"n": -1}], mode="append")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "append"}, "the mode error, overwrite or ignore"),
        ({"partition_by": ["nope"]}, "nope"),
        ({"partition_by": ["p"], "cluster_by": ["id"]}, "clustered or partitioned"),
        ({"cluster_by": ["nope"]}, "nope"),
        ({"configuration": {"delta.enableDeletionVector": "true"}}, "enableDeletionVectors"),
        ({"configuration": {"delta.checkpointInterval": "0"}}, "checkpointInterval"),
        ({"constraints": {"c": "nope > 1"}}, "nope"),
        ({"constraints": {"c": "id +"}}, "id \\+"),
        ({"features": ["noSuchFeature"]}, "noSuchFeature"),
    ],
)
def test_what_cannot_be_made(options: dict[str, Any], message: str) -> None:
    store = DictStore()
    with pytest.raises(InvalidInputError, match=message):
        DeltaTable.create(store, [Field("id", "long"), Field("p", "string")], **options)
    assert not store.files


def test_unknown_properties_may_be_asked_for() -> None:
    made = DeltaTable.create(
        DictStore(),
        [Field("id", "long")],
        configuration={"delta.noSuchThing": "1", "mine": "2"},
        raise_if_key_not_exists=False,
    )
    assert made.metadata().configuration == {"delta.noSuchThing": "1", "mine": "2"}


def test_a_table_that_is_there() -> None:
    made = make([{"id": 1}])
    store = store_of(made)
    with unchanged(made), pytest.raises(TableExistsError, match="mode='ignore'"):
        DeltaTable.create(store, made.schema())
    with unchanged(made):
        assert rows(DeltaTable.create(store, [Field("x", "long")], mode="ignore")) == [1]


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


def append_only(store: DictStore) -> DeltaTable:
    """Rows, then the property, then another row."""
    write_deltalake(store, numbers(1, 2))
    DeltaTable(store).alter.set_table_properties({"delta.appendOnly": "true"})
    write_deltalake(store, numbers(3), mode="append")
    return DeltaTable(store)


@pytest.mark.protocol("APP-01")
@pytest.mark.parametrize(
    "act",
    [
        lambda table: DeltaTable.create(store_of(table), numbers().schema, mode="overwrite"),
        lambda table: DeltaTable.create(
            store_of(table),
            numbers().schema,
            mode="overwrite",
            configuration={"delta.appendOnly": "false"},
        ),
        lambda table: table.restore(0),
        lambda table: write_deltalake(
            store_of(table), EMPTY, mode="overwrite", schema_mode="overwrite"
        ),
        lambda table: make(numbers(7)).clone(store_of(table), replace=True),
    ],
    ids=["create", "create otherwise", "restore", "overwrite", "clone"],
)
def test_what_stands_decides_whether_rows_may_go(act: Callable[[DeltaTable], object]) -> None:
    table = append_only(DictStore())
    with unchanged(table), pytest.raises(InvalidInputError, match="it is append-only"):
        act(table)


@pytest.mark.protocol("APP-03")
def test_a_replaced_table_may_become_append_only_and_an_empty_one_be_replaced() -> None:
    store = DictStore()
    write_deltalake(store, numbers(1, 2))
    DeltaTable.create(
        store, EMPTY.schema, mode="overwrite", configuration={"delta.appendOnly": "true"}
    )
    DeltaTable.create(store, numbers().schema, mode="overwrite")
    assert DeltaTable(store).schema().to_arrow() == numbers().schema


def test_a_schema_that_no_file_could_be_read_with_is_refused() -> None:
    kind: Any = pa.int64()
    for _ in range(44):
        kind = pa.list_(kind)
    store = DictStore()
    deep = DeltaTable.create(store, pa.schema([("a", kind)]))
    value: Any = 1
    for _ in range(44):
        value = [value]
    write_deltalake(deep, pa.table({"a": pa.array([value], kind)}), mode="append")
    deep.create_checkpoint()
    assert DeltaTable(store).to_pyarrow_table()["a"].to_pylist() == [value]
    with pytest.raises(InvalidInputError, match="at most 90 levels"):
        DeltaTable.create(DictStore(), pa.schema([("a", pa.list_(kind))]))
    with unchanged(deep), pytest.raises(InvalidInputError, match="at most 90 levels"):
        deep.alter.add_columns(Field("b", ArrayType(from_arrow_type(kind))))
    with unchanged(deep), pytest.raises(InvalidInputError, match="expected a whole number"):
        deep.alter.set_table_properties({"delta.randomPrefixLength": "1000000000"})
