"""Sources of any kind and size."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.operations.changes.merge.source import MergeSource
from deltalog.operations.merge import upsert
from tests.support.merging import NUMBERS, rows
from tests.support.statements import (
    VECTORS,
    StatedTable,
    by_source_delete,
    matched_update,
)


@pytest.mark.parametrize(
    "make",
    [
        lambda table: table,
        lambda table: table.to_batches()[0],
        lambda table: table.to_reader(),
        lambda table: iter(table.to_batches()),
        lambda table: table.to_pylist(),
        lambda table: table.to_pandas(),
        lambda table: table.cast(pa.schema([("id", pa.int32()), ("x", pa.int16())])),
        lambda table: pa.table(
            {"id": table["id"], "x": table["x"].cast(pa.string()).dictionary_encode()}
        ),
    ],
    ids=["table", "batch", "reader", "iterator", "dicts", "pandas", "narrow", "dictionary"],
)
def test_sources_may_be_anything_that_holds_rows(make: Any) -> None:
    table = StatedTable(NUMBERS, rows(1, 2))
    table.run_merge(make(pa.table({"id": [2, 3], "x": [7, 7]})), upsert(None, "id"))
    assert [tuple(row.values()) for row in table.rows()] == [(1, 0), (2, 7), (3, 7)]


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["rewritten", "masked"])
def test_sources_that_do_not_fit_memory_go_to_a_file(
    properties: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = StatedTable(
        NUMBERS, rows(*range(0, 100, 2)), rows(*range(1, 50, 2)), properties=properties
    )
    order = [*range(99, -1, -3), *range(300, 320)]
    batches = [pa.record_batch({"id": [n], "x": [n + 1000]}) for n in order]
    with MergeSource(iter(batches), memory_bytes=100) as source:
        (spilled,) = tmp_path.rglob("*.arrow")
        assert spilled.stat().st_size > 0
        assert source.num_rows == len(order)
        some = source.take(pa.array([5, 0, 5, 30]), ["x"])
        assert some["x"].to_pylist() == [order[n] + 1000 for n in (5, 0, 5, 30)]
        assert source.take(pa.array([], pa.int64()), ["x"]).num_rows == 0
    assert list(tmp_path.rglob("*.arrow")) == []
    table.run_merge(iter(batches), upsert(None, "id"), memory_bytes=100)
    before = dict.fromkeys([*range(0, 100, 2), *range(1, 50, 2)], 0)
    expected = before | {n: n + 1000 for n in order}
    assert {row["id"]: row["x"] for row in table.rows()} == expected


def test_two_columns_of_one_name_are_refused() -> None:
    data = pa.Table.from_arrays([pa.array([1]), pa.array([1])], names=["id", "ID"])
    with pytest.raises(InvalidInputError, match="more than once"):
        MergeSource(data)


def test_a_source_without_rows_changes_nothing_but_what_has_no_match() -> None:
    table = StatedTable(NUMBERS, rows(1, 2))
    nothing = pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.int64())})
    before = table.version
    table.run_merge(nothing, upsert(None, "id"))
    assert table.version == before
    table.merge(nothing, "t.id = s.id", by_source_delete("t.id = 2"))
    assert table.values("id") == [1]


def test_a_source_may_be_the_table_itself() -> None:
    table = StatedTable({"k": "string", "n": "long"}, [{"k": "a", "n": 1}, {"k": None, "n": 3}])
    data = pa.Table.from_pylist(table.rows())
    table.merge(data, "t.k = s.k AND t.n = s.n", matched_update(n="s.n + 1"))
    assert table.values("n") == [2, 3]


def test_nanoseconds_of_a_source_are_cut_off() -> None:
    table = StatedTable({"id": "long", "at": "timestamp"}, [])
    data = pa.table({"id": [1], "at": pa.array([1_999], pa.timestamp("ns", "UTC"))})
    table.run_merge(data, upsert(None, "id"))
    assert table.rows() == [{"id": 1, "at": datetime(1970, 1, 1, 0, 0, 0, 1, UTC)}]
