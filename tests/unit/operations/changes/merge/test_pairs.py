"""Which clause a pair of rows falls to."""

from __future__ import annotations

import ctypes
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.errors import AmbiguousMergeError
from tests.support.merging import NUMBERS, pairs, rows
from tests.support.reference_scenarios import FULL
from tests.support.statements import (
    StatedTable,
    by_source_update,
    insert,
    matched_delete,
    matched_update,
)

pytestmark = pytest.mark.slow("large joins")


def test_the_first_clause_whose_condition_holds_decides(table: StatedTable) -> None:
    table.merge(
        rows(1, 2, 3, 4, 5, 6, x=7),
        "t.id = s.id",
        matched_update("s.id = 1", x="1"),
        matched_delete("s.id <= 2"),
        matched_update("s.id <= 3", x="3"),
        insert("s.id = 5", id="s.id", x="5"),
        insert(id="s.id", x="6"),
    )
    assert pairs(table) == [(1, 1), (3, 3), (4, 0), (5, 5), (6, 6)]


def test_conditions_that_are_unknown_do_not_hold(table: StatedTable) -> None:
    source = [{"id": 1, "x": None}, {"id": 9, "x": None}]
    before = table.version
    table.merge(source, "t.id = s.id", matched_delete("s.x > 0"), insert("s.x > 0"))
    assert table.version == before


def test_a_condition_on_the_source_alone_may_be_ambiguous(table: StatedTable) -> None:
    with pytest.raises(AmbiguousMergeError, match="a row by"):
        table.merge(rows(1, 2, x=5), "s.id < 9", matched_update(x="7"))


@pytest.mark.parametrize("own", ["t.id", "t.id + 0"], ids=["ranges", "every pair"])
def test_rows_in_a_range_match(table: StatedTable, own: str) -> None:
    ranges = [{"id": 2, "x": 3}, {"id": 4, "x": 1}, {"id": 8, "x": 9}, {"id": 1, "x": None}]
    merged = table.merge(
        ranges, f"{own} >= s.id and {own} <= s.x", matched_delete(), insert(id="s.id", x="s.x")
    )
    assert (merged.rows.deleted, merged.rows.inserted) == (2, 3)
    assert pairs(table) == [(1, None), (1, 0), (4, 0), (4, 1), (8, 9)]


KEYS = st.lists(st.integers(0, 6), max_size=12)


@pytest.mark.parametrize("most_pairs", [1, 5, 1 << 20])
@pytest.mark.parametrize("own", ["t.id", "t.id + 0"], ids=["ranges", "every pair"])
@settings(max_examples=40 if FULL else 12)  # of each of the six
@given(
    target=KEYS,
    source=KEYS,
    least=st.integers(0, 3),
    inserts=st.booleans(),
    by_source=st.booleans(),
)
def test_without_keys_the_outcome_is_that_with_keys(
    own: str,
    most_pairs: int,
    target: list[int],
    source: list[int],
    least: int,
    *,
    inserts: bool,
    by_source: bool,
) -> None:
    clauses = [matched_update("s.x > 3", x="s.x"), matched_delete("s.x = 3")]
    if inserts:
        clauses.append(insert("s.id > 1", id="s.id", x="s.x"))
    if by_source:
        clauses.append(by_source_update(x="-1"))
    columns: dict[str, Any] = {"id": source, "x": range(len(source))}
    given_rows = pa.table(columns, pa.schema({"id": pa.int64(), "x": pa.int64()}))

    def outcome(equal: str) -> object:
        table = StatedTable(NUMBERS, [{"id": n, "x": -2} for n in target], rows(0, 5, x=-3))
        condition = f"{equal} and t.id >= {least}"
        try:
            merged = table.merge(given_rows, condition, *clauses)
        except AmbiguousMergeError:
            return "ambiguous"
        return sorted(pairs(table)), merged.rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deltalog.operations.changes.merge.pairs.MOST_PAIRS", most_pairs)
        assert outcome(f"{own} <= s.id and {own} >= s.id") == outcome("t.id = s.id")


@pytest.mark.parametrize("own", ["t.id", "t.id + 0"], ids=["ranges", "every pair"])
def test_matching_pairs_are_not_kept(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair matches: of 8 million pairs, no more than 60,000 are held at a time."""
    monkeypatch.setattr("deltalog.operations.changes.merge.pairs.MOST_PAIRS", 1 << 16)
    schema = pa.schema({"id": pa.int64(), "x": pa.int64()})
    source = pa.table({"id": range(4000), "x": [0] * 4000}, schema=schema)
    table = StatedTable(NUMBERS, rows(*range(-2000, 0)))
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    # For ever: what threads still hold of it would be given back to a pool that is gone.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        merged = table.merge(source, f"{own} < s.id", matched_delete(), insert(id="s.id", x="1"))
    finally:
        pa.set_memory_pool(before)
    assert merged.rows.deleted == 2000
    assert table.rows() == []
    num_pairs = 2000 * 4000
    assert (pool.max_memory() or 0) < num_pairs  # as numbers of two rows, 16 bytes each
