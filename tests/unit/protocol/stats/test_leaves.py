"""Statistics by leaf."""

from __future__ import annotations

import pyarrow as pa

from deltalog.protocol.stats.parse import leaf_of, nest

RECORDS = ("numRecords",)
LEAST = ("minValues", "a")


def test_leaves_become_structs_again() -> None:
    columns = [pa.chunked_array([[1, None]], pa.int64()), pa.chunked_array([[7, 8]], pa.int64())]
    table = nest([(LEAST, columns[0]), (RECORDS, columns[1])])
    assert table.to_pylist() == [
        {"minValues": {"a": 1}, "numRecords": 7},
        {"minValues": {"a": None}, "numRecords": 8},
    ]
    assert leaf_of(table, LEAST) == columns[0]
    assert leaf_of(table, RECORDS) == columns[1]


def test_a_leaf_of_no_struct_is_null() -> None:
    table = pa.table({"minValues": pa.array([{"a": {"b": 1}}, {"a": None}, None])})
    assert leaf_of(table, ("minValues", "a", "b")).to_pylist() == [1, None, None]
