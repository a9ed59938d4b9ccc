"""Which files are read for the rows that match."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog.data.write import WriterProperties
from deltalog.expressions import parse_sql
from deltalog.operations.changes.apply import MOST_HELD_BYTES, find_matching_files
from deltalog.operations.changes.local import LocalChange
from deltalog.operations.changes.request import Action, ChangeRequest, Clause, When
from deltalog.testing import CountingStore
from deltalog.transaction import PendingTransaction
from tests.support.logs import DictStore
from tests.support.statements import FEED, ROW_IDS, VECTORS, StatedTable, matched_update

NUMBERS = {"id": "long", "x": "long"}


def rows(*ids: int) -> list[dict[str, int]]:
    return [{"id": number, "x": 10 * number} for number in ids]


def test_only_files_that_may_match_are_opened() -> None:
    store = CountingStore(DictStore())
    table = StatedTable(NUMBERS, *(rows(n, n + 1) for n in range(0, 20, 2)), store=store)
    store.reset()
    table.update({"x": "0"}, "id = 5")
    opened = {call for call in store.paths("open", "read_ranges") if call.endswith(".parquet")}
    assert len(opened) == 1


def test_only_row_groups_with_such_rows_are_decoded() -> None:
    store = DictStore()
    properties = WriterProperties(max_row_group_size=100)
    table = StatedTable({"id": "long", "text": "string"}, properties=VECTORS, store=store)
    table.append([{"id": n, "text": f"{n}"} for n in range(1000)], writer_properties=properties)
    (path,) = (path for path in store.files if path.endswith(".parquet"))
    data = bytearray(store.files[path])
    footer = pq.ParquetFile(BytesIO(data)).metadata
    for group in {*range(footer.num_row_groups)} - {1}:
        for column in range(2):
            chunk = footer.row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            data[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    store.files[path] = bytes(data)
    # Whoever decodes another row group than the second one finds rubbish.
    assert footer.num_row_groups == 10
    assert table.update({"id": "-1"}, "id = 150").rows.all_updated == 1


def data_requests(store: CountingStore) -> list[str]:
    return [
        path for path in store.paths("open", "read", "read_ranges") if path.endswith(".parquet")
    ]


def test_files_that_are_masked_are_read_once() -> None:
    store = CountingStore(DictStore())
    files = (rows(*range(n, n + 10)) for n in range(0, 30, 10))
    table = StatedTable(NUMBERS, *files, properties=VECTORS, store=store)
    store.reset()
    assert table.update({"x": "x + 1"}, "id in (5, 15, 25)").files.num_vectors_added == 3
    assert len(data_requests(store)) == 3


def test_dry_runs_read_no_more_than_the_predicates_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deltalog.storage.parquet.footer._SMALL_FILE_BYTES", 0)
    monkeypatch.setattr("deltalog.storage.parquet.footer._TAIL_BYTES", 4096)
    store = CountingStore(DictStore())
    table = StatedTable({"id": "long", "text": "string"}, properties=VECTORS, store=store)
    table.append([{"id": n, "text": f"{n}" * 40} for n in range(2000)])
    request = ChangeRequest(
        condition="id = 1000",
        clauses=(
            Clause(
                when=When.NOT_MATCHED_BY_SOURCE, action=Action.UPDATE, values={"id": "length(text)"}
            ),
        ),
    )
    read = []
    for is_preview in (True, False):
        pending = PendingTransaction(table.snapshot.context, table.snapshot, operation="UPDATE")
        change = LocalChange(pending, request)
        store.reset()
        if is_preview:
            assert change.preview()[1].num_rows == 1
        else:
            assert change.apply().rows.all_updated == 1
        read.append(sum(call.size_bytes for call in store.calls if call.verb == "read_ranges"))
    assert read[1] > read[0] + 20_000


@pytest.mark.parametrize("most_bytes", [0, 100, MOST_HELD_BYTES])
@pytest.mark.parametrize("properties", [{}, FEED, ROW_IDS, FEED | ROW_IDS], ids=len)
def test_what_is_held_changes_no_result(
    most_bytes: int, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.operations.changes.apply.MOST_HELD_BYTES", most_bytes)
    table = StatedTable(
        NUMBERS | {"p": "string"},
        *([row | {"p": f"{row['id'] // 4}"} for row in rows(*range(n, n + 8))] for n in (0, 8, 16)),
        properties=VECTORS | properties,
        partition_by=["p"],
    )
    table.delete("id in (1, 9)")
    columns = ("id", "_metadata.row_id") if ROW_IDS.items() <= properties.items() else ("id",)
    before = sorted(map(tuple, (row.values() for row in table.rows(*columns))))
    # Of the partitions one loses all its rows, one most of them, and others some.
    table.update({"x": "-id", "p": "concat(p, 'b')"}, "id < 4 or id in (5, 6, 7, 12, 17)")
    expected: list[Any] = [
        {"id": n, "x": -n, "p": f"{n // 4}b"}
        if n < 4 or n in {5, 6, 7, 12, 17}
        else {"id": n, "x": 10 * n, "p": f"{n // 4}"}
        for n in range(24)
        if n not in {1, 9}
    ]
    assert sorted(table.rows(), key=lambda row: row["id"]) == expected
    assert sorted(map(tuple, (row.values() for row in table.rows(*columns)))) == before
    if FEED.items() <= properties.items():
        told = [(row["id"], row["x"], row["_change_type"]) for row in table.changes()]
        changed = [row["id"] for row in expected if row["x"] < 0 or row["p"].endswith("b")]
        assert sorted(told) == sorted(
            [(n, 10 * n, "update_preimage") for n in changed]
            + [(n, -n, "update_postimage") for n in changed]
        )


@pytest.mark.parametrize("group_rows", [50, 40_000])
@pytest.mark.parametrize(("most_bytes", "held"), [(0, 0), (1, 0), (90, 1), (10_000, 2)], ids=str)
def test_rows_are_held_up_to_a_number_of_bytes(
    most_bytes: int, held: int, group_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltalog.operations.changes.apply.MOST_HELD_BYTES", most_bytes)
    table = StatedTable(NUMBERS, properties=VECTORS)
    properties = WriterProperties(max_row_group_size=group_rows)
    for start in (0, 200, 400):
        numbers = range(start, start + 200)
        table.append(rows(*numbers), writer_properties=properties)
    condition = parse_sql("id % 100 = 7 and id < 400")
    found = find_matching_files(table.snapshot, condition, along=["x", "id"])
    assert [part.to_pylist() for part in found.positions if part] == [[7, 107], [7, 107]]
    assert len(found.held) == held
    for number, batches in found.held.items():
        rest = pa.Table.from_batches(batches).select(["x", "id"])
        first = 200 * number + 7
        assert rest.to_pylist() == rows(first, first + 100)


def small_table(properties: dict[str, str] | None = None) -> tuple[StatedTable, CountingStore]:
    store = CountingStore(DictStore())
    files = (rows(*range(n, n + 10)) for n in range(0, 30, 10))
    table = StatedTable(NUMBERS, *files, properties=properties, store=store)
    store.reset()
    return table, store


@pytest.mark.parametrize("properties", [{}, FEED, VECTORS], ids=["plain", "feed", "vectors"])
@pytest.mark.parametrize("verb", ["delete", "update", "merge"])
def test_small_files_of_a_store_are_fetched_once(verb: str, properties: dict[str, str]) -> None:
    table, store = small_table(properties)
    match verb:
        case "delete":
            changed = table.delete("id in (5, 15)")
        case "update":
            changed = table.update({"x": "-1"}, "id in (5, 15)")
        case _:
            changed = table.merge(rows(5, 15), "t.id = s.id", matched_update())
    assert changed.num_touched_files == 2
    fetched = data_requests(store)
    assert len(fetched) == len(set(fetched)) == changed.num_scanned_files


def test_no_more_is_kept_of_files_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    table, store = small_table()
    size = table.files().column("size")[0].as_py()
    monkeypatch.setattr("deltalog.storage.parquet.facts.MOST_FETCHED_BYTES", size * 3 // 2)
    table.delete("id in (5, 15, 25)")
    assert len(data_requests(store)) == 3 + 2
    assert table.values("id") == sorted({*range(30)} - {5, 15, 25})
