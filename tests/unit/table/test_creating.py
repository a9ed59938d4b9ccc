"""New tables: their defaults, and what they may be made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from deltalog import (
    DeltaTable,
    Field,
    table_defaults,
    write_deltalake,
)
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    TableExistsError,
)
from deltalog.schema import ArrayType, from_arrow_type
from tests.support.facade import (
    fresh_rows,
    make,
    rows,
    store_of,
    unchanged,
)
from tests.support.logs import DictStore

NEW = [{"id": 3}]


@pytest.mark.protocol("UPG-04")
def test_the_protocol_of_new_tables_has_a_default() -> None:
    with table_defaults({"delta.minWriterVersion": "4"}):
        protocol = make(NEW).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 4)


def test_defaults_of_new_tables_are_nested() -> None:
    with table_defaults({"delta.appendOnly": "true", "delta.checkpointInterval": "7"}):
        with table_defaults({"delta.checkpointInterval": "9"}):
            inner = make(NEW, configuration={"delta.appendOnly": None})
        outer = make(NEW)
    assert inner.metadata().configuration == {"delta.checkpointInterval": "9"}
    assert outer.metadata().configuration == {
        "delta.appendOnly": "true",
        "delta.checkpointInterval": "7",
    }
    assert make(NEW).metadata().configuration == {}
    with (
        pytest.raises(InvalidInputError, match="checkpointInterval"),
        table_defaults({"delta.checkpointIntervall": "7"}),
    ):
        pass  # pragma: no cover


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


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int32())})


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
        ({"mode": "append"}, "expected 'error', 'overwrite' or 'ignore'"),
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


EMPTY = pa.table({"id": pa.array([], pa.int64()), "p": pa.array([], pa.string())})


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
