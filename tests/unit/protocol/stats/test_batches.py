"""Batches of add actions, which are decoded late."""

from __future__ import annotations

import pyarrow as pa

from deltalog.protocol.stats.parse import AddBatch, StatsLeaf, unread_adds

LEAVES: list[StatsLeaf] = [
    (("numRecords",), pa.int64()),
    (("minValues", "a"), pa.int64()),
]


def batch() -> AddBatch:
    texts = ['{"numRecords":7,"minValues":{"a":1}}', None, '{"numRecords":8}']
    adds = pa.table({"path": ["a", "b", "c"], "stats": pa.array(texts, pa.string())})
    return unread_adds(adds, LEAVES)


def test_statistics_of_commits_are_parsed_when_they_are_asked_for() -> None:
    given = batch()
    assert given.num_rows == 3
    adds, columns = given.decode()
    assert adds.column("path").to_pylist() == ["a", "b", "c"]
    assert [column.to_pylist() for column in columns] == [[7, None, 8], [1, None, None]]


def test_a_batch_without_some_of_its_actions() -> None:
    kept = batch().filter(pa.chunked_array([[True, False], [True]]))
    assert kept.num_rows == 2
    adds, columns = kept.decode()
    assert adds.column("path").to_pylist() == ["a", "c"]
    assert [column.to_pylist() for column in columns] == [[7, 8], [1, None]]
    assert batch().filter(pa.chunked_array([[False] * 3])).num_rows == 0
