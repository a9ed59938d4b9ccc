"""Schemas that data changes: merged into the table's, or put in its place."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, write_deltalake
from deltalog.errors import InvalidInputError, SchemaMismatchError
from tests.support.facade import actions, fresh_rows, make, rows, store_of, unchanged
from tests.support.logs import DictStore

MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_columns_that_only_the_data_has_are_merged(mode: Any) -> None:
    made = make([{"id": 1, "s": {"a": 1}, "l": [{"x": 1}]}])
    data = [{"id": 2, "s": {"a": 2, "b": "y"}, "l": [{"x": 2, "z": 3}], "new": 1.5}]
    with unchanged(made), pytest.raises(SchemaMismatchError):
        write_deltalake(made, data, mode=mode)
    write_deltalake(made, data, mode=mode, schema_mode="merge")
    assert made.schema().names == ("id", "s", "l", "new")
    old = [(1, {"a": 1, "b": None}, [{"x": 1, "z": None}], None)]
    assert fresh_rows(made) == [
        *(old if mode == "append" else []),
        (2, {"a": 2, "b": "y"}, [{"x": 2, "z": 3}], 1.5),
    ]


def test_merging_needs_no_new_column() -> None:
    made = make([{"id": 1, "s": "x"}])
    write_deltalake(made, [{"ID": 2}], mode="append", schema_mode="merge")
    assert rows(made) == [(1, "x"), (2, None)]
    assert not any("metaData" in action for action in actions(made))


def test_merging_widens_where_the_table_allows_it() -> None:
    narrow = pa.table({"id": pa.array([1], pa.int32())})
    wide = pa.table({"id": pa.array([2**40], pa.int64())})
    made = make(narrow, configuration={"delta.enableTypeWidening": "true"})
    write_deltalake(made, wide, mode="append", schema_mode="merge")
    assert (str(made.schema().fields[0].type), fresh_rows(made)) == ("long", [1, 2**40])
    strict = make(narrow)
    with unchanged(strict), pytest.raises(SchemaMismatchError):
        write_deltalake(strict, wide, mode="append", schema_mode="merge")


@pytest.mark.parametrize("configuration", [{}, MAPPED])
def test_a_schema_is_overwritten_with_the_rows(configuration: dict[str, str]) -> None:
    made = make([{"id": 1, "p": "a"}], partition_by=["p"], configuration=configuration)
    data = [{"p": 7, "q": "b", "id": "text"}]
    with unchanged(made), pytest.raises(SchemaMismatchError):
        write_deltalake(made, data, mode="overwrite")
    write_deltalake(made, data, mode="overwrite", schema_mode="overwrite", partition_by=["q"])
    assert fresh_rows(made) == [(7, "b", "text")]
    assert made.metadata().partition_columns == ("q",)
    # The version before is what it was.
    assert rows(DeltaTable(store_of(made), 0)) == [(1, "a")]


def test_an_overwritten_schema_keeps_the_partitions_by_default() -> None:
    made = make([{"id": 1, "p": "a"}], partition_by=["p"])
    write_deltalake(made, [{"p": "b", "x": 1}], mode="overwrite", schema_mode="overwrite")
    assert made.metadata().partition_columns == ("p",)
    with unchanged(made), pytest.raises(InvalidInputError, match="p"):
        write_deltalake(made, [{"x": 1}], mode="overwrite", schema_mode="overwrite")


def test_the_id_of_a_table_stays() -> None:
    made = make([{"id": 1}])
    before = made.metadata().id
    write_deltalake(made, [{"x": 1}], mode="overwrite", schema_mode="overwrite")
    assert made.metadata().id == before


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ({"id": 1}, {}, "it is clustered by x"),
        ({"id": 1, "x": 2}, {"partition_by": ["id"]}, "clustered or partitioned"),
        ({"id": 1, "x": True}, {}, "no minimum and maximum"),
    ],
)
def test_clustering_columns_do_not_vanish(
    row: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    fields = [Field("id", "long"), Field("x", "long")]
    made = DeltaTable.create(DictStore(), fields, cluster_by=["x"])
    with unchanged(made), pytest.raises(InvalidInputError, match=message):
        write_deltalake(made, [row], mode="overwrite", schema_mode="overwrite", **options)
    write_deltalake(made, [{"x": 3}], mode="overwrite", schema_mode="overwrite")
    assert rows(made) == [3]


@pytest.mark.protocol("CM-08")
def test_mapped_columns_are_renamed_dropped_and_written_again() -> None:
    made = make([{"id": 1, "s": {"a": 1}, "old": "x"}], configuration=MAPPED)
    made.alter.rename_column("s.a", "b")
    made.alter.drop_columns("old")
    data = [{"id": 2, "s": {"b": 2, "c": 3}, "old": 5}]
    write_deltalake(made, data, mode="append", schema_mode="merge")
    assert fresh_rows(made) == [(1, {"b": 1, "c": None}, None), (2, {"b": 2, "c": 3}, 5)]
    write_deltalake(
        made,
        [{"id": 1, "s": {"b": 9, "c": None}, "old": None}],
        mode="overwrite",
        predicate="id = 1",
    )
    assert fresh_rows(made) == [(1, {"b": 9, "c": None}, None), (2, {"b": 2, "c": 3}, 5)]
