from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.log.checkpoints.layout import ParquetCheckpointFile, open_checkpoint_file
from deltalog.log.checkpoints.reader import read_stats, stats_of, stats_sources, texts_of_stats
from tests.support import logs

RECORDS = (("numRecords",), pa.int64())
LEAST = (("minValues", "a"), pa.int64())
NULLS = (("nullCount", "a"), pa.int64())


def actions(*rows: dict[str, Any], parsed: pa.DataType | None = None) -> pa.ChunkedArray[Any]:
    fields: list[Any] = [("path", pa.string()), ("stats", pa.string())]
    fields += [("stats_parsed", parsed)] if parsed is not None else []
    return pa.chunked_array([pa.array(rows, pa.struct(fields))])


@pytest.mark.protocol("CKPT-22", "B-13")
def test_typed_leaves_come_first_and_json_fills_the_rest() -> None:
    have = {("add", "stats"), ("add", "stats_parsed", "numRecords"),
            ("add", "stats_parsed", "nullCounts", "a")}  # fmt: skip
    assert stats_sources(have, [RECORDS, NULLS, LEAST]) == [
        ("add", "stats_parsed", "numRecords"),
        ("add", "stats_parsed", "nullCounts", "a"),
        ("add", "stats"),
    ]
    assert stats_sources(have, [RECORDS]) == [("add", "stats_parsed", "numRecords")]
    assert stats_sources({("add", "path")}, [RECORDS]) == []


def test_each_statistic_from_where_it_is() -> None:
    typed = pa.struct([("numRecords", pa.int64())])
    found = stats_of(
        actions(
            {"stats": '{"numRecords":9,"minValues":{"a":1}}', "stats_parsed": {"numRecords": 2}},
            {"stats": None, "stats_parsed": {"numRecords": 3}},
            parsed=typed,
        ),
        [RECORDS, LEAST],
    )
    assert [column.to_pylist() for column in found] == [[2, 3], [1, None]]


def test_what_is_nowhere_is_null() -> None:
    rows = pa.chunked_array([pa.array([{"path": "a"}, {"path": "b"}])])
    (found,) = stats_of(rows, [LEAST])
    assert found.to_pylist() == [None, None]
    assert found.type == pa.int64()


@pytest.mark.parametrize(
    ("wanted", "num_batches"), [([], 0), ([0], 1), ([1, 3], 2), ([9], 5)], ids=str
)
def test_texts_are_read_up_to_the_last_that_is_wanted(
    wanted: list[int], num_batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.log.checkpoints.reader._BATCH_ROWS", 2)
    store = logs.DictStore()
    adds = [logs.add(f"f{n}", stats=f'{{"numRecords":{n}}}') for n in range(10)]
    path = logs.classic_checkpoint(store, 0, adds)
    given: list[int] = []
    batches = ParquetCheckpointFile.batches

    def counted(self: ParquetCheckpointFile, *asked: Any) -> Any:
        for batch in batches(self, *asked):
            given.append(len(batch))
            yield batch

    monkeypatch.setattr(ParquetCheckpointFile, "batches", counted)
    where = pa.array([n in wanted for n in range(10)])
    (found,) = read_stats(open_checkpoint_file(store, store.stat(path)), [RECORDS], where)
    assert found.to_pylist() == wanted
    assert given == [2] * num_batches


def test_typed_statistics_as_texts() -> None:
    typed = pa.struct([("numRecords", pa.int64()), ("nullCounts", pa.struct([("a", pa.int64())]))])
    texts = texts_of_stats(
        actions({"stats_parsed": {"numRecords": 2, "nullCounts": {"a": 1}}}, parsed=typed)
    )
    assert texts.to_pylist() == ['{"numRecords":2,"nullCount":{"a":1}}']
