"""The live files as `deltalake`'s users know them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from deltalog.data.scan.file_reports import add_actions, file_uris, partitions, selection_vectors
from deltalog.errors import UnsupportedFeatureError
from deltalog.expressions import parse_sql, resolve_predicate
from tests.support.raw_tables import DataTable, mapped, struct_of


@pytest.fixture
def table() -> DataTable:
    inner = struct_of(mapped("x", "long", 3, "col-x"))
    table = DataTable(
        [mapped("s", inner, 1, "col-s"), mapped("p", "date", 2, "col-p")],
        partition_by=["p"],
        features=["columnMapping", "deletionVectors"],
        configuration={"delta.columnMapping.mode": "name"},
    )
    for number in (1, 2, 3):
        stats = {
            "numRecords": 2,
            "minValues": {"col-s": {"col-x": number}},
            "maxValues": {"col-s": {"col-x": number + 1}},
            "nullCount": {"col-s": {"col-x": 0}},
        }
        table.commit(
            table.add(
                {"col-s": [{"col-x": number}, {"col-x": number + 1}]},
                path=f"a b/{number}",
                partitionValues={"col-p": None if number == 3 else f"2024-01-0{number}"},
                stats=stats if number < 3 else {},
                deletionVector=table.vector(1) if number == 2 else None,
            )
        )
    return table


def test_where_the_files_are(table: DataTable) -> None:
    snapshot = table.snapshot()
    found = file_uris(snapshot, None)
    assert sorted(found) == [f"memory://table/a b/{number}" for number in (1, 2, 3)]
    where = resolve_predicate(parse_sql("s.x > 2"), snapshot.configuration.schema)
    assert sorted(file_uris(snapshot, where)) == [f"memory://table/a b/{n}" for n in (2, 3)]


def test_the_partitions(table: DataTable) -> None:
    found = partitions(table.snapshot(), None)
    assert sorted(found, key=str) == [{"p": "2024-01-01"}, {"p": "2024-01-02"}, {"p": None}]
    assert partitions(DataTable([("id", "long")]).snapshot(), None) == []


def test_facts_of_the_files(table: DataTable) -> None:
    found = add_actions(table.snapshot()).sort_by("path").drop(["size_bytes"])
    bounds = {"null_count": {"s": {"x": 0}}, "min": {"s": {"x": 1}}, "max": {"s": {"x": 2}}}
    first = {"path": "a b/1", "num_records": 2, "partition": {"p": dt.date(2024, 1, 1)}}
    row = found.to_pylist()[0]
    assert {name: row[name] for name in (*first, *bounds)} == first | bounds
    last = found.to_pylist()[2]
    assert last["num_records"] is None
    assert last["min"] in (None, {"s": None}, {"s": {"x": None}})


def test_facts_of_the_files_as_a_flat_table(table: DataTable) -> None:
    found = add_actions(table.snapshot(), flatten=True)
    assert found.column_names == [
        "path",
        "size_bytes",
        "modification_time",
        "num_records",
        "null_count.s.x",
        "min.s.x",
        "max.s.x",
        "partition.p",
    ]
    assert found.schema.field("partition.p").type == pa.date32()
    assert found.sort_by("path")["max.s.x"].to_pylist() == [2, 3, None]


def test_which_rows_are_alive(table: DataTable) -> None:
    found = selection_vectors(table.snapshot()).read_all().to_pylist()
    assert found == [{"filepath": "memory://table/a b/2", "selection_vector": [True, False]}]


def test_a_mask_reaches_as_far_as_is_known() -> None:
    table = DataTable([("id", "long")], features=["deletionVectors"])
    table.commit(table.add({"id": [1, 2, 3, 4]}, stats={}, deletionVector=table.vector(0, 2)))
    (found,) = selection_vectors(table.snapshot()).read_all().to_pylist()
    assert found["selection_vector"] == [False, True, False]


def test_files_that_cannot_be_honoured_are_not_shown() -> None:
    table = DataTable([("id", "long")], features=["newFeature"])
    with pytest.raises(UnsupportedFeatureError, match="newFeature"):
        add_actions(table.snapshot())
    with pytest.raises(UnsupportedFeatureError, match="newFeature"):
        selection_vectors(table.snapshot())
