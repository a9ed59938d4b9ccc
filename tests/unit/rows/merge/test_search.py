"""How a merge finds its rows: keys, pruning, sources of any kind and size, and who else wrote."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.context import utc_context
from deltalog.engine import LocalEngine
from deltalog.errors import InvalidInputError
from deltalog.rows.changes import RowChanges
from deltalog.rows.merge import join as joining
from deltalog.rows.merge.join import KeyIndex, cross
from deltalog.rows.merge.source import MergeSource
from deltalog.snapshot import load_snapshot
from deltalog.testing import CountingStore
from deltalog.transaction.commit import run
from deltalog.verbs.do import explain, preview
from deltalog.verbs.merge import Merge, upsert
from tests.support.logs import DictStore
from tests.support.statements import (
    VECTORS,
    StatedTable,
    by_source_delete,
    insert,
    matched_delete,
    matched_update,
)

NUMBERS = {"id": "long", "x": "long"}
NAN = math.nan


def rows(*ids: int, x: int = 0) -> list[dict[str, Any]]:
    return [{"id": number, "x": x} for number in ids]


# --- keys


def pairs_of(index: KeyIndex, *columns: pa.Array[Any]) -> Counter[tuple[int, int]]:
    found, others = index.match(columns)
    return Counter(zip(found.to_pylist(), others.to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [1, 2, 2, None, 5, -(1 << 63), (1 << 63) - 1]),
        (pa.int32(), [7, 9, 9, None, 12]),
        (pa.int8(), [-128, 127, 0, None]),
        (pa.string(), ["a", "", "a", None, "ä"]),
        (pa.binary(), [b"", b"\0", None]),
        (pa.bool_(), [True, False, None, True]),
        (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None]),
        (pa.decimal128(10, 2), [Decimal("1.00"), Decimal("1.01"), None]),
    ],
    ids=str,
)
@pytest.mark.parametrize("null_safe", [False, True])
def test_keys_of_every_type_find_their_rows(
    kind: pa.DataType, values: list[Any], null_safe: bool
) -> None:
    mine: pa.Array[Any] = pa.array(values, kind)
    index = KeyIndex([mine], [null_safe])
    expected = Counter(
        (left, right)
        for left, one in enumerate(values)
        for right, other in enumerate(values)
        if one == other and (one is not None or null_safe)
    )
    assert pairs_of(index, mine) == expected


def test_zeros_are_equal_and_so_are_nans() -> None:
    index = KeyIndex([pa.array([0.0, NAN])], [False])
    assert pairs_of(index, pa.array([-0.0, NAN, 1.0])) == Counter([(0, 0), (1, 1)])


KEYS = st.none() | st.integers(-3, 3) | st.sampled_from([1 << 40, -(1 << 40)])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(KEYS, KEYS), max_size=8),
    st.lists(st.tuples(KEYS, KEYS), max_size=8),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([2, 1 << 10, 1 << 25]),
)
def test_keys_of_several_parts_are_equal_part_by_part(
    mine: list[tuple[Any, Any]],
    theirs: list[tuple[Any, Any]],
    safe: tuple[bool, bool],
    window: int,
) -> None:
    columns, others = (
        [pa.array([row[part] for row in side], pa.int64()) for part in range(2)]
        for side in (mine, theirs)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joining, "_WINDOW_PLACES", window)
        found = pairs_of(KeyIndex(columns, list(safe)), *others)
        single = pairs_of(KeyIndex(columns[:1], list(safe[:1])), others[0])

    def same(one: Any, other: Any, *, null_safe: bool) -> bool:
        return one == other and (one is not None or null_safe)

    def expected(parts: int) -> Counter[tuple[int, int]]:
        return Counter(
            (left, right)
            for left, one in enumerate(theirs)
            for right, other in enumerate(mine)
            if all(same(one[n], other[n], null_safe=safe[n]) for n in range(parts))
        )

    assert found == expected(2)
    assert single == expected(1)


@pytest.mark.parametrize("most", [1, 3, 100])
def test_without_keys_every_pair_is_looked_at(most: int) -> None:
    found = [
        pair
        for left, right in cross(3, 4, most=most)
        for pair in zip(left.to_pylist(), right.to_pylist(), strict=True)
    ]
    assert sorted(found) == [(left, right) for left in range(3) for right in range(4)]
    assert list(cross(0, 4)) == list(cross(4, 0)) == []


# --- pruning


def opened(store: CountingStore) -> int:
    return len({path for path in store.paths("open", "read_ranges") if path.endswith(".parquet")})


@pytest.mark.parametrize(
    ("source", "on", "files"),
    [
        (rows(11, 12), "t.id = s.id", 1),
        (rows(11, 31), "t.id = s.id", 2),  # a range would be three files
        (rows(500), "t.id = s.id", 0),
        (rows(11, 31), "t.id = s.id AND t.id > 20", 1),
        (rows(11, 31), "t.id = s.id AND s.id > 20", 1),
        (rows(11, 31), "t.id + 0 = s.id", 5),
        (rows(), "t.id = s.id", 0),
        (rows(11), "t.id = s.id AND 1 = 0", 0),
        ([{"id": None, "x": 1}], "t.id = s.id", 0),
    ],
)
def test_only_files_that_keys_may_be_in_are_opened(
    source: list[dict[str, Any]], on: str, files: int
) -> None:
    store = CountingStore(DictStore())
    StatedTable(NUMBERS, *(rows(n, n + 9) for n in range(0, 50, 10)), store=store)
    data = pa.table(
        {
            "id": pa.array([r["id"] for r in source], pa.int64()),
            "x": pa.nulls(len(source), pa.int64()),
        }
    )
    store.reset()
    changes = RowChanges(
        condition=on,
        clauses=(matched_delete(), insert()),
        source=data,
        source_alias="s",
        target_alias="t",
    )
    preview(Merge(changes), load_snapshot(utc_context(store)), LocalEngine())
    assert opened(store) == files


def test_partitions_are_pruned_by_keys() -> None:
    store = CountingStore(DictStore())
    data = [{"p": f"p{n}", "id": n} for n in range(6)]
    table = StatedTable({"p": "string", "id": "long"}, data, partition_by=["p"], store=store)
    store.reset()
    table.merge(
        [{"p": "p2", "id": 2}, {"p": "p9", "id": 2}], "t.p = s.p AND t.id = s.id", matched_delete()
    )
    assert opened(store) == 1


def test_many_keys_prune_by_the_gaps_between_them() -> None:
    store = CountingStore(DictStore())
    table = StatedTable(
        NUMBERS,
        rows(*range(1000)),
        rows(*range(5000, 5100)),
        rows(*range(9000, 10000)),
        store=store,
    )
    keys = [*range(1000), *range(9000, 10000)]
    store.reset()
    merged = table.merge(pa.table({"id": keys}), "t.id = s.id", matched_update(x="1"))
    assert opened(store) == 2
    assert merged.rows.updated == 2000


def test_rows_without_a_match_are_looked_for_where_their_clauses_may_be() -> None:
    store = CountingStore(DictStore())
    table = StatedTable(NUMBERS, *(rows(n, n + 9) for n in range(0, 50, 10)), store=store)
    store.reset()
    table.merge(rows(11), "t.id = s.id", matched_update(x="1"), by_source_delete("t.id = 49"))
    assert opened(store) == 2
    store.reset()
    table.merge(rows(11), "t.id = s.id", by_source_delete())
    assert opened(store) == 5
    assert table.values("id") == []


def test_explain_says_what_is_compared_and_read() -> None:
    table = StatedTable(NUMBERS, rows(1, 2), rows(11))
    changes = RowChanges(
        condition="t.id <=> s.id AND t.x > 3 AND s.x < 5 AND t.x < s.x",
        clauses=(matched_update(), insert()),
        source_alias="s",
        target_alias="t",
    )
    text = explain(Merge(changes).with_source(rows(1)), table.snapshot, LocalEngine())
    for part in ("<=>", "x > 3", "x < 5", "WHEN MATCHED THEN UPDATE", "files: 2 in the table"):
        assert part in text


def test_preview_counts_and_writes_nothing() -> None:
    inner = DictStore()
    table = StatedTable(NUMBERS, rows(1, 2), store=inner)
    files = set(inner.files)
    found = preview(upsert(rows(2, 9), "id"), table.snapshot, LocalEngine())
    assert found["num_target_rows_updated"] == found["num_target_rows_inserted"] == 1
    assert set(inner.files) == files


# --- sources


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


# --- other writers


def test_a_merge_that_lost_is_evaluated_again() -> None:
    table = StatedTable(NUMBERS, rows(1))
    other = StatedTable.__new__(StatedTable)
    other.store = table.store
    seen: list[int] = []
    merge = upsert(None, "id")
    with MergeSource(iter([pa.record_batch({"id": [5], "x": [7]})])) as source:

        def stage(pending: Any) -> Any:
            merged = merge.with_source(source).stage(pending, LocalEngine())
            if not seen:
                other.append(rows(5))
            seen.append(merged.changed.rows.inserted)
            return merged

        run(lambda: load_snapshot(utc_context(table.store)), stage, operation="MERGE")
    assert seen == [1, 0]
    assert [tuple(row.values()) for row in table.rows()] == [(1, 0), (5, 7)]


def test_rows_that_cannot_match_are_no_conflict() -> None:
    table = StatedTable(NUMBERS, rows(1))
    other = StatedTable.__new__(StatedTable)
    other.store = table.store
    seen: list[int] = []
    with MergeSource(rows(5)) as source:

        def stage(pending: Any) -> Any:
            merged = upsert(source, "id").stage(pending, LocalEngine())
            if not seen:
                other.append(rows(6))
            seen.append(merged.changed.rows.inserted)
            return merged

        run(lambda: load_snapshot(utc_context(table.store)), stage, operation="MERGE")
    assert seen == [1]
    assert table.values("id") == [1, 5, 6]
