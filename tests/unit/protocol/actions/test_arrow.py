from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import MalformedLogError
from deltalog.protocol.actions.arrow import (
    CDC_SCHEMA,
    FILE_SCHEMA,
    REMOVE_SCHEMA,
    REMOVE_TYPE,
    adds_from_json,
    cdc_from_json,
    map_array,
    removes_from_json,
)

DV = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 2, "cardinality": 3}
ADD: dict[str, Any] = {
    "path": "a%20b.parquet",
    "partitionValues": {"p": "1", "q": None},
    "size": 10,
    "modificationTime": 20,
    "dataChange": True,
    "stats": "{}",
    "tags": {"t": "u"},
    "deletionVector": DV,
    "baseRowId": 5,
    "defaultRowCommitVersion": 6,
    "clusteringProvider": "liquid",
    "future": {"x": 1},
}


@pytest.mark.protocol("ADD-01", "ADD-04", "LOG-10")
def test_every_member_has_its_column() -> None:
    table = adds_from_json([ADD])
    assert table.schema.equals(FILE_SCHEMA)
    row = table.to_pylist()[0]
    assert row["deletionVector"] == {**DV, "maxRowIndex": None}
    assert row["partitionValues"] == [("p", "1"), ("q", None)]
    assert row["tags"] == [("t", "u")]
    assert row["path"] == "a%20b.parquet"  # as it stands in the log
    scalars = {"size", "modificationTime", "dataChange", "stats", "baseRowId"}
    assert {name: row[name] for name in scalars} == {name: ADD[name] for name in scalars}


def test_absent_and_null_are_null() -> None:
    required = {"path": "g", "partitionValues": {}}
    rows = adds_from_json([required, dict.fromkeys(ADD) | required, ADD])
    assert [row["path"] for row in rows.to_pylist()] == ["g", "g", "a%20b.parquet"]
    for name in FILE_SCHEMA.names[2:]:
        assert rows.column(name).null_count == 2


def test_no_row_is_an_empty_table() -> None:
    assert adds_from_json([]).num_rows == 0
    assert removes_from_json([]).schema.equals(REMOVE_SCHEMA)
    assert cdc_from_json([]).schema.equals(CDC_SCHEMA)


@pytest.mark.protocol("REM-01")
def test_removes_keep_their_members() -> None:
    remove = {
        "path": "f",
        "deletionTimestamp": 1,
        "dataChange": False,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": 2,
        "stats": "{}",
        "tags": {},
        "deletionVector": None,
        "baseRowId": 3,
        "defaultRowCommitVersion": 4,
    }
    expected = {**remove, "partitionValues": [], "tags": []}
    assert removes_from_json([remove]).to_pylist() == [expected]


@pytest.mark.protocol("B-26")
def test_removes_of_checkpoints_have_neither_stats_nor_tags() -> None:
    names = {REMOVE_TYPE.field(i).name for i in range(REMOVE_TYPE.num_fields)}
    assert names == set(REMOVE_SCHEMA.names) - {"stats", "tags"}


@pytest.mark.protocol("CDC-01")
def test_change_files_keep_their_members() -> None:
    cdc = {
        "path": "_change_data/c",
        "partitionValues": {"p": "1"},
        "size": 1213,
        "dataChange": False,
    }
    assert cdc_from_json([cdc]).to_pylist() == [
        {**cdc, "partitionValues": [("p", "1")], "tags": None}
    ]


@pytest.mark.parametrize(
    ("add", "message"),
    [
        ({}, "required str is missing"),
        ({"path": None}, "required str is missing"),
        ({"path": "f"}, r"add\.partitionValues: required map is missing"),
        ({"path": 5}, "expected str, found int 5"),
        ({"path": "f", "size": "1"}, r"add\.size: expected int, found str '1'"),
        ({"path": "f", "size": True}, r"add\.size: expected int"),
        ({"path": "f", "size": 2**63}, "does not fit 64 bits"),
        ({"path": "f", "dataChange": "true"}, r"add\.dataChange: expected bool"),
        ({"path": "f", "partitionValues": [1]}, r"add\.partitionValues: expected map"),
        ({"path": "f", "partitionValues": []}, r"add\.partitionValues: expected map"),
        ({"path": "f", "partitionValues": 0}, r"add\.partitionValues: expected map"),
        ({"path": "f", "deletionVector": {}}, r"add\.deletionVector\.storageType: required"),
        ({"path": "f", "deletionVector": "x"}, r"add\.deletionVector: expected object"),
        ({"path": "f", "deletionVector": {**DV, "cardinality": "6"}}, "cardinality: expected int"),
        ("text", "add: expected object"),
    ],
)
def test_the_faulty_row_is_named(add: object, message: str) -> None:
    with pytest.raises(MalformedLogError, match=message) as raised:
        adds_from_json([ADD, add, ADD], where=lambda row: f"version 4, line {row + 10}")
    assert "version 4, line 11" in str(raised.value)


@pytest.mark.protocol("D-63")
@pytest.mark.parametrize("stats", [{"numRecords": 1}, 5, [1]])
def test_statistics_that_are_no_text_count_as_missing(stats: object) -> None:
    assert adds_from_json([{**ADD, "stats": stats}]).column("stats").to_pylist() == [None]


def test_odd_numbers_and_texts_are_mended() -> None:
    table = adds_from_json([{"path": "f", "size": 3.0, "partitionValues": {"p": 7}}])
    assert table.column("size").to_pylist() == [3]
    assert table.column("partitionValues").to_pylist() == [[("p", "7")]]


def test_numbers_beyond_columns_are_an_error_of_ours() -> None:
    with pytest.raises(MalformedLogError):
        adds_from_json([{"path": "f", "deletionVector": {**DV, "offset": 2**40}}])


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None],
        [{}],
        [None, {}, {"a": None}, {"b": "1", "c": "2"}, None],
        [{"a": "1"}, {"a": "1"}],
    ],
)
def test_maps(values: list[dict[str, str | None] | None]) -> None:
    array: pa.Array[Any] = map_array(values)
    array.validate(full=True)
    assert array.type.equals(pa.map_(pa.string(), pa.string()))
    assert array.to_pylist() == [None if v is None else list(v.items()) for v in values]
