"""What the log tells of a table's columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import UnsupportedFeatureError
from deltalog.storage import open_store
from deltalog.table.inspect.description import ColumnDescription, TableDescription, describe_columns
from tests.support.raw_tables import DataTable

ROWS: dict[str, Any] = {
    "id": pa.array([3, 1, None], pa.int64()),
    "day": pa.array([dt.date(2024, 1, 2), dt.date(2024, 1, 1), None]),
    "price": pa.array([Decimal("2.50"), Decimal("-1.00"), None], pa.decimal128(9, 2)),
    "share": pa.array([0.5, -0.5, None]),
    "text": ["b", "a", None],
    "at": pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 3, pa.timestamp("us", "UTC")),
    "part": [{"x": 1, "list": [1]}, {"x": 2, "list": []}, None],
    "none": pa.nulls(3, pa.int32()),
    "key": ["k", "l", None],
}


@pytest.fixture
def described(tmp_path: Path) -> TableDescription:
    """The description of three rows."""
    write_deltalake(tmp_path, pa.table(ROWS), partition_by=["key"])
    return DeltaTable(tmp_path).describe()


def _by_name(found: TableDescription) -> dict[str, ColumnDescription]:
    return {one.column: one for one in found.columns}


def test_what_the_log_tells_exactly_is_told(described: TableDescription) -> None:
    assert described.num_rows == 3
    columns = _by_name(described)
    told = {name: (one.nulls, one.min, one.max) for name, one in columns.items()}
    assert told == {
        "id": (1, 1, 3),
        "day": (1, dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
        "price": (1, Decimal("-1.00"), Decimal("2.50")),
        "share": (1, -0.5, None),
        "text": (1, None, None),
        "at": (0, None, None),
        "part.x": (1, 1, 2),
        "part.list": (1, None, None),
        "none": (3, None, None),
        "key": (1, "k", "l"),
    }
    assert {name: one.missing for name, one in columns.items() if one.missing} == {
        "share": ("max: it may be NaN",),
        "text": ("min, max: strings may be truncated",),
        "at": ("min, max: times may be truncated to milliseconds",),
        "part.list": ("min, max: statistics have no bounds for this type",),
    }


def test_no_data_is_read() -> None:
    table = DataTable([("id", "long")])
    adds = [
        table.add({"id": [1, 2]}, stats={"numRecords": 2, "minValues": {"id": 1},
                                         "maxValues": {"id": 2}, "nullCount": {"id": 0}})
    ]  # fmt: skip
    table.commit(*adds)
    table.store.delete_many(
        [info.path for info in table.store.list_all("") if "_delta_log" not in info.path]
    )
    (column,) = describe_columns(table.snapshot()).columns
    assert (column.nulls, column.min, column.max, column.missing) == (0, 1, 2, ())


STATS = {"numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 3}, "nullCount": {"id": 0}}


@pytest.mark.parametrize(
    ("stats", "deleted", "told"),
    [
        (STATS, (), (3, 0, 1, 3)),
        (STATS, (0,), (2, 0, None, None)),
        (STATS, (0, 1, 2), (0, 0, None, None)),
        (STATS | {"nullCount": {"id": 1}}, (0,), (2, None, None, None)),
        ({"numRecords": 3, "nullCount": {"id": 3}}, (0,), (2, 2, None, None)),
        (STATS | {"tightBounds": False}, (), (3, 0, None, None)),
        ({"numRecords": 3}, (), (3, None, None, None)),
        ({}, (), (None, None, None, None)),
        (STATS | {"numRecords": 1}, (0, 1), (None, None, None, None)),
    ],
)
def test_a_bound_that_may_be_of_deleted_rows_is_none(
    stats: dict[str, Any], deleted: tuple[int, ...], told: tuple[Any, ...]
) -> None:
    table = DataTable([("id", "long")], features=["deletionVectors"])
    vector: dict[str, Any] = {"deletionVector": table.vector(*deleted)} if deleted else {}
    table.commit(table.add({"id": [1, 2, 3]}, stats=stats, **vector))
    found = describe_columns(table.snapshot())
    (column,) = found.columns
    if told[0] is None and stats.get("numRecords") == 1:
        told = (None, column.nulls, None, None)  # more rows are deleted than there are
    assert (found.num_rows, column.nulls, column.min, column.max) == told
    is_whole = told[0] == 0 or None not in told
    assert (column.missing == ()) is (is_whole or told == (2, 2, None, None))


def test_rows_are_text(described: TableDescription) -> None:
    table = described.to_table()
    assert table.column_names == ["column", "type", "nulls", "min", "max", "missing"]
    assert table.to_pylist()[2] == {
        "column": "price",
        "type": "decimal(9,2)",
        "nulls": 1,
        "min": "-1.00",
        "max": "2.50",
        "missing": None,
    }
    assert described.to_pandas().shape == (10, 6)


def test_it_can_be_looked_at(described: TableDescription) -> None:
    assert "3 rows" in repr(described)
    assert "id: long, nulls 1, min 1, max 3" in repr(described)
    assert "<td" in described._repr_html_()


def test_names_are_no_markup() -> None:
    store = open_store("memory://description-<script>")
    hostile = Schema([Field("<script>alert(1)</script>", "long")])
    mapped = {"delta.columnMapping.mode": "name"}
    page = DeltaTable.create(store, hostile, configuration=mapped).describe()._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_an_empty_table_has_no_rows() -> None:
    store = open_store("memory://description-of-nothing")
    table = DeltaTable.create(store, Schema([Field("id", "long")]))
    found = table.describe()
    assert found.num_rows == 0
    assert found.columns == (
        ColumnDescription(column="id", type="long", nulls=0, min=None, max=None, missing=()),
    )


def test_a_table_that_cannot_be_honoured_is_not_described() -> None:
    table = DataTable([("id", "long")], features=["newFeature"])
    with pytest.raises(UnsupportedFeatureError, match="newFeature"):
        describe_columns(table.snapshot())
