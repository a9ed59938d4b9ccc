"""Writes: what they do to the schema, and to partitions."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, write_deltalake
from deltalog.errors import InvalidInputError, SchemaMismatchError
from tests.support.facade import (
    FEED,
    actions,
    changes,
    fresh_rows,
    last,
    make,
    rows,
    store_of,
    unchanged,
)
from tests.support.logs import DictStore
from tests.support.raw_tables import DataTable

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
    with (
        unchanged(made),
        pytest.raises(InvalidInputError, match=r"has no 'p'; pass the new partition columns"),
    ):
        write_deltalake(made, [{"x": 1}], mode="overwrite", schema_mode="overwrite")
    write_deltalake(made, [{"x": 1}], mode="overwrite", schema_mode="overwrite", partition_by=[])
    assert made.metadata().partition_columns == ()


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


def overwrite(made: DeltaTable, data: Any) -> None:
    write_deltalake(made, data, mode="overwrite", partition_overwrite="dynamic")


def test_other_partitions_stay() -> None:
    values = [(1, None, "a"), (2, 1, "a"), (3, 1, None), (4, None, None), (5, 2, "a")]
    data = [{"id": i, "p": p, "q": q} for i, p, q in values]
    made = make(data, partition_by=["p", "q"])
    overwrite(made, [{"id": 9, "p": None, "q": "a"}, {"id": 8, "p": 1, "q": None}])
    assert fresh_rows(made, "id") == [2, 4, 5, 8, 9]
    assert last(made)["operationMetrics"]["numRemovedFiles"] == "2"


def test_a_partition_is_all_of_its_values_together() -> None:
    """Each value of the partitions that stay is a value of one that is replaced."""
    pairs = [(p, q) for p in (1, 2, 3) for q in "abc"]
    made = make([{"id": 0, "p": p, "q": q} for p, q in pairs], partition_by=["p", "q"])
    new = [(1, "a"), (2, "c"), (3, "b")]
    overwrite(made, [{"id": 1, "p": p, "q": q} for p, q in new])
    assert fresh_rows(made) == sorted((int((p, q) in new), p, q) for p, q in pairs)


def test_no_rows_replace_nothing() -> None:
    made = make([{"id": 1, "p": 1}], partition_by=["p"])
    overwrite(made, [])
    assert fresh_rows(made, "id") == [1]


def test_a_partition_may_be_new() -> None:
    made = make([{"id": 1, "p": 1}], partition_by=["p"])
    overwrite(made, [{"id": 2, "p": 2}])
    assert fresh_rows(made, "id") == [1, 2]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("long", "007", 7),
        ("decimal(5,2)", "1.5", Decimal("1.50")),
        ("timestamp", "2024-01-01 01:02:03", datetime(2024, 1, 1, 1, 2, 3, tzinfo=UTC)),
        ("timestamp", "2024-01-01T01:02:03.000000Z", datetime(2024, 1, 1, 1, 2, 3, tzinfo=UTC)),
        ("date", "2024-01-01", date(2024, 1, 1)),
        ("boolean", "TRUE", True),
        ("string", "", None),
        ("double", "1", 1.0),
        ("binary", "\u0001", b"\x01"),
    ],
)
def test_values_count_however_they_are_spelt(kind: str, text: str, value: object) -> None:
    table = DataTable([("id", "long"), ("p", kind)], partition_by=["p"])
    table.commit(table.add({"id": [1]}, partitionValues={"p": text}))
    made = DeltaTable(table.store)
    overwrite(made, [{"id": 2, "p": value}])
    assert fresh_rows(made) == [(2, value)]


def test_the_change_feed_tells_of_both() -> None:
    made = make(
        [{"id": 1, "p": 1}, {"id": 2, "p": 2}], partition_by=["p"], configuration=dict(FEED)
    )
    overwrite(made, [{"id": 3, "p": 2}])
    assert changes(made) == [("delete", 2), ("insert", 3)]


def test_a_new_table_is_simply_written() -> None:
    store = DictStore()
    write_deltalake(
        store,
        [{"id": 1, "p": 1}],
        partition_by="p",
        mode="overwrite",
        partition_overwrite="dynamic",
    )
    assert fresh_rows(DeltaTable(store)) == [(1, 1)]


def test_rows_that_another_writer_added_meanwhile_go_too() -> None:
    made = make([{"id": 1, "p": 1}, {"id": 2, "p": 2}], partition_by=["p"])
    other = DeltaTable(made.snapshot.store)

    class Racing(list[dict[str, int]]):
        def __iter__(self) -> Any:
            if other.version() == 0:
                write_deltalake(other, [{"id": 3, "p": 1}, {"id": 4, "p": 2}], mode="append")
            return super().__iter__()

    overwrite(made, Racing([{"id": 9, "p": 1}]))
    assert fresh_rows(made, "id") == [2, 4, 9]
