"""Which clause a pair of rows falls to."""

from __future__ import annotations

from tests.support.merging import pairs, rows
from tests.support.statements import (
    StatedTable,
    insert,
    matched_delete,
    matched_update,
)


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
